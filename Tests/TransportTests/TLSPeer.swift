import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import TestSupport
import Transport

/// A TLS server on 127.0.0.1 that echoes, and keeps what it saw of its clients.
final class TLSPeer: Sendable {
    struct Seen: Sendable {
        /// Handshakes it took for done.
        var handshakes = 0
        var serverNames: [String?] = []
        var protocols: [String?] = []
        var versions: [TLSVersion?] = []
        /// DER of the clients' certificates.
        var clientCertificates: [[UInt8]] = []
        var bytes: [UInt8] = []
        /// Clients whose close_notify came.
        var closeNotifies = 0
        var connections = 0
        var errors: [String] = []
    }

    /// Makes it shut its socket without close_notify.
    static let hangUp = Array("hang up".utf8)

    let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let server: any Channel
    private let state: NIOLoopBound<TLSPeerState>

    init(_ settings: TLSServer) async throws {
        let context = try settings.makeContext()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        self.group = group
        let state = try await loop.submit { NIOLoopBound(TLSPeerState(), eventLoop: loop) }.get()
        self.state = state
        self.server = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 4_096)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    state.value.seen.connections += 1
                    let names = ByteToMessageHandler(
                        SNIHandler { result in
                            if case .hostname(let name) = result {
                                state.value.seen.serverNames.append(name)
                            } else {
                                state.value.seen.serverNames.append(nil)
                            }
                            return channel.eventLoop.makeSucceededVoidFuture()
                        }
                    )
                    let tls = NIOSSLServerHandler(context: context)
                    try channel.pipeline.syncOperations.addHandlers([names, tls, TLSPeerHandler(state.value, tls)])
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        guard let port = self.server.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        self.port = port
    }

    func seen() async throws -> Seen {
        try await self.group.next().submit { self.state.value.seen }.get()
    }

    /// Returns what it saw, once that is right.
    @discardableResult
    func until(_ isRight: @escaping @Sendable (Seen) -> Bool) async throws -> Seen {
        try await self.group.next().flatSubmit {
            let promise = self.group.next().makePromise(of: Seen.self)
            self.state.value.waiting.append((isRight, promise))
            self.state.value.wake()
            return promise.futureResult
        }.get()
    }

    func shutdown() async throws {
        try? await self.server.close()
        try await self.group.shutdownGracefully()
    }
}

/// Runs `body` beside a TLS server.
func withTLSPeer<Answer>(_ settings: TLSServer, _ body: (TLSPeer) async throws -> Answer) async throws -> Answer {
    let peer = try await TLSPeer(settings)
    do {
        let answer = try await body(peer)
        try await peer.shutdown()
        return answer
    } catch {
        try? await peer.shutdown()
        throw error
    }
}

final class TLSPeerState {
    var seen = TLSPeer.Seen() { didSet { self.wake() } }
    var waiting: [(isRight: @Sendable (TLSPeer.Seen) -> Bool, promise: EventLoopPromise<TLSPeer.Seen>)] = []

    func wake() {
        let ready = self.waiting.filter { $0.isRight(self.seen) }
        self.waiting.removeAll { $0.isRight(self.seen) }
        for entry in ready { entry.promise.succeed(self.seen) }
    }
}

private final class TLSPeerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let state: TLSPeerState
    private let tls: NIOSSLServerHandler

    init(_ state: TLSPeerState, _ tls: NIOSSLServerHandler) {
        self.state = state
        self.tls = tls
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let chosen):
            self.state.seen.protocols.append(chosen)
            self.state.seen.versions.append(self.tls.tlsVersion)
            if let certificate = try? self.tls.peerCertificate?.toDERBytes() {
                self.state.seen.clientCertificates.append(certificate)
            }
            self.state.seen.handshakes += 1
        case ChannelEvent.inputClosed:
            if self.state.seen.errors.isEmpty { self.state.seen.closeNotifies += 1 }
            context.close(promise: nil)
        default: break
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        if Array(bytes.readableBytesView) == TLSPeer.hangUp {
            // From the TLS handler's place on, so past it.
            let below = try? context.pipeline.syncOperations.context(handler: self.tls)
            below?.close(mode: .output, promise: nil)
            return
        }
        self.state.seen.bytes += bytes.readableBytesView
        context.writeAndFlush(data, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.state.seen.errors.append("\(error)")
        context.close(promise: nil)
    }
}

/// Runs `body` with a loop whose clients speak TLS to a port of 127.0.0.1, known as `host`.
func withTLSLoop<Answer>(
    _ settings: TLSSettings,
    host: String = "broker.test",
    port: Int,
    readSize: Int = 65_536,
    _ body: (TestLoop) async throws -> Answer
) async throws -> Answer {
    let context = try TLSContext(settings)
    let lookup: NameLookup = { _ in
        Result { [try SocketAddress(ipAddress: "127.0.0.1", port: 0)] }.mapError { LookupFailure("\($0)") }
    }
    return try await withTestLoop(
        [Target(host: host, port: port)],
        readSize: readSize,
        layers: { [TLSLayer(context, loop: $0)] },
        lookup: lookup,
        body
    )
}

/// A TLS server with one of the test certificates.
func server(_ certificates: Certificates, _ name: Certificates.Name = .server) -> TLSServer {
    TLSServer(certificateFile: certificates.certificate(name), keyFile: certificates.key(name))
}

/// Settings of a client that trusts the tests' authority.
func trusting(_ certificates: Certificates) -> TLSSettings {
    var settings = TLSSettings()
    settings.authorityFile = certificates.authority
    return settings
}

extension Result<Connection, ConnectError> {
    /// Why there is no TLS.
    var tlsFailure: TLSFailure? {
        if case .failure(let error) = self, case .tls(let failure) = error.reason { failure } else { nil }
    }

    var reason: ConnectError.Reason? {
        if case .failure(let error) = self { error.reason } else { nil }
    }
}
