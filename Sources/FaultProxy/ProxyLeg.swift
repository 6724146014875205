import FaultInjection
import NIOCore
import Transport

/// One of the two channels of a connection: hands bytes and ends to the ``ProxyLink``, and decides nothing.
final class ProxyLeg: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Side: Int {
        case client
        case server
    }

    let side: Side
    private let link: ProxyLink
    private(set) var context: ChannelHandlerContext?
    private var socket = DirectSocket()
    private(set) var isUp = false
    /// The peer's FIN has come.
    private(set) var inputEnded = false
    /// Our FIN has gone, or goes behind what the channel still has.
    private(set) var outputEnded = false
    private var hasFailed = false

    init(_ side: Side, of link: ProxyLink) {
        self.side = side
        self.link = link
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { self.begin() }
    }

    func channelActive(context: ChannelHandlerContext) { self.begin() }

    private func begin() {
        guard !self.isUp else { return }
        self.isUp = true
        self.link.isUp(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.link.read(self.unwrapInboundIn(data), from: self)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent, !self.inputEnded else { return }
        self.inputEnded = true
        // If a write reported the RST, the read sees only an end of input.
        self.link.inputEnded(of: self, byReset: self.socket.wasReset)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // NIO reports a broken connection by channelInactive when it closes, or by this event.
        self.hasFailed = true
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.socket.close()
        self.context = nil
        self.isUp = false
        // Once our FIN has gone, the peer's ends the channel without an event of its own.
        self.link.closed(self, byReset: self.hasFailed || self.socket.wasReset || !self.outputEnded)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        // A channel that was never active ends without channelInactive.
        if self.context != nil { self.channelInactive(context: context) }
    }

    // MARK: Orders

    func setReading(_ isReading: Bool) {
        // Fails on a closed channel only, which reads nothing anyway.
        try? self.context?.channel.syncOptions?.setOption(.autoRead, value: isReading)
    }

    /// - Returns: bytes that the kernel took.
    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let channel = self.context?.channel else { return 0 }
        return self.socket.write(bytes, past: channel)
    }

    /// Has the channel write, which waits for room, or meets the error.
    func handOver(_ bytes: ByteBuffer, done: @escaping (_ isWritten: Bool) -> Void) {
        guard let context = self.context else { return done(false) }
        self.socket.channelMayHold = true
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            if case .success = result { done(true) } else { done(false) }
        }
        context.writeAndFlush(self.wrapOutboundOut(bytes), promise: promise)
    }

    /// Shuts the write side.
    func endOutput() {
        guard !self.outputEnded, let context = self.context else { return }
        self.outputEnded = true
        // With the peer's FIN there already it closes the channel.
        context.channel.close(mode: .output, promise: nil)
    }

    func close() {
        // Not the peer's doing, whatever it looks like.
        self.outputEnded = true
        self.context?.close(promise: nil)
    }

    func reset() {
        guard let context = self.context else { return }
        self.outputEnded = true
        SocketEnd.reset(context)
    }

    /// Keeps the kernel from taking for a while what a slow receiver does not read.
    func limitReceiveBuffer() {
        let size = SocketOptionValue(ProxyServer.receiveBufferAtRate)
        try? self.context?.channel.syncOptions?.setOption(.socketOption(.so_rcvbuf), value: size)
    }

    /// Whether the peer's kernel has all that was written.
    var hasArrived: Bool {
        guard let context = self.context else { return true }
        return SocketEnd.unsentBytes(context.channel) == 0
    }
}

/// A client for whom there is no room.
final class ProxyRefusal: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelActive(context: ChannelHandlerContext) { SocketEnd.reset(context) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
