import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("MQTT and XMPP clients side by side, by clamor run")
    struct MixedRunTests {
        /// Numbers of clients, rates and sizes that no two groups share, so that one cannot pass for the other.
        private static func scenario(
            _ sensors: String,
            _ chat: String,
            domain: String = "localhost",
            duration: String = "2s"
        ) -> String {
            """
            name: mixed
            seed: 11
            duration: \(duration)
            groups:
              sensors:
                clients: 6
                subscribers: 3
                topology: fan-in
                publish: { topic: "fleet/%i/telemetry", qos: 1, size: 64, rate: 120/s }
                \(sensors)
              chat:
                clients: 4
                jid: user%i@\(domain)
                password: \(XMPPServer.password)
                message: { size: 80, rate: 50/s }
                \(chat)
            thresholds:
              - "publish_ack_duration{group=sensors} p99 < 10s"
              - "connect_duration{group=chat} count == 4"
              - "delivery_lost == 0"
            """
        }

        private static func run(
            _ scenario: String,
            _ flags: String = "",
            beside body: (RunningProgram) async throws -> Void = { _ in }
        ) async throws -> ClamorRun {
            let folder = try ScratchFolder()
            let file = try folder.write(scenario, to: "mixed.yaml")
            return try await ClamorRun.of("run \(file) --threads 2 --per-client --summary full \(flags)", beside: body)
        }

        /// The books of both groups, with what each offered.
        private func checkBooks(_ record: RunRecord, _ offered: [String: Int]) {
            #expect(record.books.map(\.name) == ["sensors QoS 1", "chat message"])
            #expect(record.books.allSatisfy { $0.balances }, "\(record.books)")
            #expect(record.count("publish_offered", ["group": "sensors"]) == offered["sensors"])
            #expect(record.count("stanza_offered", ["group": "chat"]) == offered["chat"])
            for (book, name) in zip(record.books, ["sensors", "chat"]) {
                let copies = name == "sensors" ? 3 : 1
                #expect(book.expected == offered[name].map { UInt64($0 * copies) }, "\(name)")
                #expect(book.received == book.expected, "\(name)")
                #expect(book.lost == 0, "\(name)")
                #expect(book.duplicated == 0, "\(name)")
            }
        }

        @Test(
            "one ejabberd serves both: one timeline, two ledgers that balance, one report",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)")
        )
        func ejabberd() async throws {
            let certificates = try await Certificates.all()
            let (run, domain) = try await Ejabberd.with(users: 4) { server in
                let run = try await Self.run(
                    Self.scenario(
                        """
                        target: mqtt://127.0.0.1:\(server.port)
                            connect: { rate: 100/s, protocol: 5, keep_alive: 60s }
                            username: \(server.username)
                            password: \(Ejabberd.password)
                        """,
                        """
                        target: xmpp://127.0.0.1:\(server.clientPort)
                            ca_file: \(certificates.authority)
                        """,
                        domain: server.domain
                    )
                )
                return (run, server.domain)
            }
            let record = run.record
            #expect(run.status == 0, "\(run.ending.errors) \(record.thresholds)")
            #expect(run.ending.errors.isEmpty)
            #expect(record.isSound, "\(record.reasonCodes)")
            #expect(record.errors.isEmpty)
            // By arithmetic: 120/s and 50/s for the same 2 s.
            self.checkBooks(record, ["sensors": 240, "chat": 100])
            #expect(record.groups?.map(\.name) == ["sensors", "chat"])
            #expect(record.groups?.map(\.protocolName) == ["mqtt", "xmpp"])
            #expect(record.groups?.map(\.up) == [9, 4])
            #expect(record.groups?.allSatisfy { $0.ledger.on && $0.ledger.overflowed == 0 } == true)
            #expect(record.groups?.map(\.ledger.streams) == [18, 4])
            #expect(record.ledger.streams == 22)
            #expect(record.stages.count { $0.name == "measure" } == 1)
            #expect(record.generator.loopCPUShares?.count == 2)
            #expect(record.metrics.filter { $0.name == "loop_lag" }.map(\.labels) == [["loop": "0"], ["loop": "1"]])
            #expect(
                Set(record.clients.keys) == ["sensors publishers", "sensors subscribers", "chat clients"]
            )
            try self.checkTimeline(run, domain)
            try self.checkReport(run)
        }

        /// Both are offered their first at once; the groups are sampled one after the other, so a second's end may part them.
        private func checkTimeline(_ run: ClamorRun, _ domain: String) throws {
            let text = try String(contentsOfFile: run.directory + "/timeline.csv", encoding: .utf8)
            var seconds: [String: [Int]] = [:]
            for line in text.split(separator: "\n").dropFirst() {
                let cells = line.split(separator: ",", omittingEmptySubsequences: false)
                guard ["publish_offered", "stanza_offered"].contains(cells[2]), Double(cells[6]) ?? 0 > 0 else {
                    continue
                }
                seconds[String(cells[2]), default: []].append(Int(cells[0]) ?? -1)
            }
            let first = try #require(seconds["publish_offered"]?.first)
            let other = try #require(seconds["stanza_offered"]?.first)
            #expect(abs(first - other) <= 1)
            let rows = try String(contentsOfFile: run.directory + "/clients.csv", encoding: .utf8)
            #expect(rows.split(separator: "\n").count == 1 + 9 + 4)
            #expect(rows.hasPrefix("group,id,qos,"))
            #expect(rows.contains("\nchat,user3@\(domain)/chat,"))
            let log = try String(contentsOfFile: run.directory + "/latency.hlog", encoding: .utf8)
            #expect(log.contains("Tag=publish_ack_duration;group=sensors;leg=puback;qos=1,"))
            #expect(log.contains("Tag=delivery_duration;group=chat;stanza=message,"))
        }

        /// The terminal output, and the report made from the files.
        private func checkReport(_ run: ClamorRun) throws {
            let again = Summary(run.record, detail: .full, files: run.directory).text
            for text in [run.ending.output, again] {
                for words in [
                    "\nObjectives  100 % of ", "\n  delivery_expected\n", "\n    group=chat,stanza=message ",
                    "\n    group=sensors,qos=1  ", "\n    group=chat,phase=bind  ", "\n  stanza_offered\n",
                    "\n    group=sensors,leg=puback,qos=1  ", "  chat message  offered 100 = sent 100 + not sent 0",
                ] {
                    #expect(text.contains(words), "\(words) in\n\(text)")
                }
            }
        }

        /// The broker counts 240 requests, their answers and 60 messages; the last group hears all three.
        @Test("requests beside messages, and a group that hears both, agree with the broker to the message")
        func requests() async throws {
            let run = try await Self.run(
                """
                name: requests
                target: embedded
                duration: 2s
                groups:
                  api:
                    clients: 4
                    subscribers: 2
                    topology: request
                    publish: { topic: ask/%i, response_topic: answers/%c, qos: 1, size: 64, rate: 120/s }
                  news:
                    clients: 3
                    publish: { topic: news/%i, qos: 0, size: 64, rate: 30/s, correlation_data: own }
                  log:
                    clients: 2
                    subscribe: [{ filter: "#", qos: 1 }]
                thresholds:
                  - "delivery_lost{group=log} == 0"
                  - "requests_lost == 0"
                """
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.count("requests_answered", ["group": "api"]) == 240)
            let log = run.record.books.filter { $0.group == "log" }
            #expect(log.map(\.qos) == [0, 1])
            #expect(log.map(\.expected) == [120, 480] && log.map(\.received) == [120, 480])
            #expect(log.map(\.duplicated) == [0, 0])
        }

        @Test("a group that cannot connect is named, exit 69, and the other's figures are kept")
        func oneFails() async throws {
            let nobody = try ReservedPort()
            let run = try await Self.run(
                Self.scenario(
                    "target: embedded",
                    "target: xmpp://127.0.0.1:\(nobody.port)\n    tls: off"
                )
            )
            #expect(run.status == 69)
            #expect(run.ending.errorLines.count == 1, "\(run.ending.errors)")
            #expect(run.ending.errors.hasPrefix("clamor: chat: every connect attempt failed: "))
            #expect(run.record.state == .aborted)
            #expect(run.record.reasonCodes.first == "no-connection")
            #expect(run.record.groups?.map(\.up) == [9, 0])
            #expect(run.record.errors.map(\.kind) == ["refused"])
            #expect(run.record.errors.map(\.group) == ["chat"])
            #expect(run.record.books.first?.expected == 720)
            #expect(run.record.books.first?.received == 720)
            #expect(run.record.books.allSatisfy { $0.balances })
            // Operations that were due while no client could send them.
            #expect(run.record.books.last?.notSent == 100)
            #expect(run.record.thresholds.map(\.ok) == [true, false, false])
            // The deliveries of the chat are neither received nor lost.
            #expect(run.record.thresholds.last?.state == .undecided)
        }

        @Test(
            "SIGINT ends all groups in good order: 105, and what was measured is kept",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)")
        )
        func interrupted() async throws {
            let run = try await XMPPServer.with(.ejabberd, users: 4) { server in
                try await Self.run(
                    Self.scenario(
                        "target: embedded",
                        """
                        target: xmpp://127.0.0.1:\(server.port)
                            ca_file: \(server.certificates.authority)
                        """,
                        domain: server.domain,
                        duration: "1h"
                    )
                ) {
                    try await $0.lines { $0.count { $0.contains(" measure ") } >= 2 }
                    $0.send(SIGINT)
                }
            }
            #expect(run.status == 105)
            #expect(run.record.reasonCodes.first == "interrupted")
            #expect(run.record.books.count == 2)
            #expect(run.record.books.allSatisfy { $0.balances && $0.lost == 0 && $0.sent ?? 0 > 0 })
        }

        @Test("a scenario that the host does not carry is refused with its groups and keys", arguments: [1, 2])
        func tooMany(_ groups: Int) async throws {
            let folder = try ScratchFolder()
            let names = ["a", "b"].prefix(groups)
            let lines = names.map { "  \($0): { clients: 10000000, target: \"mqtt://127.0.0.1:1883\" }\n" }
            let file = try folder.write("groups:\n" + lines.joined(), to: "many.yaml")
            let check = try await ClamorBinary.run(["run", file, "--check"])
            #expect(check.status == 64)
            let load = "clamor: the load of \(groups)0000000 clients (\(names.joined(separator: ", "))) needs "
            #expect(check.errors.hasPrefix(load), "\(check.errors)")
            #expect(check.errors.contains(": lower clients, ") && !check.errors.contains("lower -c"))
        }

        @Test("--check and a wrong file connect nothing and leave nothing")
        func checks() async throws {
            let folder = try ScratchFolder()
            let nobody = try ReservedPort()
            let right = try folder.write(
                "groups: { a: { clients: 3, target: \"mqtt://127.0.0.1:\(nobody.port)\" } }\n",
                to: "right.yaml"
            )
            let check = try await ClamorBinary.run(["run", right, "--check", "--out", folder.path("out")])
            #expect(check.status == 0, "\(check.errors)")
            #expect(check.output.hasPrefix("scenario: 1 group, 3 clients, 10s measured"))
            let wrong = try folder.write("groups:\n  a: { clients: 0 }\n  b: { jid: x }\n", to: "wrong.yaml")
            let refused = try await ClamorBinary.run(["run", wrong, "--out", folder.path("out")])
            #expect(refused.status == 65)
            #expect(
                refused.errorLines == [
                    "\(wrong):2:17: a.clients: '0' is not a whole number of 1 to 10000000",
                    "\(wrong):3:3: b.password: is missing; add it, or set CLAMOR_PASSWORD in the environment",
                    "\(wrong):3:13: b.jid: 'x' is no user's JID; write it like 'user%i@example.org/clamor'",
                ]
            )
            #expect(folder.entries() == ["right.yaml", "wrong.yaml"])
        }
    }
}
