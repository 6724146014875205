import LoopContext
import NIOCore
import NIOEmbedded
import SASL
import Transport
import XMPP

/// One input: a client over its connections.
final class StreamLife {
    let settings: StreamSettings
    let options: XMPPStreamOptions
    let loop: EmbeddedEventLoop
    let context: LoopContext
    let stream: UnsafeMutablePointer<XMPPStream>
    let observer = StreamObserver()
    var channel: EmbeddedChannel?
    var connection: XMPPConnection?
    /// The server that reads what the client writes.
    var server: WrittenStream
    /// Everything of the server's on this connection.
    var fed: [UInt8] = []
    /// The number of answers per request.
    var closures: [Int] = []
    var receipts: [Int] = []
    /// Requests to remove the account.
    var removals = 0
    var token: UInt64 = 0
    /// The states that there were, a bit each.
    var states: UInt32 = 0
    let roster = RosterHandler()
    let archive = ArchiveHandler()
    let rooms = RoomsHandler { _ in }
    let carbons = CarbonsHandler(isAutomatic: true) { _ in }
    let pubSub = PubSubHandler { _ in }
    let receiptsAsked = ReceiptsHandler()
    let registration = RegistrationHandler()
    let discovery = DiscoveryHandler(.init(category: "client", type: "bot"), node: "urn:clamor")
    let presence = PresenceHandler(offersPreapproval: { _ in true }, maximum: 4, accepts: { $0.local == "a" })
    let activity = ActivityHandler { _ in true }
    let pending = PendingAnswers()
    let responder: ResponderHandler
    private var isSecure = false
    private var readies = 0

    /// A constant that is known to be valid.
    private static func jid(_ text: String) -> JID {
        do { return try JID(text) } catch { fatalError("\(error)") }
    }

    static let password = "r0m30myr0m30"
    private static let secret = Array(StreamLife.password.utf8)
    /// The same with its user, as PLAIN says it.
    private static let plain = Array("AGp1bGlldAByMG0zMG15cjBtMzA=".utf8)
    static let friend = StreamLife.jid("a@b/c")
    static let room = StreamLife.jid("hall@muc.example.com")
    private static let account = XMPPAccount(
        StreamLife.jid("juliet@im.example.com/balcony"),
        password: StreamLife.password
    )
    private static let nobody = XMPPAccount(StreamLife.jid("im.example.com"))
    private static let caller = XMPPAccount(
        StreamLife.jid("juliet@im.example.com/balcony"),
        password: StreamLife.password,
        peer: StreamLife.jid("romeo@im.example.com")
    )

    init(_ settings: StreamSettings, keys: SCRAMKeyCache, loop: EmbeddedEventLoop, context: LoopContext) {
        self.settings = settings
        self.loop = loop
        self.context = context
        self.options = settings.options(keys)
        self.responder = ResponderHandler("x", "urn:example:r", maximum: 3) { [pending] _, number in
            pending.numbers.append(number)
            return nil
        }
        let account =
            self.options.peerRole == .initiator ? Self.caller : settings.hasLocal ? Self.account : Self.nobody
        self.stream = .allocate(capacity: 1)
        self.stream.initialize(to: XMPPStream(account, options: self.options))
        self.server = WrittenStream(self.options.framing)
    }

    func tearDown() {
        self.observer.reaction = nil
        self.connection?.abort()
        self.connection = nil
        // A handshake that has not ended retains the connection, whose requests retain this object.
        self.observer.tls = nil
        self.channel?.pipeline.fireChannelInactive()
        self.channel = nil
        self.loop.run()
        self.stream.deinitialize(count: 1)
        self.stream.deallocate()
    }

    var now: NIODeadline { self.loop.now }
    var isOpen: Bool { self.connection != nil && !self.observer.hasEnded }
    var state: XMPPState { self.stream.pointee.state }

    func connect() throws(Finding) {
        let channel = EmbeddedChannel(loop: self.loop)
        let connection = XMPPConnection(client: 1, loop: self.context, stream: self.stream, observer: self.observer)
        if self.settings.hasModules {
            connection.plugIn([
                PingHandler(interval: .seconds(60)), self.roster, self.carbons, self.rooms, self.archive,
                self.pubSub, self.receiptsAsked, self.registration, self.discovery, self.presence, self.activity,
                SoftwareVersionHandler(.init(name: "fuzz", version: "1")),
                FilterHandler(sent: { $0 }, received: { $0["id"] == "drop" ? nil : $0 }), self.responder,
            ])
        }
        do {
            try channel.pipeline.syncOperations.addHandler(connection.makeHandler())
            channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        } catch {
            throw Finding("no channel: \(error)")
        }
        self.channel = channel
        self.connection = connection
        self.observer.book.begins(
            sent: self.stream.pointee.stanzasSent,
            canResume: self.stream.pointee.canResume,
            wasEnabled: self.server.hasEnabled
        )
        self.server = WrittenStream(self.options.framing)
        self.fed = []
        self.observer.begin()
        self.isSecure = self.settings.isSecure
        let now = self.context.refresh()
        connection.start(deadline: now + .seconds(30), isBare: !self.isSecure, isSecure: self.isSecure)
    }

