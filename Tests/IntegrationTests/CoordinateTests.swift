import Foundation
import Measurement
import Report
import Synchronization
import TestSupport
import Testing

/// The segments that a coordinator waits for.
///
/// One that ends before it has joined ends the coordinator as well, which would wait for it until --join-timeout and
/// not know its words.
private final class Joining: Sendable {
    /// Less than the coordinator's: a segment without an answer ends first, and says what it met.
    static let timeout = ["--join-timeout", "60s"]

    private let coordinator: RunningProgram
    private let failures = Mutex<[String]>([])

    init(_ coordinator: RunningProgram) { self.coordinator = coordinator }

    func watch(_ segment: RunningProgram, _ index: Int) {
        Task {
            guard let ending = try? await segment.ended(),
                let lines = try? await self.coordinator.lines(until: { _ in true })
            else { return }
            let hasJoined = lines.contains { $0.contains("segment \(index)/") && $0.contains("has joined") }
            if hasJoined || self.coordinator.hasEnded { return }
            let words = "segment \(index) ended before it had joined, status \(ending.status): \(ending.errors)"
            self.failures.withLock { $0.append(words) }
            self.coordinator.send(SIGKILL)
        }
    }

    /// Before the segments are killed, which ends them too.
    func report() {
        for words in self.failures.withLock({ $0 }) { Issue.record("\(words)") }
    }
}

/// A coordinator and its segments as processes, and the scenario that they share.
private struct Party {
    let folder: ScratchFolder
    let coordinator: RunningProgram
    let port: Int
    /// The token that the coordinator prints for its segments, as a variable of the environment.
    let password: String
    let joining: Joining

    static func scenario(_ target: String, seconds: Int, more: String = "") -> String {
        """
        name: fleet
        target: mqtt://\(target)
        groups:
          sensors:
            clients: 6
            publish: { topic: "fleet/%i/t", qos: 1, rate: 300/s }
          backend:
            clients: 4
            subscribe: [{ filter: "fleet/+/t", qos: 1 }]
        duration: \(seconds)s
        thresholds:
          - "delivery_lost == 0"
        \(more)
        """
    }

    /// Starts a coordinator for two segments.
    static func with<Result>(
        _ scenario: String,
        _ options: String = "",
        _ body: (Party) async throws -> Result
    ) async throws -> Result {
        let folder = try ScratchFolder()
        let file = try folder.write(scenario, to: "fleet.yaml")
        let words =
            ["coordinate", file, "--segments", "2", "--listen", "127.0.0.1:0", "--out", folder.path("all")]
            + options.split(separator: " ").map(String.init)
        return try await ClamorBinary.with(words) { coordinator in
            let line = try await coordinator.line { $0.contains("segments at") }
            let port = try #require(line.split(separator: ":").last.flatMap { Int($0) })
            let command = try await coordinator.line { $0.hasPrefix("start each with ") }
            let words = command.split(separator: " ").map(String.init)
            let password = try #require(words.first { $0.hasPrefix("CLAMOR_COORDINATOR_PASSWORD=") })
            #expect(words.contains("mqtt://127.0.0.1:\(port)") && words.contains("I/2"))
            let joining = Joining(coordinator)
            defer { joining.report() }
            return try await body(
                Party(folder: folder, coordinator: coordinator, port: port, password: password, joining: joining)
            )
        }
    }

    /// Starts a segment that the coordinator waits for.
    func segment(_ index: Int, _ options: String = "") throws -> RunningProgram {
        let segment = try self.start(index, options.split(separator: " ").map(String.init) + Joining.timeout)
        self.joining.watch(segment, index)
        return segment
    }

    /// Starts a segment that is to be refused.
    func stranger(
        _ index: Int,
        of count: Int = 2,
        file: String = "fleet.yaml",
        _ options: String = "",
        environment: [String]? = nil
    ) throws -> RunningProgram {
        let words = options.split(separator: " ").map(String.init)
        return try self.start(index, of: count, file: file, words, environment: environment)
    }

