import Foundation
import Ledger
import MQTTCodec
import Measurement
import NIOCore
import NIOPosix
import Synchronization

/// A server that notes of each PUBLISH what its header says and when it came, and acknowledges them.
final class TimingPeer: Sendable {
    /// A PUBLISH as it came.
    struct Arrival: Sendable {
        /// The number of its connection.
        let connection: Int
        let header: PayloadHeader
        /// CLOCK_REALTIME, nanoseconds: read behind the bytes.
        let at: Int64
        /// Publishes of its connection that had no answer then, with this one.
        let open: Int
    }

    let port: Int
    private let books: Books

    fileprivate final class Books: Sendable {
        struct State {
            var arrivals: [Arrival] = []
            var connections = 0
        }

        let state = Mutex(State())
    }

    private struct NoPort: Error {}

    private init(port: Int, _ books: Books) {
        self.port = port
        self.books = books
    }

    var arrivals: [Arrival] { self.books.state.withLock { $0.arrivals } }

    /// Starts one; `held` publishes of a connection stay without an answer until there are so many, and are then answered
    /// together.
    static func with<Result>(
        answering held: Int = 1,
        _ body: (TimingPeer) async throws -> Result
    ) async throws -> Result {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let books = Books()
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Timekeeper(books, held: held))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let outcome: Swift.Result<Result, any Error>
        do {
            guard let port = server.localAddress?.port else { throw NoPort() }
            outcome = .success(try await body(TimingPeer(port: port, books)))
        } catch {
            outcome = .failure(error)
        }
        try? await server.close()
        try await group.shutdownGracefully()
        return try outcome.get()
    }
}

private final class Timekeeper: ChannelInboundHandler, PacketSink {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Nanoseconds that a `Date` of these years cannot represent.
    private static let rounding: Int64 = 1_000

    private let books: TimingPeer.Books
    private let held: Int
    private let number: Int
    private var decoder = PacketDecoder(role: .server)
    private var open: [UInt16] = []
    private var answer = ByteBuffer()

    init(_ books: TimingPeer.Books, held: Int) {
        self.books = books
        self.held = held
        self.number = books.state.withLock { state in
            defer { state.connections += 1 }
            return state.connections
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var sink = self
        self.unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            do {
                try self.decoder.decode(bytes, into: &sink)
            } catch {
                context.close(promise: nil)
            }
        }
        guard self.answer.readableBytes > 0 else { return }
        context.writeAndFlush(self.wrapOutboundOut(self.answer), promise: nil)
        self.answer.clear()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Packets

    func publish(_ view: PublishView) -> Bool {
        if view.packetID != 0 { self.open.append(view.packetID) }
        if let header = PayloadHeader.read(view.payload) {
            let arrival = TimingPeer.Arrival(
                connection: self.number,
                header: header,
                at: Int64((Date().timeIntervalSince1970 * 1e9).rounded(.up)) + Self.rounding,
                open: self.open.count
            )
            self.books.state.withLock { $0.arrivals.append(arrival) }
        }
        if self.open.count >= self.held {
            for id in self.open { self.answer.writeMultipleIntegers(0x40 as UInt8, 2 as UInt8, id) }
            self.open.removeAll(keepingCapacity: true)
        }
        return true
    }

    func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool { true }

    func control(_ packet: Packet) -> Bool {
        // CONNACK of MQTT 5: no session, success, no properties.
        if case .connect = packet { self.answer.writeBytes([0x20, 3, 0, 0, 0]) }
        if case .pingReq = packet { self.answer.writeBytes([0xD0, 0]) }
        return true
    }
}
