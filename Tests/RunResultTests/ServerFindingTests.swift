import Measurement
import RunResult
import Testing

@Suite("The server's CPU as the limit")
struct ServerFindingTests {
    /// A run of a server whose thread uses these shares of a core, from the first second of load on.
    private func run(
        server: @escaping (Int) -> Double?,
        generator: Double = 0.3,
        _ body: (inout FindingRun) -> Void = { _ in }
    ) -> FindingsRecord? {
        var run = FindingsTests.run()
        run.set("generator_cpu", ["loop": "0"], .gauge) { _ in generator }
        run.set("server_thread_cpu", ["process": "mosquitto", "thread": "mosquitto"], .gauge) { server($0) }
        run.set("server_thread_cpu", ["process": "mosquitto", "thread": "log"], .gauge) { _ in 0.05 }
        body(&run)
        return run.record.findings(in: run.timeline)
    }

    /// A closed loop whose answers stop for a while.
    private static func stall(_ run: inout FindingRun) {
        run.record.plan["pacing"] = "closed"
        run.stall(at: 10, for: 2)
    }

    /// Answers fall behind from this second on.
    private func backlog(_ run: inout FindingRun, from second: Int) {
        run.change("publish_acked", at: second..<31) { $0 * 0.7 }
    }

    @Test("a thread that fills a core while messages pile up is the limit, with its share beside the generator's")
    func fills() throws {
        let findings = try #require(
            self.run {
                $0 >= 12 ? 0.97 : 0.4
            } _: {
                self.backlog(&$0, from: 12)
            }
        )
        #expect(
            findings.sentence.hasSuffix(
                "; the server's CPU was the limit from 12 s on: thread mosquitto used 97 % of a core, "
                    + "and the generator's busiest event loop 30 %"
            ),
            "\(findings.sentence)"
        )
        #expect(findings.events.map(\.kind).contains(.server))
    }

    @Test("in a closed loop a full core is the limit")
    func closed() throws {
        let findings = self.run { _ in
            0.97
        } _: {
            $0.record.plan["pacing"] = "closed"
        }
        #expect(try #require(findings).sentence.contains("the server's CPU was the limit from 1 s on"))
    }

    @Test("a full core that kept up with the planned rate is a mark, and no limit")
    func keepsUp() throws {
        let findings = try #require(self.run { $0 >= 12 ? 0.97 : 0.4 })
        #expect(findings.sentence == "nothing broke")
        #expect(findings.events.map(\.text).first?.hasPrefix("the server had a core full from 12 s on") == true)
    }

    @Test("a lost connection is not explained by it")
    func lost() throws {
        let findings = self.run { _ in
            0.97
        } _: { run in
            run.record.plan["pacing"] = "closed"
            run.set("disconnects", ["reason": "reset"], .counter) { $0 == 12 ? 8 : 0 }
        }
        #expect(try #require(findings).sentence.contains("lost the connection"))
        #expect(try #require(findings).sentence.contains("the server's CPU") == false)
    }

    @Test("what breaks while the core is full is explained by it")
    func explains() throws {
        let findings = self.run {
            $0 >= 8 ? 0.96 : 0.4
        } _: {
            Self.stall(&$0)
        }
        #expect(try #require(findings).sentence.hasPrefix("answers stopped at 10 s for 2 s"))
        #expect(try #require(findings).sentence.contains("; the server's CPU was the limit from 8 s on"))
    }

    @Test("what breaks before is not")
    func before() throws {
        let findings = self.run {
            $0 >= 20 ? 0.96 : 0.4
        } _: {
            Self.stall(&$0)
        }
        #expect(try #require(findings).sentence.contains("the server's CPU") == false)
        #expect(try #require(findings).events.contains { $0.kind == .server })
    }

    static let others: [(String, @Sendable (Int) -> Double?, Double)] = [
        ("a server that has CPU left", { _ in 0.85 }, 0.3),
        ("two intervals of a full core", { (10..<12).contains($0) ? 1 : 0.3 }, 0.3),
        ("an unknown share", { _ in nil }, 0.3),
        ("a generator that fills a core as well", { _ in 1 }, 0.95),
    ]

    @Test("no limit of the server is found", arguments: others)
    func none(_ name: String, _ server: @escaping @Sendable (Int) -> Double?, _ generator: Double) throws {
        let findings = try #require(self.run(server: server, generator: generator))
        #expect(findings.events.allSatisfy { $0.kind != .server }, "\(name): \(findings.sentence)")
    }
}
