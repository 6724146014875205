import DataEncodings
import Foundation
import LoadEngine
import Measurement

/// A message as JSON; its topic has the sender or the receiver.
struct Envelope: Codable {
    /// The place among all orders, since an order at QoS 1 may come twice; absent where that does not matter.
    var number: UInt64?
    private var told: SegmentReport?
    private(set) var order: SegmentOrder?

    init(_ report: SegmentReport) { self.told = report }

    init(_ order: SegmentOrder) { self.order = order }

    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    init?(_ bytes: [UInt8]) {
        guard let envelope = try? JSONDecoder().decode(Envelope.self, from: Data(bytes)) else { return nil }
        self = envelope
    }

    /// The report, with texts that a terminal may show; `nil` with counts and names that no run has.
    var report: SegmentReport? {
        switch self.told {
        case .hello(var hello):
            hello.host = OneLine.of(hello.host)
            hello.watched = hello.watched?.prefix(16).map { OneLine.of($0) }
            return .hello(hello)
        case .line(let text): return .line(OneLine.of(text))
        case .ended(var ending):
            ending.words = ending.words.map { OneLine.of($0) }
            return .ended(ending)
        case .balance(let balance, _):
            let counts = [balance.expected, balance.received, balance.uncertain]
            return counts.allSatisfy { $0.magnitude < 1 << 50 } ? self.told : nil
        case .interval(let interval):
            let series = interval.metrics.map { ($0.name, $0.labels) } + interval.lanes.map { ($0.name, $0.labels) }
            let labels = series.flatMap { $1.all.flatMap { [$0.key, $0.value] } }
            let isPlain = (labels + series.map(\.0) + [interval.phase]).allSatisfy { OneLine.of($0) == $0 }
            // 30 years, and an hour: no run has others.
            let isTime = (0..<1_000_000_000).contains(interval.second) && (0...3_600).contains(interval.seconds)
            return isPlain && isTime ? self.told : nil
        case .ready, .settled, .echo, .lost, nil: return self.told
        }
    }
}
