import Measurement

/// A run's streamed files in blocks of a few seconds, within which what happens hangs together.
struct RunBlocks {
    /// Seconds; longer where a run would have more than ``mostBlocks``.
    static let length = 5.0
    /// Enough to know how blocks differ; 8 bytes each for every bucket of a metric.
    static let mostBlocks = 60

    private var histograms: [Series: [Int: Histogram]] = [:]
    private var counters: [Series: [Int: Double]] = [:]
    private var gauges: [Series: [Int: (sum: Double, count: Double)]] = [:]
    /// Seconds of the intervals by block.
    private var seconds: [Double]

    /// Fails if the run has no measured phase.
    ///
    /// `timeline` is the text of `timeline.csv` and `log` that of `latency.hlog`; missing files are empty.
    init?(_ record: RunRecord, timeline: String, log: String) {
        let measured = record.stages.filter(\.measured)
        guard let start = measured.map(\.start).min(),
            let end = measured.map({ $0.start + $0.durationSeconds }).max(), end > start, (end - start).isFinite
        else { return nil }
        let grid = BlockGrid(start: start, end: end)
        self.seconds = Array(repeating: 0, count: grid.count)
        for entry in HistogramLog.read(log).entries { self.add(entry, grid) }
        for rows in TimelineRow.read(timeline).byInterval where !RunHistory.unmeasuredPhases.contains(rows[0].phase) {
            // The length is that of a counter that moved, else a second.
            let length = rows.compactMap(\.length).last ?? 1
            let middle = Double(rows[0].second) + length / 2
            guard middle >= start, middle < end else { continue }
            let block = grid.block(of: middle)
            self.seconds[block] += length
            for row in rows { self.add(row, block) }
        }
    }

    private mutating func add(_ entry: HistogramLog.Entry, _ grid: BlockGrid) {
        // Values outside the measured phase are not in the totals, so not here.
        guard let tag = HistogramLog.parse(tag: entry.tag), tag.isMeasured,
            let histogram = try? Histogram(decodingV2: entry.encoded)
        else { return }
        // The answers of the drain belong to the last block, what came before the measured phase to the first.
        self.histograms[tag.series, default: [:]][grid.block(of: entry.start), default: Histogram()].merge(histogram)
    }

    private mutating func add(_ row: TimelineRow, _ block: Int) {
        switch row.reading {
        case .counter(let value, _): self.counters[row.series, default: [:]][block, default: 0] += value
        case .gauge(let value):
            let old = self.gauges[row.series]?[block] ?? (0, 0)
            self.gauges[row.series, default: [:]][block] = (old.sum + value, old.count + 1)
        case .duration: break
        }
    }

    func histogram(_ series: Series) -> BlockedHistogram? {
        guard let blocks = self.histograms[series] else { return nil }
        return BlockedHistogram(blocks.sorted { $0.key < $1.key }.map(\.value))
    }

    /// Events by seconds; a block without a row had none.
    func rates(_ series: Series) -> RunSample.Blocks? {
        guard let blocks = self.counters[series] else { return nil }
        return .ratios(self.seconds.enumerated().map { (part: blocks[$0.offset] ?? 0, whole: $0.element) })
    }

    func means(_ series: Series) -> RunSample.Blocks? {
        guard let blocks = self.gauges[series] else { return nil }
        return .ratios(blocks.sorted { $0.key < $1.key }.map { (part: $0.value.sum, whole: $0.value.count) })
    }
}

/// Where the blocks of a measured phase begin and end.
struct BlockGrid {
    let start: Double
    let end: Double
    let count: Int

    init(start: Double, end: Double) {
        self.start = start
        self.end = end
        // A rest of less than half a block belongs to the last one.
        let fitting = ((end - start) / RunBlocks.length).rounded()
        self.count = Int(Swift.min(Swift.max(fitting, 1), Double(RunBlocks.mostBlocks)))
    }

    private var length: Double { (self.end - self.start) / Double(self.count) }

    /// The block of a time, the nearest one for a time outside.
    func block(of time: Double) -> Int {
        let place = ((time - self.start) / self.length).rounded(.down)
        // NaN counts as not above 0 too.
        return place > 0 ? Int(Swift.min(place, Double(self.count - 1))) : 0
    }
}
