import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    /// Real runs, whose figures depend on the host: `make check-meter`, five runs each, medians printed.
    @Suite(
        "CheckMeter",
        .serialized,
        .enabled(if: ProcessInfo.processInfo.environment["CLAMOR_CHECK_METER"] != nil, "make check-meter runs it")
    )
    struct CheckMeterTests {
        private static let runs = 5

        /// The delayed messages are found by their durations alone.
        ///
        /// With half the delay as the border there are two modes, which only a hiccup of 10 ms can mix up, and medians
        /// tolerate a few. Each mode has half of the messages, up to 1 % in the median run; this is part of the check.
        @Test("a delay of 20 ms is measured within 1 % of what the broker held")
        func delay() async throws {
            let border: Int64 = 10_000_000
            var rows: [[Double]] = []
            for number in 1...Self.runs {
                let (run, broker) = try await BrokerProgram.with("--delay 20ms --delay-every 2") { broker in
                    try await ClamorRun.of("pubsub -p \(broker.port) -c 1 -q 0 -s 64 --rate 500/s --duration 4s")
                }
                #expect(run.record.state == .valid, "\(run.record.reasonCodes)")
                let delivery = try #require(run.record.duration("delivery_duration")?.decodedHistogram())
                let (low, high) = delivery.split(at: border)
                #expect(low.count + high.count == 2_000)
                let held = Double(try #require(broker.delayHolds.p50)) / 1e6
                let undelayed = Double(try #require(low.percentile(50))) / 1e6
                let delayed = Double(try #require(high.percentile(50))) / 1e6
                let error = ((delayed - undelayed) / held - 1) * 100
                rows.append([
                    Double(number), Double(high.count), undelayed, delayed, delayed - undelayed, held, error,
                ])
            }
            let columns = [
                "run", "delayed (1000)", "undelayed p50 ms", "delayed p50 ms", "difference ms", "held p50 ms",
                "error %",
            ]
            let medians = Self.print("--delay 20ms --delay-every 2, 500/s, 4 s", columns, rows)
            #expect(abs(medians[1] - 1_000) <= 10)
            #expect(abs(medians[6]) < 1)
        }

        /// How many durations a stall must have lengthened by how much is arithmetic.
        ///
        /// 500/s for 2 s are due in it, those due in its first 1.9 s wait for 100 ms and more, and a window of 16 lets
        /// 4 × 16 be in flight in it.
        @Test("a stall shows in the response time of all that is due in it, in the service time of what is in flight")
        func stall() async throws {
            let rate = 500.0
            var rows: [[Double]] = []
            for number in 1...Self.runs {
                let (run, broker) = try await BrokerProgram.with("--stall 2s@5s") { broker in
                    try await ClamorRun.of("pub -p \(broker.port) -c 4 -q 1 -s 64 --rate 500/s --duration 10s")
                }
                #expect(run.record.state == .valid, "\(run.record.reasonCodes)")
                let stall = try #require(broker.stalls.first)
                let length = stall.end - stall.begin
                let response = try #require(run.record.duration("publish_ack_duration")?.decodedHistogram())
                let service = try #require(run.record.duration("publish_service_duration")?.decodedHistogram())
                let least: Int64 = 100_000_000
                let due = Double(length - least) / 1e9 * rate
                let late = Double(response.split(at: least).above.count)
                // Those in flight were sent in the first 128 ms of the stall.
                let inFlight = service.split(at: length - 500_000_000).above.count
                #expect(service.split(at: least).above.count == inFlight)
                #expect(inFlight == 64)
                #expect(run.record.count("publish_acked") == 5_000)
                rows.append([
                    Double(number), Double(length) / 1e6, due, late, late - due, Double(inFlight),
                    Double(response.max ?? 0) / 1e6, Double(service.max ?? 0) / 1e6,
                ])
            }
            let columns = [
                "run", "stall ms", "due, to wait 100 ms", "waited 100 ms", "more", "in flight (64)", "response max ms",
                "service max ms",
            ]
            let medians = Self.print("--stall 2s@5s, 500/s, 10 s, window 16, 4 clients", columns, rows)
            // One more message at each end of the stall, and the time of the broker's first reads afterwards.
            #expect(abs(medians[4]) <= 5)
        }

        /// Prints the rows and their medians, and returns these.
        private static func print(_ title: String, _ columns: [String], _ rows: [[Double]]) -> [Double] {
            let medians = columns.indices.map { column in rows.map { $0[column] }.sorted()[rows.count / 2] }
            func line(_ cells: [String]) -> String {
                zip(columns, cells).map { column, cell in
                    String(repeating: " ", count: max(0, column.count - cell.count)) + cell
                }.joined(separator: "  ")
            }
            func text(_ row: [Double], _ first: String) -> String {
                line([first] + row.dropFirst().map { $0 == $0.rounded() ? "\(Int($0))" : String(format: "%.3f", $0) })
            }
            Swift.print("\n\(title)\n\(line(columns))")
            for row in rows { Swift.print(text(row, "\(Int(row[0]))")) }
            Swift.print(text(medians, "med") + "\n")
            return medians
        }
    }
}

extension Histogram {
    /// The values below `border` and the others, to the width of a bucket.
    fileprivate func split(at border: Int64) -> (below: Histogram, above: Histogram) {
        var below = Histogram()
        var above = Histogram()
        self.forEachBucket { value, count in
            value < border ? below.record(value, count: count) : above.record(value, count: count)
        }
        return (below, above)
    }
}
