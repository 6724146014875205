import EmbeddedBroker
import MQTTCodec
import NIOCore
import NIOEmbedded
import Transport

/// A broker core joined to clients without sockets, on a clock that moves when it is told.
///
/// Bytes take `latency` each way and arrive in order; a broken connection loses what it was told to lose.
final class VirtualNetwork: ClientConnector {
    let loop: EmbeddedEventLoop
    let latency: TimeAmount
    let oracle = WireOracle()
    private(set) var broker: Broker
    private(set) var links: [VirtualLink] = []
    private var byConnection: [ConnectionID: VirtualLink] = [:]
    private var armed = NIODeadline.distantFuture
    /// What reaches the broker while it stalls.
    private var held: [() -> Void] = []
    private var isStalled = false
    private(set) var stalls: [Range<NIODeadline>] = []
    /// Clients that never get a connection, by number.
    var refused: Set<Int> = []
    /// What arrives at clients in the place of the broker's bytes.
    var rewrite: (([UInt8]) -> [UInt8])?

    init(_ faults: FaultPlan, loop: EmbeddedEventLoop, latency: TimeAmount) {
        self.loop = loop
        self.latency = latency
        self.broker = Broker(BrokerConfiguration(port: 0, faults: faults), now: loop.now)
    }

    func connect(client: Int, place: Int, deadline: NIODeadline, for observer: some ConnectObserver) {
        let target = Target(host: "127.0.0.1", port: 1883)
        self.later {
            guard !self.refused.contains(client) else {
                let error = ConnectError(.refused, target: target, phases: ConnectPhases())
                return observer.connectEnded(place, .failure(error), deadline: deadline)
            }
            let channel = EmbeddedChannel(loop: self.loop)
            let link = VirtualLink(client: client, network: self, channel: channel)
            self.links.append(link)
            do {
                try channel.pipeline.syncOperations.addHandlers([link, observer.makeHandler(place)])
                try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1883)).wait()
            } catch {
                preconditionFailure("\(error)")
            }
            self.toBroker {
                link.id = self.broker.connected(now: self.loop.now)
                self.byConnection[link.id] = link
            }
            let connected = ConnectedChannel(channel: channel, target: target, phases: ConnectPhases())
            observer.connectEnded(place, .success(connected), deadline: deadline)
        }
    }

    /// Does `body` after the time that bytes take; in order with everything that was sent before.
    func later(_ body: @escaping () -> Void) {
        self.loop.assumeIsolated().scheduleTask(in: self.latency, body)
    }

    // MARK: The broker's side

    func toBroker(_ body: @escaping () -> Void) {
        if self.isStalled { return self.held.append(body) }
        body()
        self.act()
    }

    func received(_ bytes: ByteBuffer, from link: VirtualLink) {
        self.toBroker {
            guard self.byConnection[link.id] === link else { return }
            bytes.withUnsafeReadableBytes {
                self.broker.received($0, from: link.id, decoder: &link.brokerSide, now: self.loop.now)
            }
        }
    }

    /// The client's FIN, or its RST, has come.
    func gone(_ link: VirtualLink) {
        self.toBroker {
            guard self.byConnection[link.id] === link else { return }
            self.byConnection[link.id] = nil
            self.broker.closed(link.id, now: self.loop.now)
            self.later { link.peerClosed() }
        }
    }

    private func act() {
        while let action = self.broker.nextAction() {
            switch action {
            case .flush(let id), .flushNow(let id): self.flush(id)
            case .close(let id):
                self.flush(id)
                if let link = self.byConnection[id] { self.later { link.peerClosed() } }
            case .reset(let id):
                self.flush(id)
                guard let link = self.byConnection.removeValue(forKey: id) else { continue }
                self.broker.closed(id, now: self.loop.now)
                self.later { link.peerReset() }
            case .pauseReading, .resumeReading: break
            case .stall(let end): self.stall(until: end)
            }
        }
        self.arm()
    }

    private func flush(_ id: ConnectionID) {
        guard let link = self.byConnection[id], self.broker.hasOutput(id) else { return }
        let bytes = self.broker.takeOutput(id)
        self.later { link.arrived(bytes) }
    }

    private func stall(until end: NIODeadline) {
        let begin = self.loop.now
        self.isStalled = true
        self.loop.assumeIsolated().scheduleTask(deadline: end) {
            self.isStalled = false
            self.stalls.append(begin..<self.loop.now)
            self.broker.stalled(from: 0, to: 0, now: self.loop.now)
            let held = self.held
            self.held = []
            for body in held { self.toBroker(body) }
            self.act()
        }
    }

    private func arm() {
        let next = self.broker.nextDeadline
        guard !self.isStalled, next < self.armed else { return }
        self.armed = next
        self.loop.assumeIsolated().scheduleTask(deadline: next) {
            self.armed = .distantFuture
            guard !self.isStalled else { return }
            self.broker.advance(to: self.loop.now)
            self.act()
        }
    }
}

/// One connection: takes the place of the socket in front of the client's handler.
final class VirtualLink: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    let client: Int
    let channel: EmbeddedChannel
    unowned let network: VirtualNetwork
    var id: ConnectionID = -1
    var brokerSide = PacketDecoder(role: .server)
    private let books: WireOracle.Connection
    private var isShut = false
    /// Broken off: nothing arrives any more, on either side.
    private var isCut = false

    init(client: Int, network: VirtualNetwork, channel: EmbeddedChannel) {
        self.client = client
        self.network = network
        self.channel = channel
        self.books = network.oracle.connection(client)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bytes = self.unwrapOutboundIn(data)
        self.books.wrote(bytes)
        promise?.succeed(())
        self.network.later { if !self.isCut { self.network.received(bytes, from: self) } }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if !self.isShut, !self.isCut { self.network.later { if !self.isCut { self.network.gone(self) } } }
        self.isShut = true
        if mode == .all { context.close(mode: mode, promise: promise) }
    }

    var isOpen: Bool { self.channel.isActive && !self.isCut }

    func arrived(_ bytes: ByteBuffer) {
        guard self.isOpen else { return }
        let bytes = self.network.rewrite.map { ByteBuffer(bytes: $0(Array(bytes.readableBytesView))) } ?? bytes
        self.books.read(bytes)
        self.channel.pipeline.fireChannelRead(bytes)
        self.channel.pipeline.fireChannelReadComplete()
    }

    func peerClosed() {
        guard self.isOpen else { return }
        if self.isShut {
            self.books.answered()
            self.channel.pipeline.fireChannelReadComplete()
            self.channel.close(promise: nil)
        } else {
            self.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    func peerReset() {
        guard self.isOpen else { return }
        self.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
    }

    /// Breaks the connection off with whatever is under way lost, both ways.
    func cut() {
        guard self.isOpen, self.id >= 0 else { return }
        self.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
        self.isCut = true
        self.network.gone(self)
    }
}
