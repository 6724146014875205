import Foundation
import NIOCore
import NIOPosix

/// A domain of a real XMPP server on free ports of 127.0.0.1: ejabberd or prosody.
///
/// Accounts: ``user``, and as many `user1`, `user2` ... as requested, all with ``password`` at ``domain``; others by
/// in-band registration, which both allow without limit. ``anonymousDomain`` accepts every client. Both have roster,
/// ping, registration, MUC (`conference.DOMAIN`), carbons, MAM, PEP and pubsub (`pubsub.DOMAIN`, on prosody only
/// ``user`` creates nodes), and stream management. Neither limits rates (no shapers).
///
/// Tests share one ejabberd, and each has a domain of its own there. A fresh one is for those that stop it, or whose load
/// is as much as it carries, and for settings that others must not have. A prosody is always fresh.
package struct XMPPServer: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case ejabberd, prosody

        package var isInstalled: Bool { self == .ejabberd ? Ejabberd.isInstalled : Prosody.isInstalled }

        /// `/ws` or `/xmpp-websocket`.
        package var webSocketPath: String { self == .ejabberd ? "/ws" : "/xmpp-websocket" }

        /// Those that are on this machine; an empty list runs no test.
        package static var installed: [Kind] { Self.allCases.filter(\.isInstalled) }
    }

    /// One for all tests of a server.
    package static let anonymousDomain = "anon.localhost"
    package static let user = "clamor"
    package static let password = "secret"
    /// An option of each load on a real server: one that has just begun, on a busy host, may need more than ten seconds
    /// for its first login.
    package static let patience = "--connect-timeout 2m"
    /// Whether servers may wait for more bytes than an element has, if it comes in pieces: expat 2.6, and Debian's
    /// security updates of 2.5, put off a token that was incomplete until there are twice as many bytes.
    package static let waitsForMore: Bool = {
        guard let library = dlopen("libexpat.so.1", RTLD_LAZY) else { return false }
        return dlsym(library, "XML_SetReparseDeferralEnabled") != nil
    }()

    package let kind: Kind
    package let domain: String
    /// In clear, with STARTTLS on offer and not required.
    package let port: Int
    /// TLS at once.
    package let directTLSPort: Int
    package let webSocketPort: Int
    package let secureWebSocketPort: Int
    package let componentPort: Int
    package let program: RunningProgram
    /// The server's is ``Certificates/Name/xmpp``.
    package let certificates: Certificates

    private init(_ kind: Kind, _ server: some ServedDomain, _ certificates: Certificates) {
        self.kind = kind
        self.domain = server.domain
        self.port = server.clientPort
        self.directTLSPort = server.clientTLSPort
        self.webSocketPort = server.webSocketPort
        self.secureWebSocketPort = server.secureWebSocketPort
        self.componentPort = server.componentPort
        self.program = server.program
        self.certificates = certificates
    }

    /// Runs `body` with a domain of its own at an ejabberd that tests share, or beside a fresh server, which is gone after
    /// that and has the domain `localhost`.
    ///
    /// - Parameters:
    ///   - kind: which of the two.
    ///   - users: accounts `user1`, `user2` ...
    ///   - isOwn: whether an ejabberd is fresh in any case; with a limit and without registration it always is.
    ///   - limit: bytes a second that a client gets through, as the server's package has it; `nil`: as many as it sends.
    ///   - registers: whether accounts can be made in-band.
    ///   - sasl2: whether prosody offers SASL2, Bind 2 and tokens too; ejabberd has none of them.
    ///   - body: the test.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func with<Result>(
        _ kind: Kind,
        users: Int = 0,
        isOwn: Bool = false,
        limit: Int? = nil,
        registers: Bool = true,
        sasl2: Bool = false,
        _ body: (XMPPServer) async throws -> Result
    ) async throws -> Result {
        let certificates = try await Certificates.all()
        let isShared = !isOwn && limit == nil && registers
        switch kind {
        case .ejabberd where isShared:
            return try await Ejabberd.with(users: users) { server in
                try await body(XMPPServer(kind, server, certificates))
            }
        case .ejabberd:
            return try await Ejabberd.withOwn(
                certificate: certificates.bundle(.xmpp),
                users: users,
                limit: limit,
                registers: registers
            ) { server in
                try await body(XMPPServer(kind, server, certificates))
            }
        case .prosody:
            return try await Prosody.with(
                certificate: certificates.certificate(.xmpp),
                key: certificates.key(.xmpp),
                users: users,
                limit: limit,
                registers: registers,
                sasl2: sasl2
            ) { server in
                try await body(XMPPServer(kind, server, certificates))
            }
        }
    }

    /// The names of so many accounts.
    static func users(_ count: Int) -> [String] { (0..<count).map { "user\($0 + 1)" } }

    /// The domain of a component that connects with ``password`` (XEP-0114).
    static func componentDomain(at domain: String) -> String { "echo.\(domain)" }

    /// That of a component that connects with ``password`` (XEP-0114).
    package var componentDomain: String { Self.componentDomain(at: self.domain) }

    /// The stream header that a client opens with.
    package static func header(to domain: String) -> String {
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
            + "version='1.0' to='\(domain)'>"
    }

    /// The stream header of a client of this domain.
    package var header: String { Self.header(to: self.domain) }

    /// Makes an account by in-band registration (XEP-0077), over a connection of its own.
    package func register(_ user: String, password: String = Self.password) async throws {
        try await Self.register(user, password: password, at: self.domain, port: self.port)
    }

    static func register(
        _ user: String,
        password: String = Self.password,
        at domain: String,
        port: Int
    ) async throws {
        try await TextConnection.with(port: port) { connection in
            try await connection.send(Self.header(to: domain))
            try await connection.until { $0.contains("</stream:features>") }
            try await connection.send(
                "<iq type='set' id='register' to='\(domain)'><query xmlns='jabber:iq:register'>"
                    + "<username>\(user)</username><password>\(password)</password></query></iq>"
            )
            let answer = try await connection.until { text in
                guard let start = text.range(of: "</stream:features>")?.upperBound else { return false }
                return text[start...].contains("</iq>") || text[start...].contains("/>")
            }
            guard answer.contains("result") else { throw NotRegistered(description: answer) }
        }
    }

    private struct NotRegistered: Error, CustomStringConvertible {
        let description: String
    }
}

