import NIOCore
import XMPP

/// Reads what a client writes, as its server would: every byte of it has to be XML, and every write whole.
struct WrittenStream: ~Copyable {
    /// A request that awaits an answer.
    enum Asked {
        case header
        case startTLS
        case auth(mechanism: String)
        /// SASL2, with the session to resume and the resource to bind.
        case authenticate(mechanism: String, previous: String?, binds: Bool, enables: Bool, wantsToken: Bool)
        case response
        case request(id: String, payload: String, namespace: String, isSet: Bool)
        case enable
        case resume(previous: String)
        case acknowledgement
        case closing
        case hello
    }

    private var reader: XMPPReader
    private var log = WrittenLog()
    private let framing: XMPPReader.Framing
    private var hasBegun = false

    struct WrittenLog: XMPPReaderSink {
        var asked: [Asked] = []
        var headers = 0
        /// The stream header after which the client has logged in.
        var authHeader = 0
        var hasBound = false
        var hasAskedLegacy = false
        var hasAskedSASL2 = false
        var isClosed = false
        /// Stanzas since the last `<enable/>` or `<resume/>`.
        var stanzas: [XMPPElement] = []
        var hasEnabled = false
        var problem: String?

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn {
            self.headers += 1
            self.asked.append(.header)
            return .goOn
        }

        mutating func closed() -> ReadingGoesOn {
            if self.isClosed { self.problem = "closed twice" }
            self.isClosed = true
            self.asked.append(.closing)
            return .goOn
        }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            if self.isClosed { self.problem = "something behind the closing tag" }
            guard element.kind == .other else { return self.stanza(element) }
            switch element.name {
            case "starttls": self.asked.append(.startTLS)
            case "auth":
                self.authHeader = self.headers
                self.asked.append(.auth(mechanism: element.attribute("mechanism") ?? ""))
            case "authenticate": self.authenticate(element.element())
            case "response": self.asked.append(.response)
            case "enable":
                self.stanzas = []
                self.hasEnabled = true
                self.asked.append(.enable)
            case "resume":
                self.hasBound = true
                self.stanzas = []
                self.asked.append(.resume(previous: element.attribute("previd") ?? ""))
            case "r": self.asked.append(.acknowledgement)
            case "hello", "more": self.asked.append(.hello)
            default: break
            }
            return .goOn
        }

        private mutating func authenticate(_ element: XMPPElement) {
            let bind = element.child("bind", XMPPNamespace.bind2)
            let previous = element.child("resume", XMPPNamespace.streamManagement).map { $0["previd"] ?? "" }
            let enables = bind?.child("enable", XMPPNamespace.streamManagement) != nil
            self.authHeader = self.headers
            self.hasAskedSASL2 = true
            self.hasBound = self.hasBound || bind != nil || previous != nil
            self.hasEnabled = self.hasEnabled || enables
            // Sessions begin behind it, or go on.
            self.stanzas = []
            self.asked.append(
                .authenticate(
                    mechanism: element["mechanism"] ?? "",
                    previous: previous,
                    binds: bind != nil,
                    enables: enables,
                    wantsToken: element.child("request-token", XMPPNamespace.fast) != nil
                )
            )
        }

        private mutating func stanza(_ element: borrowing ElementView) -> ReadingGoesOn {
            let stanza = element.element()
            self.stanzas.append(stanza)
            guard element.kind == .iq, let type = element.attribute("type"), type == "get" || type == "set" else {
                return .goOn
            }
            let payload = stanza.elements.first
            if payload?.namespace == XMPPNamespace.bind { self.hasBound = true }
            if payload?.namespace == XMPPNamespace.auth { self.hasAskedLegacy = true }
            self.asked.append(
                .request(
                    id: element.attribute("id") ?? "",
                    payload: payload?.name ?? "",
                    namespace: payload?.namespace ?? "",
                    isSet: type == "set"
                )
            )
            return .goOn
        }
    }

    init(_ framing: XMPPReader.Framing) {
        self.framing = framing
        self.reader = XMPPReader(framing: framing)
    }

    var headers: Int { self.log.headers }
    var authHeader: Int { self.log.authHeader }
    var hasBound: Bool { self.log.hasBound }
    var hasAskedLegacy: Bool { self.log.hasAskedLegacy }
    var hasAskedSASL2: Bool { self.log.hasAskedSASL2 }
    var stanzas: [XMPPElement] { self.log.stanzas }
    var hasEnabled: Bool { self.log.hasEnabled }
    var isClosed: Bool { self.log.isClosed }

    mutating func takeAsked() -> Asked? { self.log.asked.isEmpty ? nil : self.log.asked.removeFirst() }

    /// TLS is there: a new stream header comes, and what was asked before is forgotten.
    mutating func restart() {
        self.log.asked = []
    }

    private static let header = Array("<stream:stream".utf8)

    mutating func read(_ bytes: [UInt8]) throws(Finding) {
        guard self.framing == .stream else {
            try self.read(bytes[...])
            do { try self.reader.endMessage() } catch { throw Finding("half a message") }
            return
        }
        var start = bytes.startIndex
        for index in bytes.indices
        where bytes[index] == UInt8(ascii: "<") && bytes[index...].starts(with: Self.header) {
            // The first one has a declaration in front of it; each of the others begins anew.
            if self.hasBegun {
                try self.read(bytes[start..<index])
                try Finding.unless(self.reader.isBetweenElements, "a header inside an element")
                self.reader.restart()
                start = index
            }
            self.hasBegun = true
        }
        try self.read(bytes[start...])
        try Finding.unless(self.reader.isBetweenElements, "wrote half an element")
    }

    private mutating func read(_ bytes: ArraySlice<UInt8>) throws(Finding) {
        var problem: String?
        bytes.withUnsafeBytes { bytes in
            do throws(XMPPReadError) {
                _ = try self.reader.read(bytes, into: &self.log)
            } catch {
                problem = "wrote what a server refuses: \(error): \(String(decoding: bytes.prefix(400), as: UTF8.self))"
            }
        }
        if let words = problem ?? self.log.problem { throw Finding(words) }
    }
}
