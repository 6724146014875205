package import NIOCore
package import NIOEmbedded
import Transport

/// A server's core at the other end of a ``VirtualNetwork``: bytes in, bytes out by the links, and no socket.
package protocol VirtualServer: AnyObject {
    /// A connection is there; all its calls follow this one.
    func opened(_ link: VirtualLink)
    func received(_ bytes: ByteBuffer, from link: VirtualLink)
    /// The client's FIN, or its RST, has come.
    func gone(_ link: VirtualLink)
    /// The oracle's record of the client's side of the wire; `nil` without an oracle.
    func books(of client: Int) -> WireOracle.Connection?
}

/// A server's core joined to clients without sockets, on a clock that the test moves.
///
/// Bytes take `latency` each way and arrive in order; a broken connection loses the bytes that the test names.
package final class VirtualNetwork<Server: VirtualServer>: ClientConnector {
    package let loop: EmbeddedEventLoop
    package var latency: TimeAmount
    package let server: Server
    package private(set) var links: [VirtualLink] = []
    /// The outcome of a connect, by client and by the number of its earlier connects.
    package var answers: (_ client: Int, _ earlier: Int) -> VirtualConnect = { _, _ in .opens(after: .zero) }
    /// Replaces the server's bytes before they arrive at clients.
    package var rewrite: (([UInt8]) -> [UInt8])?
    /// Whether the server hangs for a client: neither its bytes nor its FIN arrive.
    package var hangs: (_ client: Int) -> Bool = { _ in false }
    /// Bytes of a connection that may be under way to the server, or wait for it; `nil`: any number.
    package var buffer: Int?
    /// Every connect, in its order.
    package private(set) var connects: [(client: Int, at: NIODeadline)] = []
    /// The target of each, counted from the client's own.
    package private(set) var turns: [Int] = []

    package init(_ server: Server, loop: EmbeddedEventLoop, latency: TimeAmount) {
        self.server = server
        self.loop = loop
        self.latency = latency
    }

    func connect(client: Int, place: Int, turn: Int, deadline: NIODeadline, for observer: some ConnectObserver) {
        let earlier = self.connects.count { $0.client == client }
        self.connects.append((client, self.loop.now))
        self.turns.append(turn)
        func ended(_ result: Result<ConnectedChannel, ConnectError>) {
            observer.connectEnded(place, result, deadline: deadline)
        }
        let loop = self.loop.assumeIsolated()
        switch self.answers(client, earlier) {
        case .refuses: self.later { ended(.failure(ConnectError(.refused, target: Self.target))) }
        case .hangs:
            loop.scheduleTask(deadline: deadline) {
                ended(.failure(ConnectError(.timedOut(.tcp), target: Self.target)))
            }
        case .opens(let time):
            let took = self.latency + time
            loop.scheduleTask(in: took) {
                let channel = self.open(client, observer.makeHandler(place))
                ended(.success(ConnectedChannel(channel: channel, target: Self.target, phases: .init(tcp: took))))
            }
        }
    }

    private func open(_ client: Int, _ handler: any ChannelHandler) -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: self.loop)
        let link = VirtualLink(
            client: client,
            server: self.server,
            channel: channel,
            rewrite: { [unowned self] bytes in self.rewrite.map { $0(bytes) } ?? bytes },
            hangs: { [unowned self] in self.hangs(client) },
            later: { [unowned self] in self.later($0) }
        )
        if let buffer { link.bound(to: buffer) }
        self.links.append(link)
        do {
            try channel.pipeline.syncOperations.addHandlers([link, handler])
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1883)).wait()
        } catch {
            preconditionFailure("\(error)")
        }
        self.server.opened(link)
        return channel
    }

    private static var target: Target { Target(host: "127.0.0.1", port: 1883) }

    /// Does `body` after the time that bytes take; in order with everything that was sent before.
    private func later(_ body: @escaping () -> Void) {
        self.loop.assumeIsolated().scheduleTask(in: self.latency, body)
    }

    /// Breaks off what a client has open.
    package func cut(_ client: Int) {
        for link in self.links where link.client == client && link.isOpen { link.cut() }
    }
}

/// The outcome of a connect.
package enum VirtualConnect {
    case opens(after: TimeAmount)
    case refuses
    /// It is given up at its deadline.
    case hangs
}

