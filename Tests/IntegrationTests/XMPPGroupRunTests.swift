import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("clamor xmpp muc and presence on real servers")
    struct XMPPGroupRunTests {
        private static func who(_ server: XMPPServer) -> String {
            "-h 127.0.0.1 --jid user%i@\(server.domain)/clamor --password secret --tls off "
                + XMPPServer.patience
        }

        private func counter(_ record: RunRecord, _ name: String, _ labels: Labels) -> UInt64 {
            UInt64(record.metrics.first { $0.name == name && $0.labels == labels }?.counter?.value ?? 0)
        }

        private func count(_ record: RunRecord, _ name: String, _ labels: Labels = [:]) -> UInt64? {
            record.metrics.first { $0.name == name && $0.labels == labels }?.duration?.count
        }

        /// Everything came, once, in order, and the books say so.
        private func expectWhole(_ run: ClamorRun, _ stanza: String, sent: UInt64, deliveries: UInt64) {
            let labels: Labels = ["stanza": stanza]
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.errors.isEmpty, "\(run.record.errors)")
            #expect(run.record.verdict?.state != .unreconciled, "\(run.record.verdict?.reasons ?? [])")
            #expect(self.counter(run.record, "stanza_sent", labels) == sent)
            #expect(self.counter(run.record, "stanza_confirmed", labels) == sent)
            #expect(self.counter(run.record, "delivery_expected", labels) == sent * deliveries)
            for name in ["delivery_lost", "delivery_duplicated", "delivery_reordered", "stanza_not_sent"] {
                #expect(self.counter(run.record, name, labels) == 0, "\(name)")
            }
            let books = run.record.books.first
            #expect(books?.stanza == stanza)
            #expect(books?.received == sent * deliveries)
            #expect(books?.balances == true)
            #expect(self.count(run.record, "delivery_duration", labels) == sent * deliveries)
        }

        @Test(
            "[XEP-0045 §7.4] each message reaches all occupants of the room, including the sender",
            arguments: XMPPServer.Kind.installed
        )
        func rooms(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 12) { server in
                let run = try await ClamorRun.of(
                    "xmpp muc \(Self.who(server)) -p \(server.port) --rooms 3 --room-size 4 -s 64 --rate 300/s -L 300 "
                        + "--threads 2"
                )
                self.expectWhole(run, "message", sent: 300, deliveries: 4)
                #expect(self.count(run.record, "muc_fanout_duration", ["receiver": "first"]) == 300)
                #expect(self.count(run.record, "muc_fanout_duration", ["receiver": "last"]) == 300)
                #expect(self.count(run.record, "message_duration") == 1_200)
                #expect(self.count(run.record, "muc_join_duration") == 12)
                #expect(self.counter(run.record, "muc_fanout_unfinished", [:]) == 0)
                #expect(run.record.plan["rooms"] == .integer(3))
                #expect(run.record.plan["room"] == .string("clamor%r@conference.\(server.domain)"))
            }
        }

        @Test(
            "in closed loop a message leaves when the previous one reached all occupants, over WebSocket and with --sm too",
            arguments: XMPPServer.Kind.installed
        )
        func closedLoop(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 5) { server in
                let plain = try await ClamorRun.of(
                    "xmpp muc \(Self.who(server)) -p \(server.port) -c 5 -F 2 -L 200 --sm"
                )
                self.expectWhole(plain, "message", sent: 200, deliveries: 5)
                #expect(self.counter(plain.record, "stanza_acked", [:]) == 200)
                let web = try await ClamorRun.of(
                    "xmpp muc \(Self.who(server)) -p \(server.webSocketPort) --ws --path \(kind.webSocketPath) -c 4 -L 40 "
                        + "--mechanism PLAIN"
                )
                self.expectWhole(web, "message", sent: 40, deliveries: 4)
            }
        }

        @Test("[XEP-0045 §7.2.8] a nick in use keeps one client out", arguments: XMPPServer.Kind.installed)
        func conflict(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 3) { server in
                try await TextConnection.inRoom(server, room: "hall", nick: "clamor2") {
                    let run = try await ClamorRun.of(
                        "xmpp muc \(Self.who(server)) -p \(server.port) -c 3 --room hall --rate 30/s -L 30"
                    )
                    #expect(run.record.errors.map(\.kind) == ["join conflict"])
                    #expect(
                        run.record.errors.first?.example.hasPrefix(
                            "the room hall@conference.\(server.domain) refused a client: conflict"
                        ) == true
                    )
                    #expect(
                        run.record.errors.first?.example.hasSuffix(
                            "its nick belongs to another occupant; use another nick"
                        ) == true
                    )
                    // A third of the messages had no sender; the others came to both.
                    #expect(run.record.books.first?.sent == 20)
                    #expect(run.record.books.first?.notSent == 10)
                    #expect(run.record.books.first?.received == 40)
                    #expect(run.record.books.first?.lost == 0)
                    #expect(run.record.books.first?.balances == true)
                }
            }
        }

        @Test("a service that does not exist is reported in one line", arguments: XMPPServer.Kind.installed)
        func noService(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 2) { server in
                let run = try await ClamorRun.of(
                    "xmpp muc \(Self.who(server)) -p \(server.port) -c 2 --service nowhere.localhost"
                )
                #expect(run.status == 69)
                #expect(run.record.errors.first?.kind.hasPrefix("join ") == true, "\(run.record.errors)")
                #expect(run.ending.errors.contains("clamor1@nowhere.localhost refused"), "\(run.ending.errors)")
                #expect(run.ending.errors.contains("check the service's address"), "\(run.ending.errors)")
            }
        }

        @Test(
            "[RFC 6121 §4.4] each change of presence comes to all contacts, whom a second run finds in the roster",
            arguments: XMPPServer.Kind.installed
        )
        func presence(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 8) { server in
                for _ in 0..<2 {
                    let run = try await ClamorRun.of(
                        "xmpp presence \(Self.who(server)) -p \(server.port) -c 8 --contacts 3 -s 64 --rate 200/s -L 200 "
                            + "--threads 2"
                    )
                    self.expectWhole(run, "presence", sent: 200, deliveries: 3)
                    #expect(self.count(run.record, "presence_fanout_duration", ["receiver": "first"]) == 200)
                    #expect(self.count(run.record, "presence_fanout_duration", ["receiver": "last"]) == 200)
                    #expect(self.count(run.record, "presence_setup_duration") == 8)
                }
                let closed = try await ClamorRun.of(
                    "xmpp presence \(Self.who(server)) -p \(server.port) -c 4 --contacts 3 -L 100 --sm"
                )
                self.expectWhole(closed, "presence", sent: 100, deliveries: 3)
            }
        }

        @Test(
            "who leaves a room and comes back is owed what was said while it was in",
            arguments: XMPPServer.Kind.installed
        )
        func churn(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 6) { server in
                let run = try await ClamorRun.of(
                    "xmpp muc \(Self.who(server)) -p \(server.port) --rooms 2 --room-size 3 --rate 200/s --duration 2s "
                        + "--churn 10/s --drain 5s"
                )
                #expect(run.record.verdict?.state != .unreconciled, "\(run.record.verdict?.reasons ?? [])")
                let books = run.record.books.first
                #expect(books?.balances == true)
                #expect(books?.lost == 0)
                #expect(books?.duplicated == 0)
                #expect((books?.received ?? 0) > 0)
                #expect((self.count(run.record, "muc_join_duration") ?? 0) > 6)
            }
        }
    }
}