    private func start(
        _ index: Int,
        of count: Int = 2,
        file: String = "fleet.yaml",
        _ options: [String],
        environment: [String]? = nil
    ) throws -> RunningProgram {
        try ClamorBinary.start(
            [
                "run", self.folder.path(file), "--coordinator", "127.0.0.1:\(self.port)", "--segment",
                "\(index)/\(count)", "--out", self.folder.path("s\(index)"),
            ] + options,
            environment: environment ?? [self.password]
        )
    }

    var record: RunRecord { get throws { try RunJSON.read(directory: self.folder.path("all")) } }
}

extension RunRecord {
    /// Every message of the scenario came, in all segments.
    fileprivate func expectWhole(seconds: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(self.isSound, "\(self.verdict?.reasons ?? [])", sourceLocation: sourceLocation)
        #expect(self.count("publish_offered") == 300 * seconds, sourceLocation: sourceLocation)
        #expect(self.count("publish_acked") == 300 * seconds, sourceLocation: sourceLocation)
        #expect(self.count("delivery_expected") == 1_200 * seconds, sourceLocation: sourceLocation)
        #expect(self.count("received", ["retained": "false"]) == 1_200 * seconds, sourceLocation: sourceLocation)
        #expect(self.count("delivery_lost") == 0, sourceLocation: sourceLocation)
        #expect(self.duration("delivery_duration")?.count == UInt64(1_200 * seconds), sourceLocation: sourceLocation)
    }
}

