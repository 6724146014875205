import Coordination
import EmbeddedBroker
import FaultInjection
import Foundation
import Measurement
import NIOCore
import NIOEmbedded
import Report
import RunControl
import RunResult
import Scenario
import Synchronization
import TestSupport
import Testing
import VirtualServers
import clamor

/// A command line, run against the core of the embedded broker on a virtual clock: from its words to its files.
struct VirtualClamor {
    let status: Int32
    /// The lines for standard error.
    let errorLines: [String]
    var errors: String { self.errorLines.joined(separator: "\n") }
    let record: RunRecord
    /// The broker's own counts.
    let broker: BrokerCounters
    /// Holds the result directory `out`.
    let folder: ScratchFolder

    var directory: String { self.folder.path("out") }

    /// A broker, and the time that passes there; several runs may follow each other.
    final class Host {
        let time = VirtualTime()
        private let faults: FaultPlan?
        private var network: NIOLoopBound<VirtualNetwork<VirtualBroker>>?

        /// `faults`: of its broker, as they are given to `clamor broker`; `nil`: those of the first run's `--broker`.
        init(_ faults: String? = nil) {
            guard let faults, case .broker(let options) = Invocation.parse(["broker"] + words(faults)) else {
                self.faults = nil
                return
            }
            self.faults = options.faults
        }

        var broker: BrokerCounters { self.connected(FaultPlan()).value.server.broker.counters }

        /// The network; `faults`: of the first run.
        fileprivate func connected(
            _ faults: FaultPlan,
            _ p2pRoots: [String] = []
        ) -> NIOLoopBound<VirtualNetwork<VirtualBroker>> {
            if let network { return network }
            let broker = VirtualBroker(self.faults ?? faults, loop: self.time.loop, p2pRoots: p2pRoots)
            let network = VirtualNetwork(broker, loop: self.time.loop, latency: .microseconds(400))
            network.buffer = 1 << 16
            let bound = NIOLoopBound(network, eventLoop: self.time.loop)
            self.network = bound
            return bound
        }
    }

    /// Runs a command; the line is split at spaces, arguments that contain spaces follow it.
    static func of(_ line: String, _ more: String..., on host: Host = Host()) throws -> VirtualClamor {
        try self.run(words(line) + more, ScratchFolder(), host)
    }

    /// Runs a scenario file with these flags.
    static func of(scenario: String, _ flags: String = "", on host: Host = Host()) throws -> VirtualClamor {
        let files = try ScratchFolder()
        let file = try files.write(scenario, to: "scenario.yaml")
        return try self.run(["run", file] + words(flags), ScratchFolder(), host)
    }

    private struct Refused: Error, CustomStringConvertible { let description: String }

    private static func run(_ words: [String], _ folder: ScratchFolder, _ host: Host) throws -> VirtualClamor {
        let words = words + ["--out", folder.path("out"), "--quiet", "--server-name", "off"]
        guard case .run(let scenario) = Invocation.parse(words) else {
            throw Refused(description: "\(Invocation.parse(words))")
        }
        let roots = scenario.groups.flatMap { group -> [String] in
            guard case .mqtt(let options) = group.work else { return [] }
            return ([options.p2p] + options.streams.map(\.p2p)).compactMap { $0?.root }
        }
        let (time, network) = (host.time, host.connected(Self.faults(of: scenario), Array(Set(roots))))
        let heard = Heard()
        var plan = RunPlan(Self.onVirtualClock(scenario))
        plan.hears = { heard.add($0) }
        let world = Self.world(time, network)
        let ends = try time.run([{ @Sendable [plan] in await Run(plan, in: world).perform() }])
        return try VirtualClamor(ends[0], heard, network.value.server.broker.counters, folder)
    }

    private typealias Network = NIOLoopBound<VirtualNetwork<VirtualBroker>>

    private static func world(_ time: VirtualTime, _ network: Network) -> RunWorld {
        var world = RunWorld(clock: time, connector: { _ in network.value }) { count, _ in
            (Array(repeating: time.loop, count: count), .nio, {})
        }
        world.makeTask = { time.task($0) }
        world.realtime = { Int64(time.now.uptimeNanoseconds) }
        world.startBroker = { CoreBroker(network) }
        world.startSegment = { try VirtualSegment($0, time, Self.world(time, network)) }
        return world
    }

