import FaultInjection
import MQTTCodec
import NIOCore
import Transport

/// One client's channel: it passes bytes between channel and broker, and makes no decisions.
final class BrokerLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How the connection ends after all output is written.
    enum Ending {
        case close
        case reset
    }

    /// The reasons why reading is paused.
    struct Blocks: OptionSet {
        let rawValue: UInt8
        static let slowConsumer = Blocks(rawValue: 1)
        static let rate = Blocks(rawValue: 2)
        static let ending = Blocks(rawValue: 4)
    }

    let loop: BrokerLoop
    /// Ends the connection past TLS and WebSocket; `nil` without these layers.
    private let door: SocketDoor?
    private(set) var id: ConnectionID = -1
    var decoder: PacketDecoder
    private(set) var context: ChannelHandlerContext?
    /// Writes past the channel; `nil` where something lies between it and the broker.
    private var direct: DirectSocket?
    /// At most one byte is pending in the channel.
    private var isWritable = true
    var ending: Ending?
    /// The deadline of ``ending`` for the peer to take the written bytes, then for its FIN.
    var endDeadline: NIODeadline?
    /// The write side is shut, and all bytes are written.
    var hasShut = false
    /// Output that `--fragment` still holds.
    private var fragments = ByteBuffer()
    /// Input that `--max-rate` still holds.
    var backlog = ByteBuffer()
    var scanner = PublishScanner()
    var isWaitingForRate = false
    /// The client has sent FIN.
    private(set) var inputEnded = false
    private var blocks: Blocks = []

    init(loop: BrokerLoop, door: SocketDoor?) {
        self.loop = loop
        self.door = door
        self.decoder = PacketDecoder(connection: .server, maximumPacketSize: loop.configuration.maximumPacketSize)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelActive(context: ChannelHandlerContext) {
        if self.loop.fragments == nil, self.door == nil { self.direct = DirectSocket() }
        self.id = self.loop.opened(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.loop.read(self.unwrapInboundIn(data), from: self)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        self.isWritable = context.channel.isWritable
        // The handshakes of the lower layers write before the broker knows the connection.
        if self.isWritable, self.id >= 0 { self.loop.becameWritable(self) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { self.endInput() }
    }

    private func endInput() {
        self.inputEnded = true
        self.loop.inputEnded(self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        self.direct?.close()
        self.loop.closed(self)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is WebSocketViolation { return self.loop.isBroken(self) }
        if PeerClosing.isBareFIN(error) { return self.endInput() }
        // The client reset the connection or left during a write; channelInactive reports it.
        context.close(promise: nil)
    }

    /// Ends the connection by RST, whatever the lower layers still hold.
    func reset() {
        guard let context = self.door?.context ?? self.context else { return }
        SocketEnd.reset(context)
    }

    // MARK: Reading

    func block(_ block: Blocks) {
        let wasReading = self.blocks.isEmpty
        self.blocks.insert(block)
        if wasReading { self.setReading(false) }
    }

    func unblock(_ block: Blocks) {
        guard !self.blocks.isEmpty else { return }
        self.blocks.remove(block)
        if self.blocks.isEmpty { self.setReading(true) }
    }

    private func setReading(_ isReading: Bool) {
        // Fails only on a closed channel, which does not read anyway.
        try? self.context?.channel.syncOptions?.setOption(.autoRead, value: isReading)
    }

    // MARK: Writing

    var canWrite: Bool { self.isWritable && self.fragments.readableBytes == 0 && self.context != nil }
    var canWriteDirectly: Bool { self.direct != nil && self.canWrite }

    /// Writes past the channel, whose cost per write equals the kernel's for a small write.
    ///
    /// - Returns: bytes taken. The caller passes the rest to ``write(_:)``, so that the channel waits for room or
    ///   reports the error.
    func writeDirectly(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let context = self.context else { return 0 }
        return self.direct?.write(bytes, past: context.channel) ?? 0
    }

    func write(_ bytes: ByteBuffer) {
        guard let context = self.context else { return }
        guard self.loop.fragments != nil else {
            self.direct?.channelMayHold = true
            context.writeAndFlush(self.wrapOutboundOut(bytes), promise: nil)
            return
        }
        self.fragments.writeImmutableBuffer(bytes)
        self.writeFragments()
    }

    /// Writes fragments, each in a call of its own, until the kernel takes no more.
    ///
    /// - Returns: whether it stopped only to give other connections their turn.
    @discardableResult
    func writeFragments() -> Bool {
        guard let context = self.context else { return false }
        var left = 256
        while self.fragments.readableBytes > 0, context.channel.isWritable {
            guard left > 0 else {
                self.loop.continueLater(self)
                return true
            }
            left -= 1
            let size = min(self.loop.nextFragmentSize(), self.fragments.readableBytes)
            guard let fragment = self.fragments.readSlice(length: size) else { break }
            context.writeAndFlush(self.wrapOutboundOut(fragment), promise: nil)
        }
        if self.fragments.readableBytes == 0 { self.fragments = ByteBuffer() }
        return false
    }
}
