import NIOCore
import NIOPosix
import NIOSSL

/// One handshake that only looks at the server's certificates.
struct TLSDiagnosis {
    let context: TLSContext
    let target: Target
    let eventLoop: any EventLoop
    let preamble: TLSPreamble?

    /// A server that takes longer is not waited for: the clients that were refused wait too.
    private static let time = TimeAmount.seconds(2)

    /// What is wrong with them; nothing if they never came.
    func run(_ address: SocketAddress) -> EventLoopFuture<TLSFailure?> {
        let found = self.eventLoop.makePromise(of: TLSFailure?.self)
        let name = self.context.name(for: self.target)
        let context = self.context
        let preamble = self.preamble
        let connected = ClientBootstrap(group: self.eventLoop)
            .connectTimeout(Self.time)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = try NIOSSLClientHandler(
                        context: context.native,
                        serverHostname: name.host,
                        customVerificationCallback: { chain, promise in
                            let presented = chain.compactMap { try? $0.toDERBytes() }
                            promise.succeed(.failed)
                            Task { found.succeed(await context.diagnosis().failure(of: presented, for: name)) }
                        }
                    )
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(IgnoredErrors())
                    if let preamble {
                        try pipeline.addHandler(TLSPreambleHandler(preamble, tls), position: .first)
                    } else {
                        try pipeline.addHandler(tls, position: .first)
                    }
                }
            }
            .connect(to: address)
        connected.whenFailure { _ in found.succeed(nil) }
        let deadline = self.eventLoop.scheduleTask(in: Self.time) { found.succeed(nil) }
        found.futureResult.whenComplete { _ in
            deadline.cancel()
            connected.whenSuccess { $0.close(promise: nil) }
        }
        return found.futureResult
    }
}

/// The refusal was our own.
private final class IgnoredErrors: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
