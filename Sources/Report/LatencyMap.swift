import Glibc
package import Measurement

/// The latencies of a run over time, for a heat map: for each interval, the number of durations in each bucket.
///
/// Buckets are logarithmic, 20 per decade from 1 µs to 10 min. What was due outside the measured phase is included.
package struct LatencyMap: Sendable {
    /// One metric, with the labels that distinguish its series.
    package struct Family: Sendable {
        package var name: String
        package var labels: Labels
        /// Interval by interval, ``LatencyMap/buckets`` counts each.
        package fileprivate(set) var counts: [UInt64]

        /// The counts of one interval, from the shortest durations to the longest.
        package func counts(interval: Int) -> ArraySlice<UInt64> {
            self.counts[(interval * LatencyMap.buckets)..<((interval + 1) * LatencyMap.buckets)]
        }
    }

    private static let perDecade = 20
    private static let shortest = 1e-6

    /// The lower end of each bucket and the upper end of the last one, in seconds.
    ///
    /// The first bucket has shorter durations too; the longest duration of a histogram, 10 min, is in the last one.
    package static let edges: [Double] = {
        let longest = Double(Histogram.highest) / 1e9
        let count = Int(bounded: (log10(longest / Self.shortest) * Double(Self.perDecade)).rounded(.up))
        return (0...count).map { Self.shortest * pow(10, Double($0) / Double(Self.perDecade)) }
    }()

    package static let buckets = edges.count - 1

    /// The place of each bucket of a histogram.
    private static let places: [UInt8] = {
        var place = 0
        return (0..<HistogramLayout.size).map { index in
            let seconds = Double(HistogramLayout.middle(at: index)) / 1e9
            while place < Self.buckets - 1, seconds >= Self.edges[place + 1] { place += 1 }
            return UInt8(place)
        }
    }()

    /// The start of each interval, in full seconds from the start of the run, ascending.
    ///
    /// The intervals of a second in which a stage ended are one here.
    package private(set) var seconds: [Int] = []
    /// The families in the order of the log.
    package private(set) var families: [Family] = []

    /// Reads the latencies of a run from its histogram log.
    ///
    /// - Parameters:
    ///   - directory: a finished one, or a partial one for what was written until now.
    ///   - metrics: the names of the durations.
    ///   - keys: labels that distinguish series; all others are merged, as in a threshold.
    /// - Throws: if it has no readable `latency.hlog`.
    package init(reading directory: String, metrics: [String], keeping keys: Set<String> = []) throws(ResultError) {
        self.init(reading: HistogramLog.read(try TextFile.text(directory + "/latency.hlog")), metrics, keys)
    }

    package init(text: String, metrics: [String], keeping keys: Set<String> = []) {
        self.init(reading: HistogramLog.read(text), metrics, keys)
    }

    private init(reading log: HistogramLog.Contents, _ metrics: [String], _ keys: Set<String>) {
        self.seconds = log.intervals.reduce(into: []) { seconds, interval in
            if seconds.last != interval.second { seconds.append(interval.second) }
        }
        var families: [Series: Int] = [:]
        var tags: [String: Int?] = [:]
        var place = -1
        for interval in log.intervals {
            if place < 0 || self.seconds[place] != interval.second { place += 1 }
            for entry in log.entries[interval.entries] {
                if tags[entry.tag] == nil {
                    let family = Self.family(entry.tag, metrics, keys).map { series in
                        families[series] ?? self.add(series, to: &families)
                    }
                    tags[entry.tag] = .some(family)
                }
                guard case let family?? = tags[entry.tag], let histogram = try? Histogram(decodingV2: entry.encoded)
                else { continue }
                self.add(histogram, to: family, interval: place)
            }
        }
    }

    private static func family(_ tag: String, _ metrics: [String], _ keys: Set<String>) -> Series? {
        guard var series = HistogramLog.parse(tag: tag)?.series, metrics.contains(series.name),
            series.labels.isWhole(unless: keys.contains)
        else { return nil }
        for label in series.labels.all where !keys.contains(label.key) {
            series.labels = series.labels.removing(label.key)
        }
        return series
    }

    private mutating func add(_ series: Series, to families: inout [Series: Int]) -> Int {
        families[series] = self.families.count
        let counts = Array(repeating: UInt64(0), count: self.seconds.count * Self.buckets)
        self.families.append(Family(name: series.name, labels: series.labels, counts: counts))
        return self.families.count - 1
    }

    private mutating func add(_ histogram: Histogram, to family: Int, interval: Int) {
        guard let min = histogram.min, let max = histogram.max else { return }
        let range = HistogramLayout.index(of: min)...HistogramLayout.index(of: max)
        let first = interval * Self.buckets
        _ = histogram.withCounts { counts in
            for index in range where counts[index] > 0 {
                self.families[family].counts[first + Int(Self.places[index])] += counts[index]
            }
        }
    }
}
