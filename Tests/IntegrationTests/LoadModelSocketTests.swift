import Ledger
import Measurement
import TestSupport
import Testing

extension Integration {
    /// The bytes that a run wrote on its sockets, compared with the load that its file requests.
    ///
    /// Headers contain the due time of each PUBLISH, so the result does not depend on how busy the host is.
    @Suite("The schedule that was asked for is the one that leaves the sockets")
    struct LoadModelSocketTests {
        struct Model: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let publish: String
            var rest = ""
            var clients = 4
            /// Of each second.
            let asked: [Int]
        }

        /// All that came of a run of one group, in the order in which it was due.
        private static func arrivals(
            _ publish: String,
            clients: Int,
            rest: String,
            answering held: Int = 1
        ) async throws -> [TimingPeer.Arrival] {
            try await TimingPeer.with(answering: held) { peer in
                let folder = try ScratchFolder()
                let file = try folder.write(
                    """
                    target: mqtt://127.0.0.1:\(peer.port)
                    seed: 5
                    \(rest)
                    groups: { a: { clients: \(clients), publish: { size: 64, \(publish) } } }
                    """,
                    to: "model.yaml"
                )
                let run = try await ClamorRun.of("run \(file) --threads 2")
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.books.allSatisfy { $0.balances })
                // Of the whole run, not of its stages again.
                let sent = run.record.metrics.filter { $0.name == "publish_sent" && $0.labels["stage"] == nil }
                #expect(sent.map { Int($0.counter?.value ?? 0) } == [peer.arrivals.count])
                return peer.arrivals.sorted {
                    ($0.header.due, $0.header.sequence, $0.header.publisher)
                        < ($1.header.due, $1.header.sequence, $1.header.publisher)
                }
            }
        }

        /// Each message came once, over its publisher's connection, in its order, and none before it was due.
        private func expectWhole(_ arrivals: [TimingPeer.Arrival], clients: Int) {
            #expect(arrivals.allSatisfy { $0.at >= $0.header.due })
            let byPublisher = Dictionary(grouping: arrivals, by: \.header.publisher)
            #expect(byPublisher.keys.sorted() == (0..<UInt32(clients)).map(\.self))
            for own in byPublisher.values {
                #expect(own.map(\.header.sequence).sorted() == (0..<UInt64(own.count)).map(\.self))
                #expect(Set(own.map(\.connection)).count == 1)
                let inOrder = own.sorted { $0.header.sequence < $1.header.sequence }
                #expect(
                    zip(inOrder, inOrder.dropFirst()).allSatisfy { $0.at <= $1.at && $0.header.due <= $1.header.due }
                )
            }
        }

        @Test(
            "open loop: each second has its count, and operation k is of client k mod n",
            arguments: [
                Model(
                    testDescription: "constant",
                    publish: "rate: 300/s",
                    rest: "duration: 2s",
                    asked: [300, 300]
                ),
                Model(
                    testDescription: "each client by itself",
                    publish: "interval: 20ms",
                    rest: "duration: 2s",
                    asked: [200, 200]
                ),
                Model(
                    testDescription: "a ramp",
                    publish: "qos: 1, rate: { from: 100/s, to: 500/s }",
                    rest: "duration: 2s",
                    asked: [200, 400]
                ),
                Model(
                    testDescription: "steps with a pause, by three clients",
                    publish: "rate: { steps: [200/s, 0, 300/s], every: 1s }",
                    rest: "duration: 3s",
                    clients: 3,
                    asked: [200, 0, 300]
                ),
                Model(
                    testDescription: "bursts",
                    publish: "qos: 1, rate: 200/s, burst: 50",
                    rest: "duration: 2s",
                    asked: [200, 200]
                ),
                Model(
                    testDescription: "stages",
                    publish: "rate: 200/s",
                    rest: "stages: [{ name: half, for: 1s, load: 50% }, { name: twice, for: 1s, load: 200% }]",
                    asked: [100, 400]
                ),
            ]
        )
        func openLoop(_ model: Model) async throws {
            let arrivals = try await Self.arrivals(model.publish, clients: model.clients, rest: model.rest)
            self.expectWhole(arrivals, clients: model.clients)
            let begin = arrivals.first?.header.due ?? 0
            var seconds = [Int](repeating: 0, count: model.asked.count)
            for arrival in arrivals {
                let second = Int((arrival.header.due - begin) / 1_000_000_000)
                try #require(second < seconds.count)
                seconds[second] += 1
            }
            #expect(seconds == model.asked)
            // By number, they are due in the order of their numbers.
            let numbers = arrivals.map { Int($0.header.sequence) * model.clients + Int($0.header.publisher) }
            #expect(numbers == Array(numbers.indices))
        }

        @Test("bursts are due together, and the next ones when the rate has asked for as many")
        func bursts() async throws {
            let arrivals = try await Self.arrivals("rate: 200/s, burst: 40", clients: 4, rest: "duration: 1s")
            let begin = arrivals.first?.header.due ?? 0
            let groups = Dictionary(grouping: arrivals) { $0.header.due - begin }
            #expect(groups.keys.sorted() == (0..<5).map { $0 * 200_000_000 })
            #expect(groups.values.allSatisfy { $0.count == 40 })
        }

        @Test("Poisson: what left is a Poisson process by chi-square, and the same seed gives the same times")
        func poisson() async throws {
            func times(_ publish: String) async throws -> [Int64] {
                let arrivals = try await Self.arrivals(publish, clients: 4, rest: "duration: 3s")
                self.expectWhole(arrivals, clients: 4)
                let begin = arrivals.first?.header.due ?? 0
                return arrivals.map { $0.header.due - begin }
            }
            func fit(_ times: [Int64]) -> PoissonFit {
                PoissonFit(times: times.map { Double($0) / 1e9 }, perSecond: 1_000)
            }
            let sent = try await times("rate: 1000/s, arrivals: poisson")
            #expect(abs(sent.count - 3_000) < 250)
            #expect(PoissonFit.gapBounds.contains(fit(sent).gaps))
            #expect(PoissonFit.bounds(290).contains(fit(sent).spread(slots: 290, of: 0.01)))
            #expect(try await times("rate: 1000/s, arrivals: poisson") == sent)
            let even = try await times("rate: 1000/s")
            #expect(!PoissonFit.gapBounds.contains(fit(even).gaps))
            #expect(!PoissonFit.bounds(290).contains(fit(even).spread(slots: 290, of: 0.01)))
        }

        @Test("window: each client has as many without an answer as it may, and never more", arguments: [1, 4, 16])
        func window(_ window: Int) async throws {
            let arrivals = try await Self.arrivals(
                "qos: 1, window: \(window), limit: \(3 * window * 20)",
                clients: 3,
                rest: "duration: 60s",
                answering: window
            )
            self.expectWhole(arrivals, clients: 3)
            #expect(arrivals.count == 3 * window * 20)
            #expect(arrivals.map(\.open).max() == window)
            // The first of them are due at once, with nothing answered yet.
            for publisher in 0..<UInt32(3) {
                let dues = arrivals.filter { $0.header.publisher == publisher }.prefix(window).map(\.header.due)
                #expect(Set(dues).count == 1)
            }
        }

        @Test("think time: a client's publishes are due at least so far apart")
        func think() async throws {
            let arrivals = try await Self.arrivals(
                "qos: 1, think: 50ms, limit: 40",
                clients: 4,
                rest: "duration: 60s"
            )
            self.expectWhole(arrivals, clients: 4)
            #expect(arrivals.count == 40)
            #expect(arrivals.map(\.open).max() == 1)
            for publisher in 0..<UInt32(4) {
                let dues = arrivals.filter { $0.header.publisher == publisher }.map(\.header.due)
                #expect(dues.count == 10)
                #expect(zip(dues, dues.dropFirst()).allSatisfy { $1 - $0 >= 50_000_000 })
            }
        }
    }
}