extension Integration {
    @Suite("One run over many machines", .takes(4))
    struct CoordinateTests {
        @Test("a coordinator begins all segments at one moment, and merges what they measured")
        func whole() async throws {
            let (record, counters) = try await BrokerProgram.with { broker in
                try await Party.with(Party.scenario("127.0.0.1:\(broker.port)", seconds: 3)) { party in
                    let segments = try [1, 2].map { try party.segment($0) }
                    let ending = try await party.coordinator.ended()
                    #expect(ending.status == 0, "\(ending.errors)")
                    #expect(ending.output.contains("2 of 2 are there"))
                    for segment in segments { #expect(try await segment.ended().status == 0) }
                    let parts = try [1, 2].map { try RunJSON.read(directory: party.folder.path("s\($0)")) }
                    // To the second of their clocks, which is one.
                    #expect(Set(parts.map(\.startedAt)).count == 1)
                    #expect(party.folder.entries("all/segments") == ["1", "2"])
                    return try party.record
                }
            }
            record.expectWhole(seconds: 3)
            #expect(record.segment.merged == 2)
            #expect(record.thresholds.map(\.ok) == [true])
            #expect(counters.received.total == 900 && counters.delivered.total == 3_600)
        }

        @Test("two segments and one process of the same seed have the same counts, and all durations")
        func same() async throws {
            let (records, _) = try await BrokerProgram.with { broker in
                let scenario = Party.scenario("127.0.0.1:\(broker.port)", seconds: 3, more: "seed: 11")
                return try await Party.with(scenario) { party in
                    let segments = try [1, 2].map { try party.segment($0) }
                    #expect(try await party.coordinator.ended().status == 0)
                    for segment in segments { #expect(try await segment.ended().status == 0) }
                    let alone = try await ClamorBinary.run(
                        ["run", party.folder.path("fleet.yaml"), "--out", party.folder.path("alone"), "--quiet"]
                    )
                    #expect(alone.status == 0, "\(alone.errors)")
                    return try ["all", "alone", "s1", "s2"].map { try RunJSON.read(directory: party.folder.path($0)) }
                }
            }
            let (merged, alone) = (records[0], records[1])
            #expect(merged.plan["seed"] == alone.plan["seed"])
            let names = [
                "publish_offered", "publish_sent", "publish_acked", "received", "delivery_expected",
                "delivery_received",
                "delivery_lost", "delivery_missing", "delivery_duplicated", "payload_bytes_sent",
                "payload_bytes_received",
            ]
            for name in names { #expect(merged.count(name) == alone.count(name), "\(name)") }
            for metric in alone.metrics where metric.duration != nil && metric.labels["loop"] == nil {
                let other = merged.metrics.first { $0.name == metric.name && $0.labels == metric.labels }
                let isPerEvent = ["connect", "publish", "subscribe", "delivery"].contains { metric.name.hasPrefix($0) }
                #expect(other?.duration != nil, "\(metric.name) \(metric.labels)")
                if isPerEvent { #expect(other?.duration?.count == metric.duration?.count, "\(metric.name)") }
            }
            for record in [merged, alone] {
                let samples = record.duration("delivery_duration")?.count
                #expect(samples == UInt64(record.count("received", ["retained": "false"])))
            }
            // Percentiles are those of the joint data.
            var joint = Histogram()
            for segment in records[2...] {
                let encoded = try #require(
                    segment.metrics.first { $0.name == "publish_ack_duration" }?.duration?.histogram
                )
                joint.merge(try Histogram(decodingV2: encoded))
            }
            let whole = try #require(merged.duration("publish_ack_duration"))
            #expect(whole.count == joint.count && whole.count == 900)
            let p99 = try #require(DurationReading(joint)?.p99)
            #expect(abs(whole.p99 - p99) <= p99 / 100)
        }

        @Test("--processes of a host are one segment")
        func processes() async throws {
            let (record, _) = try await BrokerProgram.with { broker in
                try await Party.with(Party.scenario("127.0.0.1:\(broker.port)", seconds: 3)) { party in
                    let segments = try [1, 2].map { try party.segment($0, "--processes 2 --threads 1") }
                    let ending = try await party.coordinator.ended()
                    #expect(ending.status == 0, "\(ending.errors)")
                    for segment in segments { #expect(try await segment.ended().status == 0) }
                    return try party.record
                }
            }
            record.expectWhole(seconds: 3)
        }

        @Test("a threshold that is broken on the whole ends the run, exit 99")
        func aborts() async throws {
            _ = try await BrokerProgram.with { broker in
                let scenario = Party.scenario(
                    "127.0.0.1:\(broker.port)",
                    seconds: 60,
                    more: "  - \"publish_offered count < 400 abort\""
                )
                try await Party.with(scenario) { party in
                    let segments = try [1, 2].map { try party.segment($0) }
                    let ending = try await party.coordinator.ended()
                    #expect(ending.status == 99, "\(ending.errors)")
                    for segment in segments { _ = try await segment.ended() }
                    let record = try party.record
                    #expect(record.reasonCodes.contains("threshold"))
                    // Neither segment alone has offered that many when it is broken.
                    #expect(record.count("publish_offered") >= 400 && record.count("publish_offered") < 18_000)
                    #expect(record.thresholds.map(\.ok) == [true, false])
                }
            }
        }

        @Test("what does not belong to the run is refused in one line, and the run goes on without it")
        func refusals() async throws {
            _ = try await BrokerProgram.with { broker in
                let scenario = Party.scenario("127.0.0.1:\(broker.port)", seconds: 2)
                try await Party.with(scenario) { party in
                    try party.folder.write(
                        scenario.replacing("clients: 6", with: "clients: 7"),
                        to: "other.yaml"
                    )
                    let first = try party.segment(1)
                    try await party.coordinator.line { $0.contains("1 of 2 are there") }
                    for (segment, words) in [
                        (try party.stranger(2, file: "other.yaml"), "its file has another plan"),
                        (try party.stranger(2, of: 3), "it is one of 3 segments"),
                        (try party.stranger(1, "--join-timeout 1s"), "segment 1 is there already"),
                    ] {
                        let ending = try await segment.ended()
                        #expect(ending.status == 69)
                        #expect(ending.errorLines.count == 1 && ending.errors.contains(words), "\(ending.errors)")
                    }
                    let second = try party.segment(2)
                    let ending = try await party.coordinator.ended()
                    #expect(ending.status == 0, "\(ending.errors)")
                    #expect(ending.errorLines.filter { $0.contains("is refused") }.count == 3)
                    for segment in [first, second] { #expect(try await segment.ended().status == 0) }
                    try party.record.expectWhole(seconds: 2)
                }
            }
        }

        @Test("a segment needs the password that the coordinator prints; SIGINT ends a coordinator without segments")
        func token() async throws {
            try await Party.with(Party.scenario("127.0.0.1:9", seconds: 1)) { party in
                let none = try await party.stranger(1, environment: []).ended()
                #expect(none.status == 64)
                #expect(none.errorLines.count == 1 && none.errors.contains("needs a password"), "\(none.errors)")
                let wrong = try party.stranger(1, environment: ["CLAMOR_COORDINATOR_PASSWORD=wrong"])
                try await party.coordinator.line(on: .errors) {
                    $0.contains("logins with a wrong user or password: 1 from 127.0.0.1")
                }
                let ending = try await wrong.ended()
                #expect(ending.status == 69)
                #expect(ending.errorLines.count == 1 && ending.errors.contains("--coordinator"), "\(ending.errors)")
                party.coordinator.send(SIGINT)
                let last = try await party.coordinator.ended()
                #expect(last.status == 105)
                #expect(last.errors.contains("given up before it began"))
            }
        }

        @Test("segments that are missing are named after --join-timeout, and the others give up")
        func missing() async throws {
            try await Party.with(Party.scenario("127.0.0.1:9", seconds: 1), "--join-timeout 3s") { party in
                let segment = try party.segment(2)
                let ending = try await party.coordinator.ended()
                #expect(ending.status == 69)
                #expect(ending.errors.contains("of 2 segment 1 did not join within --join-timeout"))
                let alone = try await segment.ended()
                #expect(alone.status == 105)
                #expect(alone.errors.contains("given up before it began"))
                #expect(party.folder.entries() == ["fleet.yaml"])
            }
        }

        @Test("SIGINT to the coordinator ends all segments in good order, exit 105")
        func interrupted() async throws {
            _ = try await BrokerProgram.with { broker in
                try await Party.with(Party.scenario("127.0.0.1:\(broker.port)", seconds: 60)) { party in
                    let segments = try [1, 2].map { try party.segment($0) }
                    try await party.coordinator.line { $0.contains("measure") && !$0.contains(" sent 0/s") }
                    party.coordinator.send(SIGINT)
                    let ending = try await party.coordinator.ended()
                    #expect(ending.status == 105, "\(ending.errors)")
                    for segment in segments { #expect(try await segment.ended().status == 105) }
                    let record = try party.record
                    #expect(record.count("delivery_lost") == 0)
                    #expect(record.count("delivery_expected") == 4 * record.count("publish_acked"))
                }
            }
        }

        @Test(
            "a segment that is killed is named; with --on-lost continue the others are merged",
            arguments: [false, true]
        )
        func killed(continues: Bool) async throws {
            _ = try await BrokerProgram.with { broker in
                let scenario = Party.scenario("127.0.0.1:\(broker.port)", seconds: 15)
                try await Party.with(scenario, continues ? "--on-lost continue" : "") { party in
                    let first = try party.segment(1)
                    let second = try party.segment(2)
                    try await party.coordinator.line { $0.contains("measure") && !$0.contains(" sent 0/s") }
                    second.send(SIGKILL)
                    let ending = try await party.coordinator.ended()
                    #expect(ending.errors.contains("segment 2 ("))
                    #expect(ending.errors.contains("its connection was lost"))
                    #expect(ending.errors.contains("--on-lost abort") == !continues)
                    // Without its ledger no loss is known, so the threshold on it fails.
                    #expect(ending.status == (continues ? 99 : 105), "\(ending.errors)")
                    _ = try await first.ended()
                    let record = try party.record
                    #expect(record.reasonCodes.contains("segment-lost"))
                    #expect(record.state == (continues ? .unreconciled : .aborted))
                }
            }
        }

        @Test("segments finish without their coordinator, and merge adds their results")
        func orphans() async throws {
            _ = try await BrokerProgram.with { broker in
                try await Party.with(Party.scenario("127.0.0.1:\(broker.port)", seconds: 3)) { party in
                    let segments = try [1, 2].map { try party.segment($0) }
                    try await party.coordinator.line { $0.contains("measure") && !$0.contains(" sent 0/s") }
                    party.coordinator.send(SIGKILL)
                    for segment in segments {
                        let ending = try await segment.ended()
                        #expect(ending.status == 0, "\(ending.errors)")
                        #expect(ending.errors.contains("the coordinator did not fetch the results"))
                    }
                    let merge = try await ClamorBinary.run(
                        ["merge", party.folder.path("s1"), party.folder.path("s2"), "--out", party.folder.path("all")]
                    )
                    #expect(merge.status == 0, "\(merge.errors)")
                    try party.record.expectWhole(seconds: 3)
                }
            }
        }
    }

    @Suite(
        "One run over hosts with clocks of their own",
        .takes(4),
        .enabled(if: HostNetwork.canBeMade, HostNetwork.reason)
    )
    struct ManyHostsTests {
        private static let password = "CLAMOR_COORDINATOR_PASSWORD=secret"
        /// Nanoseconds, and nanoseconds per second.
        private static let (ahead, gain): (Int64, Int64) = (90_000_000_000, 100_000)

        /// Broker, coordinator and two segments, each on a host; the second segment's clock is ahead, and gains.
        ///
        /// `isWatched`: a watch on the broker's host sees the broker, and so does the first segment, with --watch-pid.
        private func run(
            seconds: Int,
            isWatched: Bool = false,
            during: (HostNetwork, RunningProgram) async throws -> Void = { _, _ in }
        ) async throws -> (record: RunRecord, ending: RunningProgram.Ending, segments: [RunRecord]) {
            let folder = try ScratchFolder()
            let file = try folder.write(
                Party.scenario("\(HostNetwork.address(of: 0)):1883", seconds: seconds),
                to: "fleet.yaml"
            )
            return try await HostNetwork.with { network in
                let broker = try network.clamor(0, ["broker", "-h", "0.0.0.0", "-p", "1883"])
                defer { broker.send(SIGKILL) }
                try await broker.line { $0.hasPrefix("listening") }
                let place = "\(HostNetwork.address(of: 1)):7883"
                let coordinator = try network.clamor(
                    1,
                    [
                        "coordinate", file, "--segments", "2", "--listen", place, "--user", "segment", "--out",
                        folder.path("all"),
                    ] + (isWatched ? ["--watches", "1", "--threshold", "server_memory_bytes < 1GiB"] : []),
                    environment: [Self.password]
                )
                defer { coordinator.send(SIGKILL) }
                let joining = Joining(coordinator)
                // At once: they need not wait for the coordinator to listen.
                let watch =
                    isWatched
                    ? try network.clamor(
                        0,
                        ["watch", "--pid", "\(broker.pid)", "--join", "mqtt://segment@\(place)"] + Joining.timeout,
                        environment: [Self.password]
                    ) : nil
                defer { watch?.send(SIGKILL) }
                let segments = try (1...2).map { index in
                    let segment = try network.clamor(
                        index + 1,
                        [
                            "run", file, "--coordinator", "mqtt://segment@\(place)", "--segment", "\(index)/2", "--out",
                            folder.path("s\(index)"),
                        ] + Joining.timeout
                            + (isWatched && index == 1 ? ["--watch-pid", "\(broker.pid)"] : []),
                        environment: [Self.password]
                            + (index == 2
                                ? ["CLAMOR_CLOCK_AHEAD=\(Self.ahead)", "CLAMOR_CLOCK_GAIN=\(Self.gain)"] : [])
                    )
                    joining.watch(segment, index)
                    return segment
                }
                defer { for segment in segments { segment.send(SIGKILL) } }
                defer { joining.report() }
                try await during(network, coordinator)
                let ending = try await coordinator.ended()
                for segment in segments { #expect(try await segment.ended().status == 0) }
                if let watch { #expect(try await watch.ended().status == 0) }
                return (
                    try RunJSON.read(directory: folder.path("all")), ending,
                    try (1...2).map { try RunJSON.read(directory: folder.path("s\($0)")) }
                )
            }
        }

        @Test("a watch on the server's host has the figures of --watch-pid there")
        func watched() async throws {
            let (record, ending, segments) = try await self.run(seconds: 6, isWatched: true)
            #expect(ending.status == 0, "\(ending.errors)")
            #expect(ending.output.contains("a server watch ("))
            func server(_ name: String, _ record: RunRecord) throws -> Metric {
                try #require(record.metrics.first { $0.name == name && $0.labels["process"] != nil }, "\(name)")
            }
            // Both look once a second, not at one moment; the watch begins with the run, and the other before it.
            let times = try [record, segments[0]].map { try #require(try server("server_cpu_time", $0).counter) }
            // The figures of the segment alone would be the same to the digit.
            #expect(times[0].value != times[1].value)
            #expect(times[0].value > 0.01 && abs(times[0].value - times[1].value) < 0.05 + 0.1 * times[1].value)
            let rates = times.compactMap(\.rate)
            #expect(rates.count == 2 && abs(rates[0] - rates[1]) < 0.01 + 0.1 * rates[1])
            for name in ["server_memory_bytes", "server_descriptors"] {
                let highest = try [record, segments[0]].map { try #require(try server(name, $0).gauge?.max) }
                #expect(highest[0] > 10 && abs(highest[0] - highest[1]) < 0.02 * highest[1] + 1, "\(name)")
            }
            #expect(try server("server_tcp_retransmits", record).counter?.value == 0)
            #expect(record.thresholds.first { $0.expression.hasPrefix("server_memory") }?.ok == true)
            #expect(record.metrics.contains { $0.name == "server_cpu_per_message" })
        }

        @Test("counts are exact, and the clock of another host is known within the stated error")
        func clocks() async throws {
            let (record, ending, segments) = try await self.run(seconds: 12)
            #expect(ending.status == 0, "\(ending.errors)")
            record.expectWhole(seconds: 12)
            let clock = try #require(segments[1].segment.clock)
            let (correction, error) = (try #require(clock.correctionSeconds), try #require(clock.errorSeconds))
            #expect(segments[0].segment.clock?.correctionSeconds == nil)
            // At least one estimate was made anew, so the correction holds part of what the clock gained.
            #expect(clock.exchanges ?? 0 > 16)
            let (ahead, gained) = (Double(Self.ahead) / 1e9, Double(Self.gain) / 1e9 * 60)
            #expect(-correction >= ahead - error && -correction <= ahead + gained + error)
            #expect(record.duration("delivery_duration")?.clockError ?? 0 >= error)
            // One clock is 90 s ahead; a delivery on one wire takes no second.
            #expect(record.duration("delivery_duration")?.p50 ?? 60 < 1)
        }

        @Test("a link that is cut for five seconds is named, and nothing is lost")
        func cut() async throws {
            let route = "blackhole \(HostNetwork.address(of: 1))/32"
            let (record, ending, _) = try await self.run(seconds: 10) { network, coordinator in
                try await coordinator.line { $0.contains("measure") && !$0.contains(" sent 0/s") }
                try await network.shell(3, "ip route add \(route)")
                // The time of the cut is the input of this test; nothing waits for it to be enough.
                try await Task.sleep(for: .seconds(5))
                try await network.shell(3, "ip route del \(route)")
            }
            #expect(ending.status == 0, "\(ending.errors)")
            #expect(ending.errorLines.contains { $0.contains("segment 2 (") && $0.contains("is back after") })
            record.expectWhole(seconds: 10)
        }

        @Test("a wrong password is refused in one line")
        func password() async throws {
            let folder = try ScratchFolder()
            let file = try folder.write(Party.scenario("127.0.0.1:9", seconds: 1), to: "fleet.yaml")
            try await HostNetwork.with { network in
                let place = "\(HostNetwork.address(of: 1)):7883"
                let coordinator = try network.clamor(
                    1,
                    ["coordinate", file, "--segments", "1", "--listen", place, "--user", "segment"],
                    environment: [Self.password]
                )
                defer { coordinator.send(SIGKILL) }
                try await coordinator.line { $0.contains("1 segment at") }
                let segment = try network.clamor(
                    2,
                    ["run", file, "--coordinator", "segment@\(place)", "--segment", "1/1"],
                    environment: ["CLAMOR_COORDINATOR_PASSWORD=wrong"]
                )
                let ending = try await segment.ended()
                #expect(ending.status == 69)
                #expect(ending.errorLines.count == 1 && ending.errors.contains("--coordinator"), "\(ending.errors)")
            }
        }
    }
}
