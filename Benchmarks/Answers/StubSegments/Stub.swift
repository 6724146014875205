import Coordination
import Foundation
import Measurement
import Report
import Synchronization

/// Segments that run no clients, and report to a coordinator as if they did.
///
/// Usage: `stub-segments PORT SEGMENTS SERIES SECONDS PLAN VERSION`, with the password in CLAMOR_COORDINATOR_PASSWORD
@main
enum Stub {
    static func main() async {
        let words = CommandLine.arguments.dropFirst().map(\.self)
        guard words.count == 6, let port = UInt16(words[0]), let segments = Int(words[1]), let series = Int(words[2]),
            let seconds = Int(words[3])
        else {
            print("usage: stub-segments PORT SEGMENTS SERIES SECONDS PLAN VERSION")
            return
        }
        await withTaskGroup { group in
            for segment in 1...segments {
                group.addTask {
                    let hello = SegmentHello(
                        version: words[5],
                        run: "",
                        plan: words[4],
                        segment: segment,
                        segments: segments,
                        host: "stub"
                    )
                    await Self.run(hello, port: port, series: series, seconds: seconds)
                }
            }
        }
    }

    private static func run(_ hello: SegmentHello, port: UInt16, series: Int, seconds: Int) async {
        var settings = SegmentLink.Settings(host: "127.0.0.1", port: port, joinTimeout: .seconds(60))
        let password = ProcessInfo.processInfo.environment["CLAMOR_COORDINATOR_PASSWORD"] ?? ""
        settings.credentials = CoordinationCredentials(password: password)
        let link = SegmentLink(settings, hello, clock: OwnClock()) { print("segment \(hello.segment): \($0)") }
        guard let welcome = await Self.join(link) else { return }
        _ = try? await link.synchronize(welcome) { _ in }
        link.tell(.ready)
        let intervals = Self.pattern(every: welcome.histogramSeconds, series: series)
        for await order in link.orders {
            guard case .start(let start) = order else { continue }
            for second in 0..<seconds {
                let due = start + Int64(second + 1) * 1_000_000_000
                let wait = due - OwnClock().now
                if wait > 0 { try? await Task.sleep(for: .nanoseconds(wait)) }
                var interval = intervals[second % intervals.count]
                interval.second = second
                link.tell(.interval(interval))
            }
            break
        }
        _ = await link.finish(SegmentEnding(status: 0, words: "it is a stub"), directory: nil)
        await link.close()
    }

    private static func join(_ link: SegmentLink) async -> SegmentWelcome? {
        do throws(SegmentLinkError) {
            return try await link.join()
        } catch {
            print("\(error)")
            return nil
        }
    }

    /// The intervals that all segments send by turns, made once: what segments compute is not the coordinator's cost.
    private static let patterns = Mutex<[Int: [TimelineInterval]]>([:])

    private static func pattern(every: Int, series: Int) -> [TimelineInterval] {
        self.patterns.withLock { patterns in
            if let known = patterns[every] { return known }
            var thinner = IntervalThinner(every: every)
            let made = (0..<max(1, every)).map { thinner.next(Self.interval($0, series: series)) }
            patterns[every] = made
            return made
        }
    }

    /// A sixth of the series are durations of 300 samples each.
    private static func interval(_ second: Int, series: Int) -> TimelineInterval {
        var interval = TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: [], lanes: [])
        for number in 0..<series {
            let labels: Labels = ["group": "group\(number % 5)", "qos": "\(number % 3)", "stage": "stage\(number)"]
            guard number.isMultiple(of: 6) else {
                let reading = CounterReading(value: Double(100 + (number * 37 + second * 11) % 50), rate: nil)
                interval.metrics.append(
                    Metric(name: "publish_sent", labels: labels, unit: "messages", reading: .counter(reading))
                )
                continue
            }
            var histogram = Histogram()
            for sample in 0..<300 {
                histogram.record(Int64(100_000 + (sample * 7_919 + second * 31) % 9_000_000))
            }
            guard let reading = DurationReading(histogram) else { continue }
            interval.metrics.append(
                Metric(name: "publish_ack_duration", labels: labels, unit: "seconds", reading: .duration(reading))
            )
            interval.lanes.append(
                TimelineInterval.Lane(
                    name: "publish_ack_duration",
                    labels: labels,
                    measured: true,
                    count: histogram.count,
                    max: Double(histogram.max ?? 0) / 1e9,
                    histogram: histogram.encodedV2()
                )
            )
        }
        return interval
    }
}
