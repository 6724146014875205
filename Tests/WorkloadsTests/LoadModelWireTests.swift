import LoadEngine
import NIOCore
import NIOEmbedded
import TestSupport
import Testing
import VirtualServers
import Workloads

/// Every load model through the whole client, down to the bytes in front of its socket: nothing takes time but what the
/// model says.
@Suite("Bytes on a client's socket match the load model")
struct LoadModelWireTests {
    struct Model: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let pace: OperationSchedule.Pace
        /// Publishes of each second.
        let asked: [Int]

        init(_ name: String, asked: [Int], _ pace: OperationSchedule.Pace) {
            self.testDescription = name
            self.pace = pace
            self.asked = asked
        }

        init(_ name: String, asked: [Int], _ pieces: [RateCurve.Piece], _ arrivals: ShapedLoad.Arrivals = .even) {
            self.init(name, asked: asked, .shaped(ShapedLoad(RateCurve(pieces), arrivals)))
        }
    }

    /// One PUBLISH as it left.
    private struct Departure {
        let publisher: UInt32
        let sequence: UInt64
        /// Since the load began, nanoseconds.
        let at: Int64
        /// The same, by the stamp in its header.
        let due: Int64
    }

    private static func piece(_ seconds: Int64, _ from: Double, _ to: Double) -> RateCurve.Piece {
        RateCurve.Piece(length: .seconds(seconds), from: from, to: to)
    }

    private static func departures(_ setup: MQTTVirtualRun.Setup) throws -> [Departure] {
        let run = try MQTTVirtualRun(setup)
        var sent: [(message: WireOracle.Message, at: NIODeadline)] = []
        run.network.oracle.onStep = { [loop = run.loop] _, step in
            if case .sent(let message) = step { sent.append((message, loop.now)) }
        }
        run.perform()
        #expect(run.imbalances.isEmpty)
        let begin = Int64(run.origin.uptimeNanoseconds)
        return sent.map { message, at in
            Departure(
                publisher: message.publisher,
                sequence: message.sequence,
                at: Int64(at.uptimeNanoseconds) - begin,
                due: message.due - run.load.realtimeOffset - begin
            )
        }
    }

    private static func perSecond(_ departures: [Departure], seconds: Int) -> [Int] {
        var counts = [Int](repeating: 0, count: seconds)
        for departure in departures where departure.at < Int64(seconds) * 1_000_000_000 {
            counts[Int(departure.at / 1_000_000_000)] += 1
        }
        return counts
    }

    // MARK: Open loop

    static let models = [
        Model("constant", asked: Array(repeating: 300, count: 4), .rate(perSecond: 300)),
        Model("each client by itself", asked: Array(repeating: 75, count: 4), .interval(.milliseconds(40))),
        Model("a ramp up", asked: [100, 200, 300, 400], [Self.piece(4, 50, 450)]),
        Model("a ramp down to nothing", asked: [350, 250, 150, 50], [Self.piece(4, 400, 0)]),
        Model(
            "steps, with a pause",
            asked: [100, 400, 0, 200],
            [Self.piece(1, 100, 100), Self.piece(1, 400, 400), Self.piece(1, 0, 0), Self.piece(1, 200, 200)]
        ),
        Model("bursts of 50", asked: [200, 200, 200, 200], [Self.piece(4, 200, 200)], .bursts(of: 50)),
    ]

    @Test("open loop: each second has its count, each publish its time, each client its turn", arguments: models)
    func openLoop(_ model: Model) throws {
        let setup = MQTTVirtualRun.Setup(
            publishers: 3,
            subscribers: 3,
            duration: .seconds(4),
            window: 1_000,
            latency: .milliseconds(3),
            pace: .open(model.pace)
        )
        let sent = try Self.departures(setup)
        #expect(Self.perSecond(sent, seconds: 4) == model.asked)
        #expect(sent.count == model.asked.reduce(0, +))
        let schedule = OperationSchedule(pace: model.pace, clients: 3)
        for departure in sent {
            let due = schedule.due(client: Int(departure.publisher), own: departure.sequence)
            #expect(departure.due == due?.nanoseconds)
            #expect(departure.at == due?.nanoseconds)
        }
    }

    @Test("bursts leave together, and nothing between them")
    func bursts() throws {
        let load = ShapedLoad(RateCurve([Self.piece(4, 200, 200)]), .bursts(of: 50))
        let sent = try Self.departures(
            MQTTVirtualRun.Setup(publishers: 3, duration: .seconds(4), window: 1_000, pace: .open(.shaped(load)))
        )
        let groups = Dictionary(grouping: sent, by: \.at)
        #expect(groups.keys.sorted() == (0..<16).map { $0 * 250_000_000 })
        #expect(groups.values.allSatisfy { $0.count == 50 })
    }

    /// The gaps between publishes, and their counts in slots of 10 ms.
    private static func fit(_ arrivals: ShapedLoad.Arrivals) throws -> (gaps: Double, spread: Double) {
        let load = ShapedLoad(RateCurve([Self.piece(10, 1_000, 1_000)]), arrivals)
        let sent = try Self.departures(
            MQTTVirtualRun.Setup(publishers: 5, duration: .seconds(10), window: 10_000, pace: .open(.shaped(load)))
        )
        let times = sent.map { Double($0.at) / 1e9 }
        let fit = PoissonFit(times: times.sorted(), perSecond: 1_000)
        return (fit.gaps, fit.spread(slots: 990, of: 0.01))
    }

    @Test("Poisson: gaps and counts are those of a Poisson process", arguments: [1, 42, 77_777] as [UInt64])
    func poisson(seed: UInt64) throws {
        let fit = try Self.fit(.poisson(seed: seed))
        #expect(PoissonFit.gapBounds.contains(fit.gaps), "chi-square \(fit.gaps)")
        #expect(PoissonFit.bounds(990).contains(fit.spread), "chi-square \(fit.spread)")
    }

    @Test(
        "what is no Poisson process is not taken for one",
        arguments: [.even, .bursts(of: 5)] as [ShapedLoad.Arrivals]
    )
    func isNoPoisson(_ arrivals: ShapedLoad.Arrivals) throws {
        let fit = try Self.fit(arrivals)
        #expect(!PoissonFit.gapBounds.contains(fit.gaps), "chi-square \(fit.gaps)")
        #expect(!PoissonFit.bounds(990).contains(fit.spread), "chi-square \(fit.spread)")
    }

    // MARK: Closed loop

    @Test("window: as many as it holds, and as many again with each round of answers", arguments: [1, 4, 32])
    func window(_ window: Int) throws {
        let sent = try Self.departures(
            MQTTVirtualRun.Setup(
                publishers: 3,
                subscribers: 3,
                duration: .seconds(2),
                window: window,
                latency: .milliseconds(5),
                pace: .closed
            )
        )
        // There and back in 10 ms: 100 rounds a second.
        #expect(Self.perSecond(sent, seconds: 2) == [300 * window, 300 * window])
        for publisher in 0..<3 as Range<UInt32> {
            for departure in sent where departure.publisher == publisher {
                #expect(departure.at == Int64(departure.sequence) / Int64(window) * 10_000_000)
                #expect(departure.due == departure.at)
            }
        }
    }

    @Test("think time: each client waits so long from each answer on, and they begin spread over it")
    func think() throws {
        let sent = try Self.departures(
            MQTTVirtualRun.Setup(
                publishers: 4,
                subscribers: 4,
                duration: .seconds(3),
                window: 1,
                latency: .milliseconds(5),
                pace: .closed,
                think: .milliseconds(90)
            )
        )
        for departure in sent {
            let first = 90_000_000 * Int64(departure.publisher) / 4
            #expect(departure.at == first + Int64(departure.sequence) * 100_000_000)
            #expect(departure.due == departure.at)
        }
        #expect(Self.perSecond(sent, seconds: 3) == [40, 40, 40])
    }
}
