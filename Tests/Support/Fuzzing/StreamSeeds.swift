import Foundation
import TestSupport

/// The seeds of the streams, made from the conversations of Tests/Vectors/xmpp-streams.
enum StreamSeeds {
    private struct Conversation {
        var settings: [UInt8] = [3, 0, 0, 0]
        var steps: [FuzzInput.Step] = []

        init(_ text: String) {
            for line in text.split(separator: "\n") {
                let rest = line.dropFirst(2).trimmingCharacters(in: .whitespaces)
                switch line.prefix(2) {
                case "S:":
                    let bytes = Array(rest.replacing("\\n", with: "\n").replacing("\\s", with: " ").utf8)
                    self.steps.append(.feed(connection: 0, bytes))
                case "! ": self.steps.append(Self.call(rest))
                case "# ", "C:", "= ": break
                default:
                    let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                    if parts.count == 2 { self.set(parts[0], parts[1]) }
                }
            }
            // Its end, unless it had one.
            self.steps += [.call(5, 0), .call(0, 0), .call(7, 0)]
        }

        private static func call(_ words: String) -> FuzzInput.Step {
            switch words {
            case "handshake": .call(1, 0)
            case "finish": .call(5, 0)
            case "FIN": .call(7, 0)
            default: .call(3, UInt8(clamping: (Int(words.dropLast()) ?? 1) * 2))
            }
        }

        private mutating func set(_ key: String, _ value: String) {
            switch key {
            case "tls":
                let policies = ["off", "allowed", "preferred", "required", "direct"]
                self.settings[0] = self.settings[0] & 0xF8 | UInt8(policies.firstIndex(of: value) ?? 3)
            case "clear": self.settings[0] |= 8
            case "secure": self.settings[0] |= 16
            case "framing": self.settings[0] |= 32
            case "certificate": self.settings[0] |= 64
            case "legacy": self.settings[0] |= 128
            case "register": self.settings[1] |= value == "create" ? 1 : 2
            case "management": self.settings[1] |= value == "resume" ? 8 : 4
            case "login": self.settings[1] |= 64
            case "keep-alive": self.settings[1] |= 32
            case "mechanisms": self.settings[2] |= value == "ANONYMOUS" ? 3 : 2
            default: break
            }
        }
    }

