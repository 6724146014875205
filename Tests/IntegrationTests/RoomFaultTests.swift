import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("clamor xmpp muc on a server that does wrong")
    struct RoomFaultTests {
        private static let who =
            "xmpp muc -h 127.0.0.1 --jid user%i@localhost --password secret --tls off --mechanism PLAIN"

        private func run(_ fault: RoomServer.Fault, _ line: String) async throws -> ClamorRun {
            try await RoomServer.with(fault) { try await ClamorRun.of("\(Self.who) -p \($0.port) \(line)") }
        }

        private func count(_ run: ClamorRun, _ receiver: String) -> UInt64? {
            run.record.metrics.first { $0.name == "muc_fanout_duration" && $0.labels == ["receiver": receiver] }?
                .duration?.answered
        }

        private func unfinished(_ run: ClamorRun) -> Double? {
            let all = run.record.metrics.filter { $0.name == "muc_fanout_unfinished" }
            #expect(all.count == 1)
            // Every message sent reached the last receiver, or is reported as refused.
            let refused = run.record.metrics.first { $0.name == "stanza_refused" }?.counter?.value ?? 0
            let sent = Double(run.record.books.first?.sent ?? 0)
            #expect(sent == Double(self.count(run, "last") ?? 0) + (all.first?.counter?.value ?? 0) + refused)
            return all.first?.counter?.value
        }

        struct Refusal: Sendable, CustomTestStringConvertible {
            let fault: RoomServer.Fault
            let kind: String
            let words: String
            var testDescription: String { self.words }

            init(_ fault: RoomServer.Fault, _ kind: String, _ words: String) {
                self.fault = fault
                self.kind = kind
                self.words = words
            }

            init(_ condition: String, _ hint: String) {
                self.init(
                    .refuses(condition: condition),
                    "join \(condition)",
                    "the room clamor1@conference.localhost refused a client: \(condition)\(hint)"
                )
            }
        }

        private static let refusals = [
            Refusal(
                "service-unavailable",
                ": the room is full, or there is no such service; check the service's address"
            ),
            Refusal("conflict", ": its nick belongs to another occupant; use another nick"),
            Refusal("forbidden", ": it is banned"),
            Refusal("registration-required", ": the room is for members"),
            Refusal("not-authorized", ": the room wants a password"),
            Refusal(
                "not-allowed",
                ": the client may not create rooms, or the service is elsewhere; check the service's address"
            ),
            Refusal("item-not-found", ": there is no such room, or no such service; check the service's address"),
            Refusal("resource-constraint", ""),
            Refusal(
                .refusesConfiguration,
                "join forbidden",
                "the room clamor1@conference.localhost refused its configuration: forbidden: it is banned"
            ),
            Refusal(
                .isSilent,
                "join timeout",
                "no answer from the room clamor1@conference.localhost within the acknowledgement timeout; "
                    + "check the service's address"
            ),
        ]

        @Test(
            "[XEP-0045 §7.2, §10.1] a client that is not admitted ends with the reason, and each is reported once",
            arguments: refusals
        )
        func refused(_ refusal: Refusal) async throws {
            // Nothing but silence is awaited.
            let patience = refusal.kind == "join timeout" ? "1s" : "300s"
            let run = try await self.run(refusal.fault, "-c 3 --ack-timeout \(patience)")
            #expect(run.status == 69)
            #expect(run.record.errors.map(\.kind) == [refusal.kind])
            #expect(run.record.errors.first?.count == 3)
            #expect(run.record.errors.first?.example == refusal.words)
            #expect(run.ending.errors == "clamor: no client could take part in the load: \(refusal.words)\n")
            #expect(run.record.books.first?.sent == 0)
        }

        @Test("a message that one occupant never gets is lost once, and has no last receiver")
        func loses() async throws {
            let run = try await self.run(.loses(every: 10), "-c 4 --rate 200/s -L 100 --drain 5s")
            let books = run.record.books.first
            #expect(books?.expected == 400)
            #expect(books?.lost == 10)
            #expect(books?.received == 390)
            #expect(books?.duplicated == 0)
            #expect(books?.balances == true)
            #expect(self.count(run, "first") == 100)
            #expect(self.count(run, "last") == 90)
            #expect(self.unfinished(run) == 10)
            let last = run.record.metrics.first { $0.labels == ["receiver": "last"] }?.duration
            #expect(last?.unanswered?.outstanding == 10 && last?.isBound(\.p99) == true)
        }

        @Test("in closed loop a lost delivery holds its sender up for --ack-timeout, and not for ever")
        func stalls() async throws {
            let run = try await self.run(.loses(every: 10), "-c 4 -L 40 --ack-timeout 2s --drain 5s")
            #expect(run.status == 0)
            let books = run.record.books.first
            #expect(books?.sent == 40)
            #expect(books?.lost == 4)
            #expect(books?.received == 156)
            #expect(self.unfinished(run) == 4)
            #expect(run.record.errors.allSatisfy { $0.kind == "fan-out timeout" })
        }

        @Test("a message received twice is a duplicate, and does not end the fan-out early")
        func repeats() async throws {
            let run = try await self.run(.repeats, "-c 3 -L 60")
            let books = run.record.books.first
            #expect(books?.expected == 180)
            #expect(books?.lost == 0)
            #expect(books?.duplicated == 60)
            #expect(books?.balances == true)
            #expect(self.count(run, "last") == 60)
            #expect(self.unfinished(run) == 0)
        }

        @Test("[XEP-0045 §8.2] a removed occupant is owed no further messages, and is reported")
        func putsOut() async throws {
            let run = try await self.run(.putsOut(after: 20), "-c 3 --rate 100/s -L 90 --drain 5s")
            #expect(run.record.errors.map(\.kind) == ["room kicked"])
            #expect(
                run.record.errors.first?.example
                    == "a client was put out of the room clamor1@conference.localhost: kicked"
            )
            let books = run.record.books.first
            #expect(books?.lost == 0)
            #expect(books?.balances == true)
            // The one who is out sends nothing more.
            #expect((books?.notSent ?? 0) > 0)
            #expect((self.unfinished(run) ?? -1) >= 0)
            #expect(run.record.verdict?.state != .unreconciled, "\(run.record.verdict?.reasons ?? [])")
        }

        @Test("[RFC 6120 §8.3] a message that comes back is expected nowhere, and the next one leaves")
        func bounces() async throws {
            let run = try await self.run(.bounces(every: 5), "-c 2 -L 50")
            #expect(run.record.errors.map(\.kind) == ["stanza not-acceptable"])
            #expect(run.record.errors.first?.count == 10)
            let books = run.record.books.first
            #expect(books?.sent == 50)
            #expect(books?.expected == 80)
            #expect(books?.received == 80)
            #expect(self.unfinished(run) == 0)
        }

        @Test(
            "[XEP-0045 §7.2.8] a nick held for the connection before is asked for until the room lets go, and told of"
        )
        func heldForAWhile() async throws {
            let run = try await self.run(
                .holdsNicks(times: 3),
                "-c 4 --rate 100/s -L 300 --duration 1h --storm 50%@1s --reconnect-period 20 --drain 60s"
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.errors.map(\.kind) == ["nick held"])
            // Once for each that came back, however often it asked.
            #expect(run.record.errors.first?.count == 2)
            #expect(
                run.record.errors.first?.example
                    == "the room clamor1@conference.localhost holds the nick of a client that came back: conflict; the "
                    + "client retries after each reconnect period, until the acknowledgement timeout"
            )
            #expect(run.record.count("reconnects") == 2)
            let joins = run.record.metrics.first { $0.name == "muc_join_duration" }?.duration
            #expect(joins?.count == 6)
            #expect(run.record.books.first?.balances == true)
            #expect(run.record.books.first?.lost == 0)
        }

        @Test("[XEP-0045 §7.2.8] a nick that is held for ever costs each --ack-timeout, and then the client stays out")
        func heldForEver() async throws {
            let run = try await RoomServer.with(.holdsNicks(times: .max)) { server in
                try await ClamorRun.of(
                    "\(Self.who) -p \(server.port) -c 4 --rate 100/s --duration 0 --storm 50%@1s --reconnect-period 20 "
                        + "--ack-timeout 8s --drain 1s"
                ) {
                    // Two errors for the nick, and the same two clients when they give up.
                    try await $0.line { $0.contains("  4 errors  ") }
                    $0.send(SIGINT)
                }
            }
            #expect(Set(run.record.errors.map(\.kind)) == ["nick held", "join timeout"])
            #expect(run.record.errors.allSatisfy { $0.count == 2 }, "\(run.record.errors)")
            #expect(
                run.record.errors.first { $0.kind == "join timeout" }?.example
                    == "the room clamor1@conference.localhost held a client's nick beyond the acknowledgement "
                    + "timeout"
            )
            let joins = run.record.metrics.first { $0.name == "muc_join_duration" }?.duration
            #expect(joins?.answered == 4 && joins?.unanswered?.count == 2)
            #expect(run.record.books.first?.balances == true)
        }

        @Test("[XEP-0045 §7.2.15] what a room remembers in spite of us counts apart")
        func remembers() async throws {
            let run = try await self.run(.remembers, "-c 2 -L 20")
            let labels: Labels = ["stanza": "message", "delayed": "true"]
            #expect(run.record.metrics.first { $0.name == "received" && $0.labels == labels }?.counter?.value == 2)
            #expect(run.record.books.first?.received == 40)
            #expect(run.record.books.first?.duplicated == 0)
        }
    }
}
