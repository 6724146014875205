import NIOCore
import NIOPosix
import NIOSSL

/// A client that writes bytes made by hand, and keeps what comes.
final class RawClient: Sendable {
    private let channel: any Channel
    private let bytes: EventLoopFuture<[UInt8]>

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var bytes: [UInt8] = []
        private let promise: EventLoopPromise<[UInt8]>

        init(_ promise: EventLoopPromise<[UInt8]>) { self.promise = promise }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.bytes += self.unwrapInboundIn(data).readableBytesView
        }

        func channelInactive(context: ChannelHandlerContext) { self.promise.succeed(self.bytes) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// - Parameters:
    ///   - port: on 127.0.0.1.
    ///   - tls: the context, where the port speaks TLS.
    /// - Throws: why there is no connection.
    init(port: Int, tls: NIOSSLContext? = nil) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let loop = group.next()
        let promise = loop.makePromise(of: [UInt8].self)
        self.bytes = promise.futureResult
        do {
            self.channel = try await ClientBootstrap(group: loop)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let tls {
                            let handler = try NIOSSLClientHandler(context: tls, serverHostname: nil)
                            try channel.pipeline.syncOperations.addHandler(handler)
                        }
                        try channel.pipeline.syncOperations.addHandler(Collector(promise))
                    }
                }
                .connect(host: "127.0.0.1", port: port).get()
        } catch {
            promise.fail(error)
            throw error
        }
    }

    func send(_ bytes: [UInt8]) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    func halfClose() async throws { try await self.channel.close(mode: .output) }

    /// All that came, when the broker has closed the connection.
    func all() async throws -> [UInt8] { try await self.bytes.get() }

    /// Sends bytes in pieces, each by a write of its own, and takes what comes until the broker closes.
    static func talk(_ port: Int, tls: NIOSSLContext? = nil, _ pieces: [[UInt8]]) async throws -> [UInt8] {
        let client = try await RawClient(port: port, tls: tls)
        // The broker may have closed in the middle of them, which is for its answer to tell.
        for piece in pieces { try? await client.send(piece) }
        return try await client.all()
    }
}
