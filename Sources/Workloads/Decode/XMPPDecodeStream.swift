import Measurement
import NIOCore
import XMPPCodec

/// The composition of an XMPP stream for the decoder benchmark.
package struct XMPPStreamPlan: Hashable, Sendable {
    /// Sizes of bodies, used in turn; in a mix they are drawn.
    package var sizes: [Int]
    /// Stanzas for a client that chats, instead of messages alone.
    package var isMix: Bool
    package var seed: UInt64

    /// Number of users that send messages in turn.
    package static let users = 100

    package init(sizes: [Int], isMix: Bool = false, seed: UInt64 = 1) {
        self.sizes = sizes
        self.isMix = isMix
        self.seed = seed
    }
}

extension DecodeStream {
    /// - Parameters:
    ///   - plan: the composition.
    ///   - size: minimum size in bytes. The stream continues until every size occurred equally often.
    package init(_ plan: XMPPStreamPlan, atLeast size: Int) {
        self.init(.xmpp(.stream), StanzaWriter(plan), cycle: plan.isMix ? 1 : plan.sizes.count, atLeast: size)
    }
}

/// Writes one stanza after another, as ejabberd relays them.
private struct StanzaWriter: DecodeStreamWriter {
    private static let letters = Array("the quick brown fox jumps over the lazy dog and ".utf8)

    private let plan: XMPPStreamPlan
    private var random: SplitMix64
    private var stanzas = 0
    var buffer = ByteBuffer()
    var checksum = DecodeChecksum()

    init(_ plan: XMPPStreamPlan) {
        self.plan = plan
        self.random = SplitMix64(seed: plan.seed)
    }

    mutating func writeNext() {
        if self.plan.isMix { self.writeAny() } else { self.writeMessage() }
        self.stanzas += 1
    }

    // MARK: Parts

    private mutating func add(_ text: String) { self.buffer.writeString(text) }

    /// The `from` attribute of the next user in turn.
    private mutating func from() -> String {
        self.named("user\(String(100_000 + self.stanzas % XMPPStreamPlan.users + 1).dropFirst())@localhost/clamor")
    }

    private mutating func named(_ sender: String) -> String {
        self.checksum.nameBytes += UInt64(sender.utf8.count)
        self.checksum.nameEnds += UInt64(sender.utf8.last ?? 0)
        return "from='\(sender)' to='user00012@localhost/clamor'"
    }

    private mutating func id(_ kind: StanzaKind) -> String {
        let id = "c7-" + String(0x1_0000_0000 + self.stanzas, radix: 16).dropFirst()
        self.checksum.identifiers += StanzaSum.number(kind) + UInt64(id.utf8.last ?? 0)
        return "id='\(id)'"
    }

    /// Adds text of this many decoded bytes.
    ///
    /// In a mix one text in eight has a reference, and one non-ASCII letters.
    private mutating func addText(_ size: Int) {
        self.checksum.payloadBytes += UInt64(size)
        let kind = self.plan.isMix ? UInt8.random(in: 0..<8, using: &self.random) : 7
        var left = size
        if kind == 0, left > 0 {
            self.add("&amp;")
            left -= 1
        }
        while kind == 1, left >= 2 {
            self.add("\u{E9}")
            left -= 2
        }
        while left > 0 {
            let piece = min(left, Self.letters.count)
            self.buffer.writeBytes(Self.letters[..<piece])
            left -= piece
        }
    }

    private var size: Int { self.plan.sizes[self.stanzas % self.plan.sizes.count] }

    private mutating func draw<T>(_ values: [T]) -> T {
        values[Int.random(in: 0..<values.count, using: &self.random)]
    }

    // MARK: Stanzas

    private mutating func writeMessage() {
        self.add("<message xml:lang='en' \(self.from()) type='chat' \(self.id(.message))><body>")
        self.addText(self.size)
        self.add("</body></message>")
    }

    /// Out of 100 elements: 45 chat messages, 15 room messages, 15 presences, 10 answers, 5 pings, 2 rosters, 5
    /// requests for an acknowledgement and 3 acknowledgements.
    private mutating func writeAny() {
        switch Int.random(in: 0..<100, using: &self.random) {
        case ..<45: self.writeChat()
        case ..<60: self.writeRoomMessage()
        case ..<75: self.writePresence()
        case ..<85: self.add("<iq xml:lang='en' \(self.from()) type='result' \(self.id(.iq))/>")
        case ..<90:
            self.add("<iq xml:lang='en' \(self.from()) type='get' \(self.id(.iq))><ping xmlns='urn:xmpp:ping'/></iq>")
        case ..<92: self.writeRoster()
        case ..<97:
            self.checksum.identifiers += StanzaSum.number(.other)
            self.add("<r xmlns='urn:xmpp:sm:3'/>")
        default:
            let count = "\(self.stanzas)"
            self.checksum.identifiers += StanzaSum.number(.other)
            self.checksum.payloadBytes += UInt64(count.utf8.count)
            self.add("<a xmlns='urn:xmpp:sm:3' h='\(count)'/>")
        }
    }

    /// Every other one has the extensions that current clients and servers add to messages.
    private mutating func writeChat() {
        self.add("<message xml:lang='en' \(self.from()) type='chat' \(self.id(.message))>")
        if Bool.random(using: &self.random) {
            self.add(
                "<archived by='user00012@localhost' id='1605861234567890' xmlns='urn:xmpp:mam:tmp'/>"
                    + "<stanza-id by='user00012@localhost' id='1605861234567890' xmlns='urn:xmpp:sid:0'/>"
                    + "<request xmlns='urn:xmpp:receipts'/><active xmlns='http://jabber.org/protocol/chatstates'/>"
                    + "<origin-id id='4bf92f35-77b3-4da6-a3ce-929d0e0e4736' xmlns='urn:xmpp:sid:0'/>"
            )
        }
        self.add("<body>")
        self.addText(self.draw(self.plan.sizes))
        self.add("</body></message>")
    }

    private mutating func writeRoomMessage() {
        let sender = self.named("room\(self.stanzas % 7)@conference.localhost/nick \(self.stanzas % 50)")
        self.add("<message xml:lang='en' \(sender) type='groupchat' \(self.id(.message))>")
        self.add("<stanza-id by='room@conference.localhost' id='1605861234567890' xmlns='urn:xmpp:sid:0'/><body>")
        self.addText(self.draw(self.plan.sizes))
        self.add("</body></message>")
    }

    private mutating func writePresence() {
        self.add("<presence xml:lang='en' \(self.from()) \(self.id(.presence))>")
        let show = self.draw(["", "<show>away</show>", "<show>dnd</show>", "<show>xa</show>"])
        self.add(show)
        if !show.isEmpty {
            self.add("<status>")
            self.addText(24)
            self.add("</status>")
        }
        self.add(
            "<priority>5</priority><c hash='sha-1' node='https://clamor.example/' ver='q07IKJEyjvHSyhy//CH0CxmKi8w=' "
                + "xmlns='http://jabber.org/protocol/caps'/><x xmlns='vcard-temp:x:update'><photo/></x></presence>"
        )
    }

    private mutating func writeRoster() {
        self.add(
            "<iq xml:lang='en' \(self.from()) type='result' \(self.id(.iq))><query ver='7' xmlns='jabber:iq:roster'>"
        )
        for number in 1...20 {
            self.add(
                "<item subscription='both' name='User \(number)' jid='user\(number)@localhost'><group>All</group></item>"
            )
        }
        self.add("</query></iq>")
    }
}
