import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("clamor xmpp register, and --register")
    struct XMPPAccountTests {
        private static func who(_ server: XMPPServer, _ name: String = "new") -> String {
            "-h 127.0.0.1 -p \(server.port) --jid \(name)%i@\(server.domain) --password secret --tls off "
                + XMPPServer.patience
        }

        private func notes(_ run: ClamorRun) -> [String] { (run.record.notes ?? []).map(\.code) }

        /// Whether a user can log in.
        private func exists(_ user: String, _ server: XMPPServer) async throws -> Bool {
            let run = try await ClamorRun.of(
                "xmpp login -h 127.0.0.1 -p \(server.port) --jid \(user)@\(server.domain) --password secret --tls off "
                    + "--duration 10ms \(XMPPServer.patience)"
            )
            if run.status == 69 { #expect(run.record.errors.map(\.kind) == ["not-authorized"]) }
            // Whatever else it ended with says nothing.
            try #require([0, 69].contains(run.status), "\(run.ending.errors)")
            return run.status == 0
        }

        @Test(
            "[XEP-0077 §3.1, §3.2] accounts are created, measured, counted in the books, and removed after the run",
            arguments: XMPPServer.Kind.installed
        )
        func registers(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind) { server in
                let run = try await ClamorRun.of("xmpp register \(Self.who(server)) -c 20 -R 200/s --threads 2")
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.ending.errors.isEmpty)
                #expect(run.record.errors.isEmpty)
                for name in ["stanza_offered", "stanza_sent", "stanza_answered"] {
                    #expect(run.record.count(name, ["stanza": "iq"]) == 20, "\(name)")
                }
                #expect(run.record.books.first?.acked == 20)
                #expect(run.record.books.allSatisfy { $0.balances })
                for name in ["iq_duration", "iq_service_duration"] {
                    #expect(run.record.duration(name, ["request": "register"])?.count == 20)
                }
                let phases = Set(run.record.metrics.filter { $0.name == "connect_duration" }.map { $0.labels["phase"] })
                #expect(phases == ["tcp", "stream", "register", "session", "total"])
                #expect(self.notes(run) == ["accounts"])
                #expect(run.record.notes?.first?.text.contains("20 removed after the run") == true)
                #expect(try await !self.exists("new20", server))
            }
        }

        @Test(
            "[XEP-0077 §3.1] one that is there is an error of its own, and stays as it is",
            arguments: XMPPServer.Kind.installed
        )
        func conflict(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 2) { server in
                let kept = try await ClamorRun.of("xmpp register \(Self.who(server)) -c 1 --keep")
                #expect(kept.status == 0, "\(kept.ending.errors)")
                #expect(try await self.exists("new1", server))

                let some = try await ClamorRun.of("xmpp register \(Self.who(server)) -c 3")
                #expect(some.status == 0, "\(some.ending.errors)")
                #expect(some.record.errors.map(\.kind) == ["register conflict"])
                #expect(
                    some.record.errors.first?.example
                        == "the account exists already: the server answered conflict [new1@\(server.domain)]"
                )
                #expect(some.record.books.first?.failed == 1)
                #expect(some.record.books.allSatisfy { $0.balances })
                #expect(try await self.exists("new1", server))
                #expect(try await !self.exists("new2", server))

                let none = try await ClamorRun.of("xmpp register \(Self.who(server, "user")) -c 2")
                #expect(none.status == 69)
                #expect(
                    none.ending.errors.hasPrefix(
                        "clamor: no account was created: the account exists already: the server answered conflict ["
                    )
                )
                #expect(try await self.exists("user2", server))
            }
        }

        @Test("a server without registration reports the reason by its condition", arguments: XMPPServer.Kind.installed)
        func refused(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, registers: false) { server in
                let run = try await ClamorRun.of("xmpp register \(Self.who(server)) -c 2")
                #expect(run.status == 69)
                let kinds = run.record.errors.map(\.kind)
                // ejabberd has the rule not-allowed or forbidden for it, prosody knows nothing of the namespace.
                #expect(
                    kinds.count == 1 && kinds[0].hasPrefix("register ") && kinds[0] != "register conflict",
                    "\(kinds)"
                )
                #expect(run.record.count("stanza_refused") == 2)
                #expect(run.record.books.allSatisfy { $0.balances })

                let login = try await ClamorRun.of("xmpp login \(Self.who(server)) -c 2 --register --duration 1s")
                #expect(login.status == 69)
                // The same, and no login that could not be.
                #expect(login.record.errors.map(\.kind) == kinds)
            }
        }

        @Test(
            "--register creates missing accounts before the run, and removes only those after it",
            arguments: XMPPServer.Kind.installed
        )
        func before(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 1) { server in
                let run = try await ClamorRun.of(
                    "xmpp message \(Self.who(server, "user")) -c 4 --register -s 64 --rate 100/s -L 50"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.errors.isEmpty)
                #expect(run.record.books.first?.received == 50)
                // A login is a login.
                let phases = Set(run.record.metrics.filter { $0.name == "connect_duration" }.map { $0.labels["phase"] })
                #expect(phases == ["tcp", "stream", "sasl", "bind", "session", "total"])
                let note = try #require(run.record.notes?.first?.text)
                #expect(note.hasPrefix("3 accounts created before the run in "), "\(note)")
                #expect(note.contains("1 existed already"))
                #expect(try await self.exists("user1", server))
                #expect(try await !self.exists("user2", server))
            }
        }

        @Test(
            "SIGINT in the middle leaves no account behind",
            arguments: XMPPServer.Kind.installed,
            ["register -c 500 -R 50/s", "login -c 5 --register --duration 1h"]
        )
        func interrupted(_ kind: XMPPServer.Kind, _ line: String) async throws {
            try await XMPPServer.with(kind) { server in
                let words = line.split(separator: " ", maxSplits: 1)
                let run = try await ClamorRun.of("xmpp \(words[0]) \(Self.who(server)) \(words[1])") {
                    try await $0.line { $0.contains(" measure ") }
                    $0.send(SIGINT)
                }
                #expect(run.status == 105)
                #expect(run.ending.errorLines == ["clamor: a signal ended the run before its time"])
                #expect(self.notes(run) == ["accounts"])
                let note = try #require(run.record.notes?.first?.text)
                let created = try #require(try /^(\d+) accounts? created/.firstMatch(in: note)?.1, "\(note)")
                let removed = try #require(try /(\d+) removed after the run/.firstMatch(in: note)?.1, "\(note)")
                #expect(created == removed)
                #expect(run.record.books.allSatisfy { $0.balances })
                #expect(try await !self.exists("new1", server))
            }
        }

        @Test(
            "unanswered account requests are repeated once, and the result is reported",
            arguments: XMPPServer.Kind.installed
        )
        func unanswered(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind) { server in
                let run = try await RegisterRelay.with(to: server.port) { port in
                    try await ClamorRun.of(
                        "xmpp register -h 127.0.0.1 -p \(port) --jid new%i@\(server.domain) --password secret --tls off "
                            + "-c 6"
                    )
                }
                #expect(run.status == 0, "\(run.ending.errors)")
                // Of the run itself: two answers of six.
                #expect(run.record.count("stanza_answered") == 2)
                #expect(run.record.books.allSatisfy { $0.balances })
                let words =
                    "2 accounts exist, and were not removed, such as new2@\(server.domain): the server did not answer, and "
                    + "said conflict when it was asked again; whether they were created by this run is not known"
                #expect(run.ending.errorLines == ["clamor: \(words)"])
                #expect(self.notes(run) == ["accounts", "accounts-left"])
                #expect(run.record.notes?.last?.text == words)
                let note = try #require(run.record.notes?.first?.text)
                let created = "4 accounts created, 2 of them when the server was asked again; 4 removed after the run"
                #expect(note.hasPrefix(created), "\(note)")
                #expect(run.ending.output.contains("  asking again for 4 accounts\n"))
                #expect(run.ending.output.contains(/\d+ s  check +\d\/4 accounts/))
                #expect(run.ending.output.contains(/\d+ s  remove +\d\/4 accounts/))
                for (user, exists) in [(1, false), (2, true), (3, false), (4, true), (5, false)] {
                    #expect(try await self.exists("new\(user)", server) == exists, "new\(user)")
                }
            }
        }

        @Test(
            "accounts that cannot be removed are reported in one line, with the count and an example",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)")
        )
        func left() async throws {
            try await XMPPServer.with(.ejabberd, isOwn: true) { server in
                let run = try await ClamorRun.of("xmpp login \(Self.who(server)) -c 3 --register --duration 1h") {
                    try await $0.line { $0.contains(" measure ") }
                    server.program.send(SIGKILL)
                }
                #expect(run.status == 69)
                let lines = run.ending.errorLines
                #expect(lines.count == 2, "\(lines)")
                #expect(
                    lines.first?.hasPrefix("clamor: 3 accounts that this run created were not removed, such as new")
                        == true
                )
                #expect(self.notes(run) == ["accounts", "accounts-left"])
            }
        }
    }
}