    private static let conversations: [Conversation] = {
        do {
            let folder = MarkdownPage.root.appending(path: "Tests/Vectors/xmpp-streams")
            return try FileManager.default.contentsOfDirectory(atPath: folder.path)
                .filter { $0.hasSuffix(".txt") }.sorted()
                .map { Conversation(try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8)) }
        } catch {
            preconditionFailure("the conversations: \(error)")
        }
    }()

    /// Server streams, cut roughly after each element of the root, and elements of all kinds.
    static let elements: [[UInt8]] = {
        let said = Self.conversations.flatMap(\.steps).flatMap { step -> [[UInt8]] in
            guard case .feed(_, let bytes) = step else { return [] }
            return [bytes] + Self.pieces(bytes)
        }
        return (said + XMLSeeds.elements + Self.stanzas.map { Array($0.utf8) }).filter { $0.count <= 1_024 }
    }()

    private static func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        bytes.split(separator: UInt8(ascii: "<")).map { [UInt8(ascii: "<")] + $0 }
    }

    /// Stanzas that modules and owners handle.
    private static let stanzas = [
        "<message from='a@b/c' id='1'><body>hi</body><request xmlns='urn:xmpp:receipts'/></message>",
        "<iq type='get' id='p' from='im.example.com'><ping xmlns='urn:xmpp:ping'/></iq>",
        "<iq type='set' id='r'><query xmlns='jabber:iq:roster' ver='2'><item jid='a@b' subscription='both'/></query></iq>",
        "<message from='juliet@im.example.com'><received xmlns='urn:xmpp:carbons:2'><forwarded "
            + "xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'><body>x</body></message></forwarded>"
            + "</received></message>",
        "<presence from='hall@muc.example.com/jul'><x xmlns='http://jabber.org/protocol/muc#user'>"
            + "<status code='110'/></x></presence>",
        "<message type='groupchat' from='hall@muc.example.com/jul'><body>x</body></message>",
        "<message from='pubsub.example.com'><event xmlns='http://jabber.org/protocol/pubsub#event'>"
            + "<items node='n'><item id='1'/></items></event></message>",
        "<message><result xmlns='urn:xmpp:mam:2' queryid='00000000000000002' id='1'><forwarded "
            + "xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'/></forwarded></result></message>",
        "<presence from='a@b/c'><show>away</show><status>x</status><priority>-1</priority>"
            + "<delay xmlns='urn:xmpp:delay' stamp='2002-09-10T23:41:07.5-05:00'/></presence>",
        "<presence from='a@b' type='unavailable'/>", "<presence from='a@b/c' type='subscribe'/>",
        "<presence from='a@b' type='subscribed'/>", "<presence from='a@b' type='unsubscribe'/>",
        "<presence from='a@b' type='error'><error type='wait'/></presence>",
        "<iq type='get' id='t' from='a@b/c'><query xmlns='jabber:iq:last'/></iq>",
        "<iq type='get' id='v' from='a@b/c'><query xmlns='jabber:iq:version'/></iq>",
        "<iq type='set' id='b'><block xmlns='urn:xmpp:blocking'><item jid='a@b'/></block></iq>",
        "<iq type='set' id='u' from='juliet@im.example.com'><unblock xmlns='urn:xmpp:blocking'/></iq>",
        "<iq type='set' id='r' from='a@b/c'><x xmlns='urn:example:r'/></iq>",
        "<message><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='urn:example:n'>"
            + "<item id='1' publisher='a@b'><e xmlns='urn:example:n'/></item><retract id='2'/></items></event></message>",
        "<csi xmlns='urn:xmpp:csi:0'/>",
        "<iq type='result' id='00000000000000002'/>", "<iq type='error' id='00000000000000002'/>",
        "<a xmlns='urn:xmpp:sm:3' h='1'/>", "<r xmlns='urn:xmpp:sm:3'/>",
        "<enabled xmlns='urn:xmpp:sm:3' id='s' resume='true' max='1' location='b:1'/>",
        "<resumed xmlns='urn:xmpp:sm:3' previd='s' h='0'/>",
        "<failed xmlns='urn:xmpp:sm:3' h='1'/>", "<stream:error/>", "</stream:stream>",
    ]

    /// Whole lives beside a server that answers as it should: every kind of login, owner and end.
    private static let lives: [[UInt8]] = (0..<96).map { index -> [UInt8] in
        let number = UInt8(index)
        let tls: UInt8 = [0, 1, 2, 3, 4, 0][index % 6]
        let isWebSocket: UInt8 = index % 8 == 7 ? 32 : 0
        let registration: UInt8 = [0, 1, 2][index / 32]
        let management: UInt8 = index % 3 == 0 ? 8 : index % 3 == 1 ? 4 : 0
        let modules: UInt8 = index & 2 == 0 ? 16 : 0
        let peer: UInt8 = index % 12 == 11 ? (index % 24 == 23 ? 0xC0 : 0x80) : 0
        let login: UInt8 = peer == 0 && index % 4 == 1 ? 64 : 0
        let mechanism: UInt8 = index % 4 == 3 ? 5 : UInt8(index & 1)
        let settings: [UInt8] = [
            tls | 8 | isWebSocket | (tls == 4 || index % 5 == 4 ? 16 : 0),
            registration | management | modules | peer | login,
            mechanism | (index & 4 == 0 ? 16 : 0) | (index % 7 == 6 ? 64 : 0),
            index % 9 == 8 ? number : 0,
        ]
        var steps: [FuzzInput.Step] = Array(repeating: .call(0, 0), count: 8)
        for round in 0..<2 as Range<UInt8> {
            steps += [
                .call(9, number), .call(11, round), .call(12, number), .call(21, number &+ round), .call(18, round),
                .call(10, round), .call(16, 0), .call(19, 0), .call(13, 0), .call(22, number), .call(17, 0),
                .call(15, number), .call(11, 1), .call(3, 4), .call(7, number), .call(3, number), .call(8, 0),
            ]
            steps += Array(repeating: .call(0, 0), count: 8)
        }
        steps += [.call(0, 0), .call(4, 0), .call(index & 1 == 0 ? 5 : 6, 0), .call(0, 0)]
        return FuzzInput(settings: settings, steps: steps).bytes(.conversation)
    }

    static let inputs: [[UInt8]] =
        Self.conversations.enumerated().flatMap { index, conversation -> [[UInt8]] in
            let plain = FuzzInput(settings: conversation.settings, steps: conversation.steps)
            // Once as it is, once with modules and in pieces.
            var other = plain
            other.settings[1] |= 16
            other.settings[3] = UInt8(truncatingIfNeeded: index) | 1
            return [plain.bytes(.conversation), other.bytes(.conversation)]
        } + Self.lives
}
