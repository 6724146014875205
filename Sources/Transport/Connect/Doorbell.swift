package import LoopContext
package import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#endif

/// Calls back after the loop's sockets have been handled.
///
/// NIO runs all executed tasks and due timers before it handles sockets. Work that always adds more work would thus
/// delay acknowledgements for ever. A byte in a pipe is a socket event too, and is handled after the others. It costs
/// two system calls, under 2 µs, and no sleep.
package final class Doorbell: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer

    private let writeEnd: CInt
    private var channel: (any Channel)?
    private var call: (() -> Void)?

    private init(writeEnd: CInt) { self.writeEnd = writeEnd }

    deinit { close(self.writeEnd) }

    /// Installs a doorbell on the loop, as ``LoopContext/afterSockets``; must be called on the loop.
    package static func install(on context: LoopContext) -> EventLoopFuture<Void> {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else {
            return context.eventLoop.makeFailedFuture(IOError(errnoCode: errno, reason: "pipe"))
        }
        let bell = NIOLoopBound(Doorbell(writeEnd: ends[1]), eventLoop: context.eventLoop)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        return NIOPipeBootstrap(group: context.eventLoop)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 16))
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(bell.value)
                }
            }
            .takingOwnershipOfDescriptor(input: ends[0])
            .map { channel in
                bell.value.channel = channel
                bound.value.afterSockets = { [bell = bell.value] call in bell.ring(call) }
            }
    }

    private func ring(_ call: @escaping () -> Void) {
        self.call = call
        var byte: UInt8 = 1
        _ = write(self.writeEnd, &byte, 1)
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let call = self.call
        self.call = nil
        call?()
    }
}
