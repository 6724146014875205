import NIOCore
import NIOPosix

/// Stands between clients and a server, and cuts the connections on which the accounts 1 to 4 are asked for first: of odd
/// ones before the server hears of it, of even ones when it answers.
enum RegisterRelay {
    private final class State {
        var seen: Set<Int> = []
    }

    static func with<Result>(to port: Int, _ body: (_ port: Int) async throws -> Result) async throws -> Result {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let state = try await loop.submit { NIOLoopBound(State(), eventLoop: loop) }.get()
        let channel = try await ServerBootstrap(group: loop)
            .childChannelInitializer { client in
                ClientBootstrap(group: loop).connect(host: "127.0.0.1", port: port).flatMapThrowing { server in
                    let asking = Asking(server, state.value)
                    try client.pipeline.syncOperations.addHandler(asking)
                    try server.pipeline.syncOperations.addHandler(Answering(client, asking))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        do {
            let result = try await body(channel.localAddress?.port ?? 0)
            try await channel.close()
            return result
        } catch {
            try? await channel.close()
            throw error
        }
    }

    /// Bytes from the client.
    private final class Asking: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let server: any Channel
        private let state: State
        private var text = ""
        /// The answer is not for the client.
        private(set) var withholds = false

        init(_ server: any Channel, _ state: State) {
            self.server = server
            self.state = state
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = self.unwrapInboundIn(data)
            self.text += String(buffer: bytes)
            if let user = self.text.firstMatch(of: />new([1-4])</).flatMap({ Int($0.1) }),
                self.state.seen.insert(user).inserted
            {
                self.withholds = user % 2 == 0
                if !self.withholds {
                    self.server.close(promise: nil)
                    return context.close(promise: nil)
                }
            }
            self.server.writeAndFlush(bytes, promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { self.server.close(mode: .output, promise: nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Bytes from the server.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let client: any Channel
        private let asking: Asking

        init(_ client: any Channel, _ asking: Asking) {
            self.client = client
            self.asking = asking
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !self.asking.withholds else { return self.client.close(promise: nil) }
            self.client.writeAndFlush(self.unwrapInboundIn(data), promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { self.client.close(promise: nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
