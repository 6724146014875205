import CFuzzing
import LoopContext
import NIOCore
import NIOEmbedded
import SASL
import XMPP
import XMPPErrorNames

/// A client's XMPP streams, as its connections drive them, between a server that says what it likes and an owner that
/// makes use of them: reader, negotiation, modules, TLS that is said to be there, losses and resumptions.
///
/// Runs on a channel without a socket, in virtual time. A reader beside it reads what the client writes, and books what
/// it asks.
package final class StreamTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .conversation }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    private static let steps = 96
    /// Between two looks at the memory.
    private static let lookEvery = 16_384
    /// Memory that stays after an input: the cache of keys and the corpus of the run.
    private static let growth = 48 << 20

    private let loop = EmbeddedEventLoop()
    private let context: LoopContext
    /// Each hash of a password costs milliseconds.
    private let keys = SCRAMKeyCache(capacity: 256)
    private var heap: Int?

    package init() { self.context = LoopContext(eventLoop: self.loop) }

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        try self.lookAtMemory()
        guard input.count > FuzzInput.settingsCount else { return }
        let settings = StreamSettings(input)
        let life = StreamLife(settings, keys: self.keys, loop: self.loop, context: self.context)
        defer { life.tearDown() }
        // Seeds are all looked at, and of the others every eighth.
        life.observer.describesEnds = self.reached.inputs < 4_096 || self.reached.inputs & 7 == 0
        try life.connect()
        var walk = ProgramWalk(UnsafeRawBufferPointer(rebasing: input[FuzzInput.settingsCount...]), isWide: true)
        var left = Self.steps
        while left > 0, let step = walk.next() {
            left -= 1
            switch step {
            case .feed(_, let bytes): try life.feed(bytes)
            case .call(let code, let argument): try life.call(code, argument)
            }
            try life.check()
        }
        try life.finish()
        self.note(life)
    }

    private func lookAtMemory() throws(Finding) {
        guard self.reached.inputs % Self.lookEvery == 0 else { return }
        let heap = Int(clamor_heap_bytes())
        let first = self.heap ?? heap
        self.heap = first
        try Finding.unless(heap <= first + Self.growth, "\(heap) bytes of memory are in use, \(first) were")
    }

    private func note(_ life: StreamLife) {
        var signature: UInt64 = 0
        for (index, state) in XMPPState.allCases.enumerated() where life.states & 1 << UInt32(index) != 0 {
            signature |= 1 << UInt64(index)
            self.reached.note("state: \(state)")
        }
        let negotiating = XMPPState.allCases.firstIndex(of: .negotiating) ?? 0
        if signature >> UInt64(negotiating) != 0 { self.reached.withPacket += 1 }
        for (index, count) in life.observer.events.enumerated() where count > 0 {
            self.reached.note(StreamEvent.allCases[index].rawValue, count)
            signature |= 1 << UInt64(16 + index)
        }
        for end in life.observer.ends {
            let name = Self.name(of: end)
            self.reached.note("end: " + name)
            let hash = name.utf8.reduce(UInt64(5_381)) { ($0 &* 33) ^ UInt64($1) }
            signature ^= hash << 40
        }
        self.signature = signature
    }

    /// The case alone.
    private static func name(of end: XMPPConnectionEnd) -> String {
        switch end {
        case .answered: "answered"
        case .closedByPeer: "closed by peer"
        case .lost: "lost"
        case .failed: "failed"
        case .timedOut(let phase): "timed out: \(phase.rawValue)"
        case .aborted: "aborted"
        case .streamError: "stream error"
        case .unexpected(_, let state): "unexpected in \(state)"
        case .violation(let condition, _): "violation: \(condition.rawValue)"
        case .malformed(let error): "malformed: \(error.name)"
        case .notAuthenticated(let failure): "not authenticated: \(failure.condition.rawValue)"
        default: end.kind
        }
    }
}

/// The settings in an input's first four bytes.
struct StreamSettings {
    let isSecure: Bool
    let hasModules: Bool
    let hasLocal: Bool
    /// Bytes of a read; 0 for reads as they come.
    let piece: Int

    private let bytes: (UInt8, UInt8, UInt8)

    init(_ input: UnsafeRawBufferPointer) {
        let (zero, one, two) = (input[0], input[1], input[2])
        self.bytes = (zero, one, two)
        self.isSecure = zero & 16 != 0
        self.hasModules = one & 16 != 0
        self.hasLocal = two & 7 != 3
        self.piece = zero & 32 != 0 || input[3] == 0 ? 0 : 1 + Int(input[3] & 63)
    }

    func options(_ keys: SCRAMKeyCache) -> XMPPStreamOptions {
        let (zero, one, two) = self.bytes
        var options = XMPPStreamOptions(keyCache: keys)
        options.tlsPolicy = XMPPTLSPolicy.allCases[Int(zero & 7) % 5]
        options.allowsPlainWithoutTLS = zero & 8 != 0
        options.framing = zero & 32 != 0 ? .webSocket : .stream
        options.hasClientCertificate = zero & 64 != 0
        options.allowsLegacyAuthentication = zero & 128 != 0
        options.registration = [.none, .create, .createIfMissing, .none][Int(one & 3)]
        options.management = [.off, .acknowledge, .resume, .resume][Int(one >> 2 & 3)]
        options.keepAlive = one & 32 != 0 ? .seconds(40) : .zero
        // Clients without a server have no WebSocket between them.
        let isPeer = one & 128 != 0 && options.framing == .stream
        options.peerRole = !isPeer ? nil : one & 64 == 0 ? .initiator : .recipient
        options.mechanisms =
            [nil, ["PLAIN"], ["SCRAM-SHA-1"], ["ANONYMOUS"], ["SCRAM-SHA-256", "PLAIN"], nil, ["EXTERNAL"], nil][
                Int(two & 7)
            ]
        options.allowsDigestMD5 = two & 7 == 5
        options.refusesUnknownElements = two & 8 != 0
        if two & 16 != 0 {
            options.acknowledgesEvery = 2
            options.acknowledgesAfter = .seconds(1)
        }
        if two & 32 != 0 { options.limits = XMPPLimits(stanzaBytes: 2_048, depth: 8, attributes: 8, nameBytes: 64) }
        if two & 64 != 0 {
            options.maximumUnacknowledged = 4
            options.maximumUnacknowledgedBytes = 512
        }
        if two & 128 != 0 { options.features = [FuzzFeature()] }
        options.customNamespaces = ["urn:example:c"]
        options.iterations = 1...4_096
        if one & 192 == 64 {
            var login = XMPPSASL2Options(userAgent: XMPPUserAgent(id: "d4565fa7-4d72-4749-b3d3-740edbf87770"))
            login.enablesCarbonsInline = true
            login.beginsInactive = true
            login.usesTokens = true
            options.login = .sasl2(login)
        }
        options.wallClock = { 0 }
        options.random = { 0 }
        options.nonce = { "fyko+d2lbbFgONRv9qkxdawL" }
        return options
    }
}

/// A feature implemented outside the stream.
private struct FuzzFeature: XMPPStreamFeature {
    let name = "hello"
    let namespace = "urn:example:hello"
    let needs: XMPPStreamFacts = []

    func begin(_ offered: XMPPElement, on streamID: String) -> XMPPElement? {
        XMPPElement("hello", namespace: self.namespace, attributes: ["id": streamID])
    }

    func received(_ element: XMPPElement) -> XMPPFeatureAnswer {
        switch element.name {
        case "more": .send(XMPPElement("more", namespace: self.namespace))
        case "done": .done
        default: .failed("no \(element.name)")
        }
    }
}
