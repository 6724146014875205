import NIOCore
import NIOPosix
import NIOSSL

/// One handshake that only inspects the server's certificates.
struct TLSDiagnosis {
    let context: TLSContext
    let target: Target
    let eventLoop: any EventLoop
    let preamble: TLSPreamble?

    /// Timeout of the diagnosis; the refused clients wait for it.
    private static let time = TimeAmount.seconds(2)

    /// The error of the certificates; `nil` if none arrived.
    func run(_ address: SocketAddress) -> EventLoopFuture<TLSFailure?> {
        let arrived = self.eventLoop.makePromise(of: [[UInt8]]?.self)
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
                            arrived.succeed(chain.compactMap { try? $0.toDERBytes() })
                            promise.succeed(.failed)
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
        connected.whenFailure { _ in arrived.succeed(nil) }
        // Of the server alone: a busy host may take longer for the check.
        let deadline = self.eventLoop.scheduleTask(in: Self.time) { arrived.succeed(nil) }
        arrived.futureResult.whenComplete { _ in
            deadline.cancel()
            connected.whenSuccess { $0.close(promise: nil) }
        }
        let eventLoop = self.eventLoop
        return arrived.futureResult.flatMap { presented in
            eventLoop.makeFutureWithTask {
                guard let presented else { return nil }
                return await context.diagnosis().failure(of: presented, for: name)
            }
        }
    }
}

/// Ignores errors, because this side refuses the handshake itself.
private final class IgnoredErrors: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
