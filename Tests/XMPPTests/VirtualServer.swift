import XMPP

/// A server with stream management for one account, without sockets: bytes in, bytes out.
///
/// It keeps the session over connections, and numbers the messages of both directions.
final class VirtualServer {
    private var reader = XMPPReader()
    private var headers = 0
    /// Stream management is on for this connection.
    private(set) var isOn = false
    /// Stanzas of the client that it has, over the session.
    private var handled: UInt32 = 0
    /// Messages that the client has not acknowledged, the oldest first.
    private var kept: [Int] = []
    private var acknowledged: UInt32 = 0
    private var next = 0
    /// What leaves for the client.
    var out: [UInt8] = []
    /// The numbers of the client's messages, as they came.
    private(set) var received: [Int] = []
    private(set) var resumptions = 0
    private(set) var unexpected: [String] = []

    /// How many messages it has sent, each once.
    var sent: Int { self.next }

    func connect() {
        self.reader = XMPPReader()
        self.headers = 0
        self.isOn = false
        self.out = []
    }

    func send() {
        guard self.isOn else { return }
        self.kept.append(self.next)
        self.say(Self.message(self.next))
        self.next += 1
    }

    func ask() { if self.isOn { self.say("<r xmlns='urn:xmpp:sm:3'/>") } }

    func receive(_ bytes: some Collection<UInt8>) {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            var sink = Sink()
            do {
                let taken = try rest.withUnsafeBytes { try self.reader.read($0, into: &sink) }
                rest = rest.dropFirst(taken)
            } catch {
                self.unexpected.append("\(error)")
                return
            }
            if sink.isOpened { self.open() }
            if let element = sink.element { self.take(element) }
        }
    }

    private func say(_ text: String) { self.out += Array(text.utf8) }

    private static func message(_ number: Int) -> String {
        "<message id='\(number)' from='romeo@example.net/orchard'><body>no. \(number)</body></message>"
    }

    private func open() {
        self.headers += 1
        let features =
            self.headers == 1
            ? "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
            : "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/><sm xmlns='urn:xmpp:sm:3'/>"
        self.say("\(ConnectionRig.header)\(self.headers)'><stream:features>\(features)</stream:features>")
    }

    private func take(_ element: XMPPElement) {
        switch element.name {
        case "auth":
            self.reader.restart()
            self.say("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        case "iq" where element.child("bind") != nil:
            self.say(
                "<iq type='result' id='\(element["id"] ?? "")'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                    + "<jid>juliet@im.example.com/balcony</jid></bind></iq>"
            )
        case "enable":
            self.isOn = true
            self.say("<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true'/>")
        case "resume":
            self.acknowledge(element)
            self.isOn = true
            self.resumptions += 1
            self.say("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='\(self.handled)'/>")
            for number in self.kept { self.say(Self.message(number)) }
        case "r": self.say("<a xmlns='urn:xmpp:sm:3' h='\(self.handled)'/>")
        case "a": self.acknowledge(element)
        case "message":
            self.handled += 1
            if let number = element["id"].flatMap({ Int($0) }) { self.received.append(number) }
        default: self.unexpected.append(element.name)
        }
    }

    private func acknowledge(_ element: XMPPElement) {
        guard let h = element["h"].flatMap({ UInt32($0) }), h >= self.acknowledged,
            Int(h - self.acknowledged) <= self.kept.count
        else { return self.unexpected.append("h='\(element["h"] ?? "")' after \(self.acknowledged)") }
        self.kept.removeFirst(Int(h - self.acknowledged))
        self.acknowledged = h
    }

    /// One event at a time: after a login the reader begins anew.
    private struct Sink: XMPPReaderSink {
        var isOpened = false
        var element: XMPPElement?

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn {
            self.isOpened = true
            return .stop
        }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.element = element.element()
            return .stop
        }

        mutating func closed() -> ReadingGoesOn { .stop }
    }
}
