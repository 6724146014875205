package import Measurement

/// Interval histograms as lines of text: the HdrHistogram log format, version 1.3, with tags.
///
/// Values are nanoseconds. A line's start is in seconds since `BaseTime`, its length in seconds, and its
/// `Interval_Max` in milliseconds: the standard writer's default ratio of 1,000,000.
///
/// The tag is the metric's name and labels, `publish_ack_duration;leg=puback;qos=1`, percent-encoded where the format
/// or the label syntax would break: tags may hold no comma, no blank and no line break.
///
/// Spec: HistogramLogWriter and HistogramLogReader of HdrHistogram (Java) 2.1.10 and later.
package enum HistogramLog {
    /// The label of what was due outside the measured phase; such lines are in the time line but not in the totals.
    private static let unmeasured = (key: "measured", value: "no")

    package struct Entry: Hashable, Sendable {
        package var tag: String
        /// Seconds since the start of the run.
        package var start: Double
        /// Seconds.
        package var length: Double
        /// Base64 of a compressed V2 histogram.
        package var encoded: String

        package init(tag: String, start: Double, length: Double, encoded: String) {
            self.tag = tag
            self.start = start
            self.length = length
            self.encoded = encoded
        }
    }

    /// The lines above the first interval; `startedAt` is CLOCK_REALTIME in nanoseconds at second 0 of the run.
    package static func header(startedAt: Int64) -> String {
        let seconds = self.thousandths(startedAt / 1_000_000)
        return """
            #[Histogram log format version 1.3]
            #[StartTime: \(seconds) (seconds since epoch), \(WallClock.rfc3339(startedAt))]
            #[BaseTime: \(seconds) (seconds since epoch)]
            #[Values in nanoseconds, Interval_Max in milliseconds]
            "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"

            """
    }

    /// One interval of one metric, with its highest value in nanoseconds.
    package static func line(_ entry: Entry, maximum: Int64) -> String {
        // Both ends are rounded, not the length, so that intervals which follow each other neither overlap nor part.
        let start = Int64(bounded: (entry.start * 1000).rounded())
        let end = Int64(bounded: ((entry.start + entry.length) * 1000).rounded())
        // Nanoseconds to thousandths of a millisecond.
        let highest = self.thousandths((maximum + 500) / 1000)
        let times = "\(self.thousandths(start)),\(self.thousandths(end &- start))"
        return "Tag=\(entry.tag),\(times),\(highest),\(entry.encoded)\n"
    }

    /// Marks the end of an interval: lines after the last mark were cut by a kill.
    ///
    /// It is a comment to every reader of the format.
    package static func end(ofInterval second: Int) -> String { "#[End of interval \(second)]\n" }

    /// The files whose sizes are in the last line of a segment's log, followed by `ledger.csv` if there is one.
    static let segmentFiles = ["timeline.csv", "clients.csv"]

    /// Marks a segment's results as complete, with the sizes of the files that have no end mark.
    static func end(ofSegment files: [(name: String, bytes: Int)]) -> String {
        "#[End of segment: " + files.map { "\($0.name) \($0.bytes) bytes" }.joined(separator: ", ") + "]\n"
    }

    /// The sizes that the last line of a segment's log names; `nil` where it is not there, or not whole.
    static func segmentFiles(_ text: String) -> [String: Int]? {
        let mark = "#[End of segment: "
        guard text.utf8.last == 0x0A, let line = text.wholeLines.last, line.hasPrefix(mark), line.hasSuffix("]") else {
            return nil
        }
        var sizes: [String: Int] = [:]
        for part in line.dropFirst(mark.count).dropLast().split(separator: ", ") {
            let words = part.split(separator: " ")
            guard words.count == 3, words[2] == "bytes", let size = Int(words[1]) else { return nil }
            sizes[String(words[0])] = size
        }
        return Set(sizes.keys).subtracting([LedgerCSV.fileName]) == Set(self.segmentFiles) ? sizes : nil
    }

    /// All lines of one interval, the end mark last; `start` in seconds, without it that of the interval's second.
    package static func lines(_ interval: TimelineInterval, from start: Double? = nil) -> String {
        var text = ""
        for lane in interval.lanes {
            let entry = Entry(
                tag: self.tag(lane.series, isMeasured: lane.measured),
                start: start ?? Double(interval.second),
                length: interval.seconds,
                encoded: lane.histogram
            )
            text += self.line(entry, maximum: Int64(bounded: (lane.max * 1e9).rounded()))
        }
        return text + self.end(ofInterval: interval.second)
    }

    private static func thousandths(_ value: Int64) -> String {
        "\(value / 1000).\(String(1000 + value % 1000).dropFirst())"
    }

    /// The tag of a series, with what was measured of it or with the rest.
    package static func tag(_ series: Series, isMeasured: Bool = true) -> String {
        let mark = isMeasured ? [] : ["\(self.unmeasured.key)=\(self.unmeasured.value)"]
        let labels = series.labels.all.map { "\(self.escaped($0.key))=\(self.escaped($0.value))" }
        return ([self.escaped(series.name)] + labels + mark).joined(separator: ";")
    }

    /// The arguments of ``tag(_:isMeasured:)``; `nil` for a tag of another form.
    package static func parse(tag: String) -> (series: Series, isMeasured: Bool)? {
        let parts = tag.split(separator: ";", omittingEmptySubsequences: false)
        guard let first = parts.first, let name = self.unescaped(first), !name.isEmpty else { return nil }
        var labels: [String: String] = [:]
        for part in parts.dropFirst() {
            guard let mark = part.firstIndex(of: "="), let key = self.unescaped(part[..<mark]),
                let value = self.unescaped(part[part.index(after: mark)...])
            else { return nil }
            labels[key] = value
        }
        let isMeasured = labels[self.unmeasured.key] != self.unmeasured.value
        if !isMeasured { labels[self.unmeasured.key] = nil }
        return (Series(name: name, labels: Labels(labels)), isMeasured)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true  // 0-9 A-Z a-z
        case 0x2D, 0x2E, 0x2F, 0x3A, 0x5F: true  // - . / : _
        default: false
        }
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            if self.isPlain(byte) {
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                escaped += byte < 16 ? "%0" : "%"
                escaped += String(byte, radix: 16, uppercase: true)
            }
        }
        return escaped
    }

    private static func unescaped(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                let value = UInt8(text[rest.startIndex..<rest.index(rest.startIndex, offsetBy: 2)], radix: 16)
            else { return nil }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// The content of a log, up to the point where it was written.
    package struct Contents {
        package var entries: [Entry] = []
        /// The intervals that the end marks name, each with its part of the entries; empty for a log without end marks.
        package var intervals: [(second: Int, entries: Range<Int>)] = []
        /// The interval that the last end mark names.
        package var lastInterval: Int? { self.intervals.last?.second }
        /// Whether the log was written to its end, and has no line that is none of the format.
        package fileprivate(set) var isWhole = true
    }

    /// Reads a log up to its last end mark, or all of it where it has none, as the logs of other writers.
    ///
    /// Lines that are no interval, and a last line without its line break, are passed over.
    package static func read(_ text: String) -> Contents {
        var contents = Contents()
        var complete = 0
        for line in text.wholeLines {
            if line.hasPrefix("#") {
                guard let second = self.interval(endingWith: line) else { continue }
                contents.intervals.append((second, complete..<contents.entries.count))
                complete = contents.entries.count
            } else if let entry = self.entry(line) {
                contents.entries.append(entry)
            } else if !line.hasPrefix("\"") {
                contents.isWhole = false
            }
        }
        if text.utf8.last != 0x0A || complete < contents.entries.count || contents.intervals.isEmpty {
            contents.isWhole = false
        }
        if contents.lastInterval != nil { contents.entries.removeLast(contents.entries.count - complete) }
        return contents
    }

    private static func interval(endingWith line: Substring) -> Int? {
        let mark = "#[End of interval "
        guard line.hasPrefix(mark), line.hasSuffix("]") else { return nil }
        return Int(line.dropFirst(mark.count).dropLast())
    }

    private static func entry(_ line: Substring) -> Entry? {
        let cells = line.split(separator: ",", maxSplits: 4, omittingEmptySubsequences: false)
        guard cells.count == 5, cells[0].hasPrefix("Tag="), let start = Double(cells[1]), let length = Double(cells[2])
        else { return nil }
        return Entry(tag: String(cells[0].dropFirst(4)), start: start, length: length, encoded: String(cells[4]))
    }
}

extension String {
    /// The lines that end in a line break; what follows the last one was cut off while it was written.
    var wholeLines: [Substring] {
        // By bytes: as characters, a carriage return and a line feed are one.
        var lines = self.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
        lines.removeLast()
        return lines.map { Substring($0) }
    }
}
