import LoopContext
import NIOCore
import NIOEmbedded
import SASL
import Testing
import Transport
import XMPP

/// An XMPP connection on a channel without a socket, in virtual time, with ids and nonces that can be foretold.
final class ConnectionRig {
    let channel: EmbeddedChannel
    let context: LoopContext
    let observer: RecordingObserver
    let connection: XMPPConnection
    let place: StreamPlace

    init(
        _ options: XMPPStreamOptions,
        account: XMPPAccount,
        place: StreamPlace? = nil,
        sharing context: LoopContext = LoopContext(eventLoop: EmbeddedEventLoop()),
        modules: [any XMPPHandler] = [],
        observer: (any XMPPConnectionObserver)? = nil
    ) throws {
        self.context = context
        let loop = try #require(context.eventLoop as? EmbeddedEventLoop)
        self.channel = EmbeddedChannel(loop: loop)
        self.observer = RecordingObserver()
        self.place = place ?? StreamPlace(XMPPStream(account, options: options))
        self.connection = XMPPConnection(
            client: 3,
            loop: self.context,
            stream: self.place.pointer,
            observer: observer ?? self.observer
        )
        self.connection.plugIn(modules)
        try self.channel.pipeline.syncOperations.addHandler(self.connection.makeHandler())
        self.channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        self.context.refresh()
    }

    deinit { _ = try? self.channel.finish(acceptAlreadyClosed: true) }

    var stream: UnsafeMutablePointer<XMPPStream> { self.place.pointer }
    /// For calls of handlers.
    var module: XMPPModuleContext { XMPPModuleContext(self.connection) }
    var unacknowledged: Int { self.stream.pointee.unacknowledged }
    var canResume: Bool { self.stream.pointee.canResume }
    var strays: XMPPStrays { self.stream.pointee.strays }
    var pendingRequests: Int { self.stream.pointee.pendingRequests }
    var bytesSent: UInt64 { self.stream.pointee.bytesSent }
    var bytesReceived: UInt64 { self.stream.pointee.bytesReceived }
    var now: NIODeadline { self.channel.embeddedEventLoop.now }
    var end: XMPPConnectionEnd? { self.observer.end }

    /// A constant that is known to be valid.
    static let account: XMPPAccount = {
        do {
            return XMPPAccount(try JID("juliet@im.example.com/balcony"), password: "r0m30")
        } catch {
            fatalError("\(error)")
        }
    }()

    /// Of all tests: each hash of a password costs milliseconds.
    private static let keys = SCRAMKeyCache()

    /// Options with which everything that is random counts up from zero.
    static func options(_ change: (inout XMPPStreamOptions) -> Void = { _ in }) -> XMPPStreamOptions {
        var options = XMPPStreamOptions(keyCache: Self.keys)
        options.tlsPolicy = .off
        options.allowsPlainWithoutTLS = true
        options.mechanisms = ["PLAIN"]
        options.random = { 0 }
        options.nonce = { "fyko+d2lbbFgONRv9qkxdawL" }
        change(&options)
        return options
    }

    /// The same stream on a new connection, as after a loss.
    func again() throws -> ConnectionRig {
        try ConnectionRig(self.stream.pointee.options, account: self.stream.pointee.account, place: self.place)
    }

    func start(within time: TimeAmount = .seconds(10), isSecure: Bool = false) {
        self.connection.start(deadline: self.now + time, isBare: !isSecure, isSecure: isSecure)
    }

    func receive(_ text: String) throws { try self.receive(Array(text.utf8)) }

    func receive(_ bytes: [UInt8]) throws {
        guard !bytes.isEmpty, self.channel.isActive else { return }
        try self.channel.writeInbound(ByteBuffer(bytes: bytes))
    }

    /// The text written since the last call; both kinds of quotes count as equal.
    func sent() throws -> String {
        var text = ""
        while let buffer = try self.channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
        return text.replacing("\"", with: "'")
    }

    /// The same, one text for each write.
    func writes() throws -> [String] {
        var texts: [String] = []
        while let buffer = try self.channel.readOutbound(as: ByteBuffer.self) { texts.append(String(buffer: buffer)) }
        return texts
    }

    /// Lets time pass, and what the connection waits for happen.
    func advance(_ time: TimeAmount) {
        let end = self.now + time
        while self.observer.timer <= end, self.end == nil {
            let due = max(self.observer.timer, self.now)
            self.channel.embeddedEventLoop.advanceTime(to: due)
            self.observer.timer = .distantFuture
            self.connection.timerFired(now: self.context.refresh())
        }
        self.channel.embeddedEventLoop.advanceTime(to: end)
        self.context.refresh()
    }

