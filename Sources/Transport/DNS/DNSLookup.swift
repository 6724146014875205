import NIOCore
import NIOPosix

/// One query in progress: the sockets and the timer of a ``DNSExchange``.
final class DNSLookup {
    private var exchange: DNSExchange
    private let question: DNSQuestion
    private let servers: [SocketAddress]
    private let eventLoop: any EventLoop
    private var done: ((DNSOutcome) -> Void)?
    private var channel: (any Channel)?
    private var timer: Scheduled<Void>?
    /// Counts attempts, so that events of an earlier socket are ignored.
    private var turn = 0
    private var generator = SystemRandomNumberGenerator()

    init(_ question: DNSQuestion, servers: [SocketAddress], names: [String], eventLoop: any EventLoop) {
        self.exchange = DNSExchange(question, servers: names)
        self.question = question
        self.servers = servers
        self.eventLoop = eventLoop
    }

    /// Calls `done` once, on the loop, after this has returned.
    func begin(_ done: @escaping (DNSOutcome) -> Void) {
        self.done = done
        // A socket error is immediate, and could end all attempts before this returns.
        self.eventLoop.assumeIsolated().execute { self.run(self.exchange.begin(id: self.newID())) }
    }

    private func newID() -> UInt16 { UInt16.random(in: .min ... .max, using: &self.generator) }

    private func run(_ order: DNSExchange.Order) {
        switch order {
        case .wait: break
        case .done(let outcome):
            self.close()
            self.done.take()?(outcome)
        case .ask(let server, let isTCP, let id):
            self.close()
            let turn = self.turn
            self.timer = self.eventLoop.assumeIsolated()
                .scheduleTask(in: .milliseconds(DNSExchange.patience)) { self.gaveUp(turn, "no answer") }
            self.ask(self.servers[server], isTCP: isTCP, DNSMessage.query(self.question, id: id), turn)
        }
    }

    /// Ends the attempt first: closing a socket reports its close at once, which must be ignored.
    private func close() {
        self.turn += 1
        self.timer?.cancel()
        self.timer = nil
        self.channel.take()?.close(promise: nil)
    }

    private func gaveUp(_ turn: Int, _ words: String) {
        guard turn == self.turn, self.done != nil else { return }
        self.run(self.exchange.gaveUp(because: words, id: self.newID()))
    }

    private func received(_ turn: Int, _ bytes: [UInt8]) {
        guard turn == self.turn, self.done != nil else { return }
        self.run(self.exchange.received(bytes, nextID: self.newID()))
    }

    private func ask(_ server: SocketAddress, isTCP: Bool, _ query: [UInt8], _ turn: Int) {
        let bound = NIOLoopBound(self, eventLoop: self.eventLoop)
        let received: @Sendable ([UInt8]) -> Void = { bound.value.received(turn, $0) }
        let failed: @Sendable (String) -> Void = { bound.value.gaveUp(turn, $0) }
        let connected: EventLoopFuture<any Channel>
        if isTCP {
            connected = ClientBootstrap(group: self.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let handler = DNSStreamHandler(query, received: received, failed: failed)
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                }
                .connect(to: server)
        } else {
            // Connected, so that the system drops datagrams from other hosts and reports closed ports.
            connected = DatagramBootstrap(group: self.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let handler = DNSDatagramHandler(query, server, received: received, failed: failed)
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                }
                .connect(to: server)
        }
        connected.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                if turn == self.turn, self.done != nil { self.channel = channel } else { channel.close(promise: nil) }
            case .failure: self.gaveUp(turn, "it cannot be reached")
            }
        }
    }
}

/// Sends a query as one datagram, and receives the datagrams that answer it.
private final class DNSDatagramHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    typealias OutboundOut = AddressedEnvelope<ByteBuffer>

    private let query: [UInt8]
    private let server: SocketAddress
    private let received: ([UInt8]) -> Void
    private let failed: (String) -> Void

    init(
        _ query: [UInt8],
        _ server: SocketAddress,
        received: @escaping ([UInt8]) -> Void,
        failed: @escaping (String) -> Void
    ) {
        self.query = query
        self.server = server
        self.received = received
        self.failed = failed
    }

    func channelActive(context: ChannelHandlerContext) {
        let envelope = AddressedEnvelope(remoteAddress: self.server, data: ByteBuffer(bytes: self.query))
        context.writeAndFlush(self.wrapOutboundOut(envelope), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = self.unwrapInboundIn(data)
        guard envelope.remoteAddress == self.server else { return }
        self.received(Array(envelope.data.readableBytesView))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { self.failed("it cannot be reached") }
}

/// DNS over TCP: a length of two bytes precedes each message (RFC 1035 §4.2.2).
private final class DNSStreamHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let query: [UInt8]
    private let received: ([UInt8]) -> Void
    private let failed: (String) -> Void
    private var answer: [UInt8] = []

    init(_ query: [UInt8], received: @escaping ([UInt8]) -> Void, failed: @escaping (String) -> Void) {
        self.query = query
        self.received = received
        self.failed = failed
    }

    func channelActive(context: ChannelHandlerContext) {
        var buffer = ByteBuffer()
        buffer.writeInteger(UInt16(self.query.count))
        buffer.writeBytes(self.query)
        context.writeAndFlush(self.wrapOutboundOut(buffer), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.answer += self.unwrapInboundIn(data).readableBytesView
        guard self.answer.count >= 2 else { return }
        let length = Int(self.answer[0]) << 8 | Int(self.answer[1])
        if self.answer.count >= 2 + length { self.received(Array(self.answer[2..<(2 + length)])) }
    }

    func channelInactive(context: ChannelHandlerContext) { self.failed("it closed the connection") }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { self.failed("it cannot be reached") }
}
