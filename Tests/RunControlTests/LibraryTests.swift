import EmbeddedBroker
import Foundation
import RunControl
import TestSupport
import Testing

/// The public types, as other programs use them: in this process and over sockets.
@Suite("The run as a library")
struct LibraryTests {
    /// A server, and a scenario for it whose results are in a directory of the test.
    private static func serving(_ groups: String, _ body: (Scenario, BrokerServer) async throws -> Void) async throws {
        let folder = try ScratchFolder()
        let server = try await BrokerServer.start(BrokerConfiguration(host: "127.0.0.1", port: 0))
        let port = try #require(server.listeners.first).port
        var scenario = try Scenario("target: mqtt://127.0.0.1:\(port)\n\(groups)")
        scenario.directory = folder.path("out")
        do { try await body(scenario, server) } catch { Issue.record(error) }
        _ = await server.stop()
    }

    @Test("a scenario runs in ten lines; its record answers thresholds, and its directory has the files of the command")
    func tenLines() async throws {
        let groups = """
            duration: 0
            groups:
              devices: {clients: 4, subscribers: 4, topology: pair, publish: {qos: 1, limit: 200}}
            thresholds: ["delivery_received == 200", "delivery_received > 200"]
            """
        try await Self.serving(groups) { scenario, _ in
            let run = try await Run(scenario).finished()
            #expect(try run.record.judge("delivery_lost == 0").isMet)
            #expect(try run.record.judge("delivery_received == 200").value == 200)
            #expect(try !run.record.judge("publish_ack_duration count < 200").isMet)
            #expect(run.record.brokenThresholds == ["delivery_received > 200"])
            let files = try FileManager.default.contentsOfDirectory(atPath: try #require(run.directory))
            #expect(Set(files).isSuperset(of: ["run.json", "timeline.csv", "report.html"]))
            // No condition, no metric of that name, and none of such a run.
            for text in ["delivery_received", "delivery_lots == 0", "iq_duration p99 < 1s"] {
                #expect(throws: (any Error).self, "\(text)") { try run.record.judge(text) }
            }
        }
    }

    @Test(
        "a cancelled task ends the load in good order: all that was sent is awaited, and the record says that it was ended"
    )
    func cancelled() async throws {
        let groups =
            "duration: 1h\ngroups: {devices: {clients: 1, subscribers: 1, topology: pair, publish: {rate: 100/s}}}"
        try await Self.serving(groups) { scenario, server in
            let work = Task { try await Run(scenario).finished() }
            // The server announces no message; the pause only separates two questions. The run lasts an hour, so no time
            // decides the outcome: it is cancelled once there are messages, however late.
            while await server.counters().received.total < 20 { try await Task.sleep(for: .milliseconds(5)) }
            work.cancel()
            let record = try await work.value.record
            #expect(!record.isValid)
            #expect(record.reasons.contains { $0.contains("[interrupted]") }, "\(record.reasons)")
            #expect(try record.judge("delivery_lost == 0").isMet)
        }
    }

    @Test(
        "a mistake is named with its place, and the broker that only the program has is refused",
        arguments: [
            ("groups: {a: {clients: x, publish: {qos: 1}}}", "clients"), ("groups: 3", "groups"),
            ("target: embedded\ngroups: {a: {clients: 1, publish: {qos: 1, limit: 1}}}", "clamor broker"),
        ]
    )
    func refused(_ text: String, _ word: String) async throws {
        do {
            _ = try await Run(try Scenario(text)).finished()
            Issue.record("it ran")
        } catch {
            #expect("\(error)".contains(word), "\(error)")
        }
    }
}