    /// A stream that is ready, with the features given offered behind the login.
    static func ready(
        _ options: XMPPStreamOptions = ConnectionRig.options(),
        features: String = "",
        modules: [any XMPPHandler] = [],
        place: StreamPlace? = nil,
        sharing context: LoopContext = LoopContext(eventLoop: EmbeddedEventLoop())
    ) throws -> ConnectionRig {
        let rig = try ConnectionRig(
            options,
            account: self.account,
            place: place,
            sharing: context,
            modules: modules
        )
        rig.start()
        try rig.login(features: features)
        _ = try rig.sent()
        return rig
    }

    static let header = """
        <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
        from='im.example.com' version='1.0' id='
        """

    func login(features: String = "") throws {
        let mechanisms =
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        try self.receive("\(Self.header)a'><stream:features>\(mechanisms)</stream:features>")
        try self.receive("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        try self.receive("\(Self.header)b'><stream:features>\(bind)\(features)</stream:features>")
        guard self.stream.pointee.state == .binding else { return }
        try self.receive(
            """
            <iq type='result' id='00000000000000001'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
            <jid>juliet@im.example.com/balcony</jid></bind></iq>
            """
        )
    }
}

/// Where a stream lives, as in its owner's slab.
final class StreamPlace {
    let pointer: UnsafeMutablePointer<XMPPStream>

    init(_ stream: consuming XMPPStream) {
        self.pointer = .allocate(capacity: 1)
        self.pointer.initialize(to: stream)
    }

    deinit {
        self.pointer.deinitialize(count: 1)
        self.pointer.deallocate()
    }
}

/// Writes down what a connection tells its owner.
final class RecordingObserver: XMPPConnectionObserver {
    enum Call: Hashable {
        case ready(String, resumed: Bool, acknowledged: Int, lost: Int)
        case registered
        case received(XMPPElement)
        case requested(XMPPElement)
        case filtered(XMPPElement)
        case answered(UInt64, XMPPElement)
        case unanswered(UInt64, XMPPRequestError)
        case acknowledged(Int)
        case writable
        case ended(XMPPConnectionEnd)
    }

    var calls: [Call] = []
    var phases: [XMPPPhase: TimeAmount] = [:]
    var readiness: XMPPReadiness?
    var timer = NIODeadline.distantFuture
    var tls: ((Result<Void, ConnectError.Reason>) -> Void)?
    var onRequest: ((XMPPElement) -> Bool)?
    var onReady: (() -> Void)?
    var wrote = 0

    var end: XMPPConnectionEnd? {
        for case .ended(let end) in self.calls { return end }
        return nil
    }

    func needsTLS(
        _ client: Int,
        channel: any Channel,
        before wire: Wire,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        self.tls = done
    }

    func phase(_ client: Int, _ phase: XMPPPhase, took: TimeAmount, now: NIODeadline) { self.phases[phase] = took }

    func registered(_ client: Int, _ phases: XMPPPhases, answer: TimeAmount, now: NIODeadline) {
        self.calls.append(.registered)
    }

    func ready(_ client: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) {
        self.readiness = readiness
        self.calls.append(
            .ready(
                jid.description,
                resumed: readiness.resumed,
                acknowledged: readiness.acknowledged,
                lost: readiness.lost
            )
        )
        self.onReady?()
    }

    func received(_ client: Int, _ element: borrowing ElementView, now: NIODeadline) {
        self.calls.append(.received(element.element()))
    }

    func requested(_ client: Int, _ request: borrowing ElementView, now: NIODeadline) -> Bool {
        let element = request.element()
        self.calls.append(.requested(element))
        return self.onRequest?(element) ?? false
    }

    func answered(_ client: Int, _ token: UInt64, _ answer: borrowing ElementView, now: NIODeadline) {
        self.calls.append(.answered(token, answer.element()))
    }

    func unanswered(_ client: Int, _ token: UInt64, _ error: XMPPRequestError, now: NIODeadline) {
        self.calls.append(.unanswered(token, error))
    }

    func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool {
        self.calls.append(.filtered(stanza))
        return false
    }

    func acknowledged(_ client: Int, count: Int, now: NIODeadline) { self.calls.append(.acknowledged(count)) }
    func wrote(_ client: Int, bytes: Int) { self.wrote += bytes }
    func writable(_ client: Int, now: NIODeadline) { self.calls.append(.writable) }
    func ending(_ client: Int, unsent: Int) {}
    func ended(_ client: Int, _ end: XMPPConnectionEnd, now: NIODeadline) { self.calls.append(.ended(end)) }
    func wantsTimer(_ client: Int, at: NIODeadline) { self.timer = min(self.timer, at) }
}
