import NIOCore
import NIOPosix

/// Relays bytes between clients and a server, and cuts the connection on demand.
final class CuttingRelay: Sendable {
    private let channel: any Channel
    private let state: NIOLoopBound<State>

    private final class State {
        var client: (any Channel)?
        var server: (any Channel)?
        /// Discards the bytes from the client.
        var loses = false
    }

    var port: UInt16 { UInt16(self.channel.localAddress?.port ?? 0) }

    private init(_ channel: any Channel, _ state: NIOLoopBound<State>) {
        self.channel = channel
        self.state = state
    }

    static func with<Result>(to port: Int, _ body: (CuttingRelay) async throws -> Result) async throws -> Result {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let state = try await loop.submit { NIOLoopBound(State(), eventLoop: loop) }.get()
        let channel = try await ServerBootstrap(group: loop)
            .childChannelInitializer { client in
                ClientBootstrap(group: loop).connect(host: "127.0.0.1", port: port).flatMapThrowing { server in
                    state.value.client = client
                    state.value.server = server
                    state.value.loses = false
                    try client.pipeline.syncOperations.addHandler(Passer(server, state.value, closesToo: false))
                    try server.pipeline.syncOperations.addHandler(Passer(client, nil, closesToo: true))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let relay = CuttingRelay(channel, state)
        do {
            let result = try await body(relay)
            try await channel.close()
            return result
        } catch {
            try? await channel.close()
            throw error
        }
    }

    /// From now on what the client sends is lost, until it connects again.
    func lose() async throws {
        let state = self.state
        try await self.channel.eventLoop.submit { state.value.loses = true }.get()
    }

    /// Cuts the latest connection, and returns when the server has closed its side.
    ///
    /// Bytes in flight to the client are lost; the relay still passes the client's bytes to the server.
    func cut() async throws {
        let (state, loop) = (self.state, self.channel.eventLoop)
        try await loop.flatSubmit { () -> EventLoopFuture<Void> in
            guard let client = state.value.client, let server = state.value.server else {
                return loop.makeFailedFuture(ChannelError.alreadyClosed)
            }
            client.close(promise: nil)
            server.close(mode: .output, promise: nil)
            return server.closeFuture
        }.get()
    }

    private final class Passer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let other: any Channel
        /// A server has read all before it closes; a client that goes leaves it to that.
        private let closesToo: Bool
        private let state: State?

        init(_ other: any Channel, _ state: State?, closesToo: Bool) {
            self.other = other
            self.state = state
            self.closesToo = closesToo
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if self.state?.loses ?? false { return }
            self.other.writeAndFlush(self.unwrapInboundIn(data), promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { if self.closesToo { self.other.close(promise: nil) } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