extension TextConnection {
    /// Runs `body` while the account `clamor` is in a room.
    fileprivate static func inRoom(
        _ server: XMPPServer,
        room: String,
        nick: String,
        _ body: () async throws -> Void
    ) async throws {
        try await Self.with(port: server.port) { connection in
            try await connection.send(server.header)
            try await connection.until { $0.contains("</stream:features>") }
            let secret = Data("\0\(XMPPServer.user)\0\(XMPPServer.password)".utf8).base64EncodedString()
            try await connection.send(
                "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>"
            )
            try await connection.until { $0.contains("<success") }
            try await connection.send(server.header)
            try await connection.until { $0.contains("<bind") }
            try await connection.send(
                "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>t</resource></bind></iq>"
            )
            try await connection.until { $0.contains("<jid>") }
            let room = "\(room)@conference.\(server.domain)"
            try await connection.send(
                "<presence to='\(room)/\(nick)'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
            )
            try await connection.until { $0.contains("110") }
            try await connection.send(
                "<iq type='set' id='c1' to='\(room)'><query xmlns='http://jabber.org/protocol/muc#owner'>"
                    + "<x xmlns='jabber:x:data' type='submit'/></query></iq>"
            )
            try await connection.until { $0.contains("c1") }
            try await body()
        }
    }
}
