import LoopContext
package import NIOCore

#if canImport(Glibc)
import Glibc
#endif

// The events of a channel.
extension Wire: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.channel = context.channel
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        // The owner releases a connection when it ends, so each connection has to report an end.
        self.end(.finished(hasAll: false))
        self.release()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = Self.unwrapInboundIn(data)
        self.hasRead = true
        buffer.withUnsafeReadableBytes { self.user?.received($0) }
        self.loop.receive.give(back: buffer)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // A read turn without bytes and without an error is the peer's FIN. After our own FIN, NIO does not report it
        // with `inputClosed`: `channelInactive` follows at once.
        self.sawFIN = !self.hasRead
        self.hasRead = false
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) { self.tellWritable() }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return }
        self.endInput()
    }

    /// The peer's FIN, or the RST that a write met before.
    func endInput() {
        // If bytes of ours still wait, the FIN is no answer to them.
        self.end(self.wasReset ? .failed(ECONNRESET) : .finished(hasAll: self.unsent == 0))
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch ChannelFailure(error, isBare: self.isBare) {
        case .finished: self.end(.finished(hasAll: self.unsent == 0))
        case .webSocket(let violation): self.end(.webSocket(violation))
        case .insecure(let failure): self.end(.insecure(failure))
        case .system(let number): self.end(.failed(number))
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        // A lower layer reports a reset as an error, and its peer's regular close too.
        let isFinished = self.sawFIN || !self.isBare
        self.end(self.wasReset ? .failed(ECONNRESET) : isFinished ? .finished(hasAll: true) : .gone)
    }

    /// A write failed because of the peer's RST.
    private var wasReset: Bool { self.direct.wasReset }
}

extension WireUser {
    /// Makes the user's wire the last handler of a channel's pipeline.
    package func attach(to channel: any Channel) throws {
        do {
            try channel.pipeline.syncOperations.addHandler(self.makeHandler())
        } catch {
            self.wire.abandon()
            throw error
        }
    }

    /// The user's wire, as the last handler of a channel's pipeline; it keeps the user alive until the channel ends.
    ///
    /// The caller puts it into a pipeline, or calls ``Wire/abandon()``.
    package func makeHandler() -> Wire {
        self.wire.user = self
        return self.wire
    }
}

extension Wire {
    /// Lets go of a user that gets no connection.
    package func abandon() { self.user = nil }
}