/// One connection: takes the place of the socket in front of the client's handler.
package final class VirtualLink: ChannelOutboundHandler {
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package let client: Int
    let channel: EmbeddedChannel
    /// The server's number for it; -1 until it has one.
    var id = -1
    private unowned let server: any VirtualServer
    private let books: WireOracle.Connection?
    private let rewrite: ([UInt8]) -> [UInt8]
    private let hangs: () -> Bool
    private let later: (@escaping () -> Void) -> Void
    private var isShut = false
    /// Broken off: nothing arrives any more, on either side.
    private var isCut = false
    /// Bytes that the kernel takes before it is full; the others wait in the channel.
    private var room = Int.max
    private var isBounded = false
    private var context: ChannelHandlerContext?

    init(
        client: Int,
        server: any VirtualServer,
        channel: EmbeddedChannel,
        rewrite: @escaping ([UInt8]) -> [UInt8],
        hangs: @escaping () -> Bool,
        later: @escaping (@escaping () -> Void) -> Void
    ) {
        self.client = client
        self.server = server
        self.channel = channel
        self.books = server.books(of: client)
        self.rewrite = rewrite
        self.hangs = hangs
        self.later = later
    }

    func bound(to bytes: Int) {
        self.room = bytes
        self.isBounded = true
    }

    // MARK: What the server does

    /// So many bytes wait for the server no longer.
    func took(_ bytes: Int) {
        guard self.isBounded, self.isOpen else { return }
        if self.channel.isWritable { self.room += bytes } else { self.makeRoom(self.room + bytes) }
    }

    func send(_ bytes: ByteBuffer) { self.later { self.arrived(bytes) } }
    func close() { self.later { self.peerClosed() } }
    func reset() { self.later { self.peerReset() } }

    // MARK: The client's writes, and the bytes that arrive

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        self.take(self.unwrapOutboundIn(data), context)
        promise?.succeed(())
    }

    /// Only ``makeRoom(_:)`` lets go what waits: for the channel it is unsent as long as it is not flushed.
    package func flush(context: ChannelHandlerContext) {}

    private func take(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        var rest = bytes
        if let taken = rest.readSlice(length: min(self.room, rest.readableBytes)), taken.readableBytes > 0 {
            self.room -= taken.readableBytes
            self.books?.wrote(taken)
            self.later { if !self.isCut { self.server.received(taken, from: self) } }
        }
        guard rest.readableBytes > 0 else { return }
        self.channel.isWritable = false
        context.write(self.wrapOutboundOut(rest), promise: nil)
    }

    /// From here on the kernel takes so many bytes, those that wait first.
    package func makeRoom(_ bytes: Int) {
        guard let context = self.context else { return }
        self.room = bytes
        self.channel.isWritable = true
        context.flush()
        // Nothing but bytes is ever written.
        while let waiting = try? self.channel.readOutbound(as: ByteBuffer.self) { self.take(waiting, context) }
        if self.channel.isWritable { self.channel.pipeline.fireChannelWritabilityChanged() }
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if !self.isShut, !self.isCut { self.later { if !self.isCut { self.server.gone(self) } } }
        self.isShut = true
        if mode == .all { context.close(mode: mode, promise: promise) }
    }

    package var isOpen: Bool { self.channel.isActive && !self.isCut }

    private func arrived(_ bytes: ByteBuffer) {
        guard self.isOpen, !self.hangs() else { return }
        let bytes = ByteBuffer(bytes: self.rewrite(Array(bytes.readableBytesView)))
        self.books?.read(bytes)
        self.channel.pipeline.fireChannelRead(bytes)
        self.channel.pipeline.fireChannelReadComplete()
    }

    private func peerClosed() {
        guard self.isOpen, !self.hangs() else { return }
        if self.isShut {
            self.books?.answered()
            self.channel.pipeline.fireChannelReadComplete()
            self.channel.close(promise: nil)
        } else {
            self.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    private func peerReset() {
        guard self.isOpen else { return }
        self.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
    }

    /// Breaks the connection off with whatever is under way lost, both ways.
    package func cut() {
        guard self.isOpen, self.id >= 0 else { return }
        self.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
        self.isCut = true
        self.server.gone(self)
    }
}
