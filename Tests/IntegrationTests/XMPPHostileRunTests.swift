import Foundation
import Measurement
import Synchronization
import TestSupport
import Testing

extension Integration {
    @Suite("clamor xmpp on servers that are not right")
    struct XMPPHostileRunTests {
        private static let who =
            "-h 127.0.0.1 --jid user%i@localhost/clamor --password secret --tls off --mechanism PLAIN"

        @Test("[RFC 6120 §7.6] a JID other than the requested one is reported, with both")
        func boundElsewhere() async throws {
            var behaviour = ScriptedXMPP.Behaviour()
            behaviour.binds = { _ in "user1@localhost/other" }
            let run = try await ScriptedXMPP.with(behaviour) { server in
                try await ClamorRun.of("xmpp login \(Self.who) -p \(server.port) --duration 300ms")
            }
            #expect(run.status == 0)
            #expect(run.record.errors.map(\.kind) == ["bound elsewhere"])
            #expect(
                run.record.errors.first?.example
                    == "user1@localhost/clamor was asked for, and the server made it user1@localhost/other"
            )
        }

        @Test("a message that comes twice lets no second one go")
        func duplicates() async throws {
            var behaviour = ScriptedXMPP.Behaviour()
            behaviour.answers = { message, _ in message + message }
            let (run, most) = try await ScriptedXMPP.with(behaviour) { server in
                let run = try await ClamorRun.of("xmpp message \(Self.who) -p \(server.port) -s 64 -F 1 -L 40")
                return (run, server.facts.mostInOneRead)
            }
            #expect(run.record.count("stanza_sent") == 40)
            #expect(run.record.count("delivery_duplicated") == 40)
            #expect(most == 1)
        }

        @Test("[XEP-0198 §4] what the stream answers by itself is acknowledged as well, and confirms no message")
        func ownStanzas() async throws {
            var behaviour = ScriptedXMPP.Behaviour()
            // A request first, and the message only behind its answer: so the row of stanzas is known.
            behaviour.answers = { message, count in
                count == 1
                    ? "<iq type='get' id='q' from='localhost'><query xmlns='urn:unknown'/></iq>" + message : message
            }
            behaviour.acknowledges = { min($0, 6) }
            behaviour.resetsBehind = 10
            let run = try await ScriptedXMPP.with(behaviour) { server in
                try await ClamorRun.of("xmpp message \(Self.who) -p \(server.port) -s 64 -F 1 -L 10 --sm --drain 1s")
            }
            #expect(run.record.count("stanza_sent") == 10)
            // Six stanzas: the answer is one of them.
            #expect(run.record.count("stanza_acked") == 5)
            #expect(run.record.count("stanza_confirmed") == 5)
        }

        @Test("[XEP-0198 §4] nor does it shift the acknowledgements after it")
        func ownStanzasFirst() async throws {
            let first = Mutex("")
            var behaviour = ScriptedXMPP.Behaviour()
            behaviour.answers = { message, count in
                guard count == 1 else { return message }
                first.withLock { $0 = message }
                return "<iq type='get' id='q' from='localhost'><query xmlns='urn:unknown'/></iq>"
            }
            // Its answer is acknowledged before the client says anything else.
            behaviour.hears = { _ in first.withLock { $0 } }
            let run = try await ScriptedXMPP.with(behaviour) { server in
                try await ClamorRun.of("xmpp message \(Self.who) -p \(server.port) -s 64 -F 1 -L 5 --sm")
            }
            #expect(run.record.count("stanza_sent") == 5)
            #expect(run.record.count("stanza_acked") == 5)
        }
    }
}