    func secured() {
        guard let done = self.observer.tls.take() else { return }
        self.isSecure = true
        self.server.restart()
        self.observer.events[StreamEvent.secured.index] += 1
        done(.success(()))
    }

    // MARK: What the server says

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Finding) {
        var rest = bytes[...]
        while !rest.isEmpty, self.isOpen {
            let piece = self.settings.piece == 0 ? rest : rest.prefix(self.settings.piece)
            rest = rest[piece.endIndex...]
            self.receive(ByteBuffer(bytes: piece))
        }
    }

    func say(_ text: String) { if self.isOpen { self.receive(ByteBuffer(string: text)) } }

    private func receive(_ buffer: ByteBuffer) {
        self.fed += buffer.readableBytesView
        guard let pipeline = self.channel?.pipeline else { return }
        pipeline.fireChannelRead(buffer)
        pipeline.fireChannelReadComplete()
    }

    // MARK: What must hold

    func check() throws(Finding) {
        self.states |= 1 << UInt32(XMPPState.allCases.firstIndex(of: self.state) ?? 0)
        if let problem = self.observer.problem { throw Finding(problem) }
        try self.readWritten()
        try self.observer.book.check(self.server.stanzas, self.stream.pointee, isOpen: self.isOpen)
        if self.observer.readies > self.readies {
            self.readies = self.observer.readies
            try self.checkLogin()
        }
        try Finding.unless(self.context.scratch.pointee.readableBytes == 0, "bytes left in the loop's scratch buffer")
        let pending = self.stream.pointee.pendingRequests
        // The ping to a silent server and the wish for copies belong to the modules, not to the test. A removal of the
        // account ends with the connection, though the stream keeps its request for a resumption.
        let own = self.settings.hasModules ? 2 + self.removals : 0
        let open = self.closures.count { $0 == 0 } + self.observer.tokens.values.count { $0 == 0 } + own
        try Finding.unless(pending <= open, "\(pending) requests wait, \(open) have no answer")
        try Finding.unless(!self.closures.contains { $0 > 1 }, "a request was answered twice")
        try Finding.unless(!self.observer.tokens.values.contains { $0 > 1 }, "a request by bytes was answered twice")
        try Finding.unless(!self.receipts.contains { $0 > 1 }, "a receipt came twice")
        try Finding.unless(self.presence.count <= 4, "\(self.presence.count) presences are kept")
        let tasks = self.responder.running
        try Finding.unless(tasks == self.pending.numbers.count && tasks <= 3, "\(tasks) requests are being answered")
    }

    /// A stream is ready only after a login.
    private func checkLogin() throws(Finding) {
        guard self.options.peerRole == nil, !self.server.hasAskedLegacy else { return }
        try Finding.unless(self.server.authHeader > 0, "ready without a login")
        let isNew = self.server.hasAskedSASL2 || self.server.headers > self.server.authHeader
        try Finding.unless(isNew, "ready without a new stream after the login")
        try Finding.unless(self.server.hasBound, "ready, and neither bound nor resumed")
        try Finding.unless(Self.find(Array("success".utf8), in: self.fed), "ready, and the server never said success")
    }

    private func readWritten() throws(Finding) {
        while true {
            let buffer: ByteBuffer?
            do { buffer = try self.channel?.readOutbound(as: ByteBuffer.self) } catch { throw Finding("\(error)") }
            guard let buffer else { return }
            try Finding.unless(buffer.readableBytes > 0, "an empty write")
            try Finding.unless(buffer.readableBytes <= 65_536, "a write of \(buffer.readableBytes) bytes")
            let bytes = Array(buffer.readableBytesView)
            if !self.isSecure, !self.options.allowsPlainWithoutTLS, self.options.tlsPolicy != .off {
                let isSaid = Self.find(Self.secret, in: bytes) || Self.find(Self.plain, in: bytes)
                try Finding.unless(!isSaid, "the password is said in clear")
            }
            try self.server.read(bytes)
        }
    }

    private static func find(_ part: [UInt8], in bytes: [UInt8]) -> Bool {
        guard let first = part.first, bytes.count >= part.count else { return false }
        for start in 0...(bytes.count - part.count) where bytes[start] == first {
            if bytes[start..<(start + part.count)].elementsEqual(part) { return true }
        }
        return false
    }

    func finish() throws(Finding) {
        self.observer.reaction = nil
        self.connection?.abort()
        self.loop.run()
        self.context.refresh()
        try self.check()
        try Finding.unless(self.observer.hasEnded, "no word about the end")
        try Finding.unless(self.state == .disconnected, "not disconnected behind the end")
        for handler in self.stream.pointee.takeAllWaiting() { handler(.failure(.connectionLost)) }
        let isKept = self.stream.pointee.canResume
        for count in self.closures { try Finding.unless(count == 1, "a request came back \(count) times") }
        for count in self.receipts { try Finding.unless(count == 1, "a receipt came \(count) times") }
        for count in self.observer.tokens.values {
            try Finding.unless(count == 1 || isKept && count == 0, "a request by bytes came back \(count) times")
        }
    }
}

/// The requests that an application has not answered yet.
final class PendingAnswers {
    var numbers: [UInt64] = []
}