/// A TCP connection for tests that speak text by hand.
package final class TextConnection: Sendable {
    package struct Ended: Error, CustomStringConvertible {
        package let description: String
    }

    private let channel: any Channel
    private let reader: NIOLoopBound<TextReader>

    /// Runs `body` with a connection to a port of 127.0.0.1, which is closed after that.
    package static func with<Result>(
        port: Int,
        _ body: (TextConnection) async throws -> Result
    ) async throws -> Result {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let reader = try await loop.submit { NIOLoopBound(TextReader(), eventLoop: loop) }.get()
        let channel = try await ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(reader.value)
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let connection = TextConnection(channel, reader)
        do {
            let result = try await body(connection)
            try? await channel.close()
            return result
        } catch {
            try? await channel.close()
            throw error
        }
    }

    private init(_ channel: any Channel, _ reader: NIOLoopBound<TextReader>) {
        self.channel = channel
        self.reader = reader
    }

    package func send(_ text: String) async throws {
        try await self.channel.writeAndFlush(ByteBuffer(string: text)).get()
    }

    /// Returns all that has come, once it is right.
    @discardableResult
    package func until(_ isRight: @escaping @Sendable (String) -> Bool) async throws -> String {
        let loop = self.channel.eventLoop
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: String.self)
            self.reader.value.waiting.append((isRight, promise))
            self.reader.value.wake()
            return promise.futureResult
        }.get()
    }
}

private final class TextReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    var waiting: [(isRight: (String) -> Bool, promise: EventLoopPromise<String>)] = []
    private var bytes: [UInt8] = []
    private var hasEnded = false

    func wake() {
        guard !self.waiting.isEmpty else { return }
        let text = String(decoding: self.bytes, as: UTF8.self)
        let ready = self.waiting.filter { $0.isRight(text) }
        self.waiting.removeAll { $0.isRight(text) }
        for entry in ready { entry.promise.succeed(text) }
        guard self.hasEnded else { return }
        let late = self.waiting
        self.waiting = []
        for entry in late {
            entry.promise.fail(TextConnection.Ended(description: "the connection ended behind: \(text)"))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.bytes += self.unwrapInboundIn(data).readableBytesView
        self.wake()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.hasEnded = true
        self.wake()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