    /// A segment in this process, as the child that its leader would have started.
    private final class VirtualSegment: SegmentPeer {
        private let leader: Leader

        init(_ start: SegmentStart, _ time: VirtualTime, _ world: RunWorld) throws {
            let environment = ["CLAMOR_RUN": start.run, "CLAMOR_REALTIME_OFFSET": "0"]
            let invocation = Invocation.parse(start.arguments + ["--server-name", "off"], environment: environment)
            guard case .run(let scenario) = invocation else { throw Refused(description: "\(invocation)") }
            let (index, events) = (start.index, start.events)
            let leader = Leader { events(.report(index, $0)) }
            self.leader = leader
            var plan = RunPlan(VirtualClamor.onVirtualClock(scenario))
            plan.hears = { events(.report(index, .line($0))) }
            _ = time.task { [plan] in
                let end = await RunSession(plan, leader: leader, in: world).perform()
                events(.ended(index, status: end.status.rawValue, isSignal: false))
            }
        }

        func tell(_ order: SegmentOrder) { self.leader.take(order) }
        func giveUp() { self.leader.starts.finish() }
        func interrupt() {}
    }

    /// A segment's link to a leader in the same process, on the same clock.
    private final class Leader: RunLeader {
        let orders: AsyncStream<SegmentOrder>
        private let order: AsyncStream<SegmentOrder>.Continuation
        private let begin: AsyncStream<Int64>
        let starts: AsyncStream<Int64>.Continuation
        private let report: @Sendable (SegmentReport) -> Void
        let clockOffset: Int64 = 0
        let clock: ClockRecord? = nil

        init(_ report: @escaping @Sendable (SegmentReport) -> Void) {
            (self.orders, self.order) = AsyncStream<SegmentOrder>.makeStream()
            (self.begin, self.starts) = AsyncStream<Int64>.makeStream()
            self.report = report
        }

        func start() async -> Int64? {
            self.report(.ready)
            return await self.begin.first { _ in true }
        }

        func tell(_ report: SegmentReport) { self.report(report) }

        func take(_ order: SegmentOrder) {
            if case .start(let time) = order { self.starts.yield(time) } else { self.order.yield(order) }
        }
    }

    /// CLOCK_REALTIME is the virtual clock too.
    private static func onVirtualClock(_ scenario: ScenarioOptions) -> ScenarioOptions {
        var scenario = scenario
        scenario.common.segment.realtimeOffset = 0
        for index in scenario.groups.indices { scenario.groups[index].work.options.segment.realtimeOffset = 0 }
        return scenario
    }

    /// The faults of the broker that the groups share.
    private static func faults(of scenario: ScenarioOptions) -> FaultPlan {
        for group in scenario.groups {
            guard case .embedded(let arguments) = group.options.target else { continue }
            guard case .broker(let options) = Invocation.parse(["broker"] + arguments) else { break }
            return options.faults
        }
        return FaultPlan()
    }

    private init(
        _ status: RunResult.ExitStatus,
        _ heard: Heard,
        _ broker: BrokerCounters,
        _ folder: ScratchFolder
    ) throws {
        self.status = status.rawValue
        self.errorLines = heard.lines
        self.broker = broker
        self.folder = folder
        self.record = try RunJSON.read(directory: folder.path("out"))
        let laws = try RunLaws(directory: folder.path("out"))
        #expect(laws.broken == [])
    }

    private final class Heard: Sendable {
        private let all = Mutex<[String]>([])
        var lines: [String] { self.all.withLock(\.self) }
        func add(_ line: String) { self.all.withLock { $0.append(line) } }
    }

    /// The broker of the network as that of the run.
    private final class CoreBroker: RunBroker {
        private let network: NIOLoopBound<VirtualNetwork<VirtualBroker>>
        let port = 1883

        init(_ network: NIOLoopBound<VirtualNetwork<VirtualBroker>>) { self.network = network }

        func counters() -> BrokerCounters? { self.network.value.server.broker.counters }
        func stop() {}
    }
}

private func words(_ line: String) -> [String] { line.split(whereSeparator: \.isWhitespace).map(String.init) }

extension CountPerQoS {
    /// At QoS 0, 1 and 2.
    var all: [Int] { [Int(self.qos0), Int(self.qos1), Int(self.qos2)] }
}
