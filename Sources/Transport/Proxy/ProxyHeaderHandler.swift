package import LoopContext
package import NIOCore

/// Removes the PROXY header from the start of an accepted connection, then removes itself.
///
/// Later handlers get `channelActive` once the header is complete and valid. A connection without a valid header before
/// the deadline is closed without an answer.
package final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    /// The result for the connection.
    package enum Outcome: Hashable, Sendable {
        case read(ProxyHeader)
        case refused(ProxyHeader.Problem)
        /// The client closed, or the deadline passed, before the header was complete.
        case missing
    }

    private let deadline: TimeAmount
    private let receive: ReceiveBuffer?
    /// `nil` once it has been called.
    private var done: ((Outcome) -> Void)?
    private var timeout: Scheduled<Void>?
    /// At most one read more than the largest header.
    private var bytes: [UInt8] = []

    /// - Parameters:
    ///   - deadline: the time that a connection has for its header.
    ///   - receive: the loop's receive buffer, if reads are lent from it.
    ///   - done: called once.
    package init(deadline: TimeAmount, receive: ReceiveBuffer?, done: @escaping (Outcome) -> Void) {
        self.deadline = deadline
        self.receive = receive
        self.done = done
    }

    package func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        self.timeout = context.eventLoop.assumeIsolated().scheduleTask(in: self.deadline) { [weak self] in
            self?.end(.missing)
            channel.close(promise: nil)
        }
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        guard self.done != nil else {
            self.receive?.give(back: buffer)
            return
        }
        // Copied, because all connections of the loop share the buffer.
        self.bytes += buffer.readableBytesView
        self.receive?.give(back: buffer)
        do throws(ProxyHeader.Problem) {
            guard let header = try ProxyHeader.read(self.bytes) else { return }
            self.open(header, context)
        } catch {
            self.end(.refused(error))
            context.close(promise: nil)
        }
    }

    private func open(_ header: ProxyHeader, _ context: ChannelHandlerContext) {
        let rest = self.bytes[header.size...]
        self.end(.read(header))
        context.fireChannelActive()
        if !rest.isEmpty, context.channel.isActive {
            context.fireChannelRead(self.wrapInboundOut(ByteBuffer(bytes: rest)))
        }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    private func end(_ outcome: Outcome) {
        self.timeout?.cancel()
        self.timeout = nil
        self.bytes = []
        self.done.take()?(outcome)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        if self.done == nil { context.fireChannelReadComplete() }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard self.done != nil, case .inputClosed? = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        self.end(.missing)
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.end(.missing)
        context.fireChannelInactive()
    }
}
