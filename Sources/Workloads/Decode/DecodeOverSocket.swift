import CPosix
package import LoopContext
package import NIOCore
import Transport

/// Decodes the stream of a ``DecodeWriter`` on the clients' receive path: their connector, their channel options, the
/// loop's receive buffer, one decoder per connection.
///
/// Confined to its event loop. A round is a fixed number of packets, and it begins and ends with a read.
package final class DecodeOverSocket {
    private let connector: TCPConnector
    private let reader: DecodeReader
    private let context: LoopContext

    /// - Parameters:
    ///   - context: the context of the current loop.
    ///   - port: the writer's port.
    ///   - subject: the decoder of the stream.
    ///   - metrics: the lane's metrics.
    ///   - copies: whether the sink copies each payload.
    package init(_ context: LoopContext, port: Int, subject: DecodeSubject, metrics: DecodeMetrics, copies: Bool) {
        self.context = context
        self.connector = TCPConnector(context: context, targets: [Target(host: "127.0.0.1", port: port)])
        self.reader = DecodeReader(context, DecodeMachine(subject, copies ? .copy : .view), metrics: metrics)
    }

    /// Connects, and warms up for `warmUp` nanoseconds.
    ///
    /// - Returns: a future with the total checksum, fulfilled at the end of the stream.
    package func start(warmUp: Int64) -> EventLoopFuture<DecodeChecksum> {
        self.reader.warmUp = warmUp
        let promise = self.context.eventLoop.makePromise(of: DecodeChecksum.self)
        let reader = self.reader
        reader.ended = { promise.completeWith($0) }
        self.connector.connect(
            client: 0,
            deadline: self.context.refresh() + .seconds(10),
            handler: { reader },
            done: { result in
                if case .failure(let error) = result { reader.end(.connection("\(error)")) }
            }
        )
        return promise.futureResult
    }

    /// Whether the stream has ended or failed.
    package var isOver: Bool { self.reader.ended == nil }

    /// Returns the measurements since the last call.
    package func take() -> DecodeInterval { self.reader.meter.take() }
}

/// The channel handler: it processes reads as ``MQTTConnection`` and ``XMPPConnection`` do, without a session.
private final class DecodeReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// Nanoseconds: several reads of 64 KiB, and many fragments.
    private static let roundLength: Int64 = 10_000_000

    let meter: DecodeMeter
    var warmUp: Int64 = 0
    var ended: ((Result<DecodeChecksum, any Error>) -> Void)?
    private let context: LoopContext
    private let machine: DecodeMachine
    private var checksum = DecodeChecksum()
    /// Clock at the start of the current round.
    private var begin: DecodeClock?
    private var packets: UInt64 = 0
    private var bytes: UInt64 = 0
    private var reads: UInt64 = 0
    /// Packets per round; 0 in the warm-up, which is one round and sets this number.
    private var roundSize: UInt64 = 0

    init(_ context: LoopContext, _ machine: DecodeMachine, metrics: DecodeMetrics) {
        self.context = context
        self.machine = machine
        self.meter = DecodeMeter(metrics)
    }

    func channelActive(context: ChannelHandlerContext) {
        self.begin = DecodeClock()
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        let failure = self.decode(buffer)
        self.reads += 1
        self.bytes += UInt64(buffer.readableBytes)
        self.context.receive.give(back: buffer)
        if let failure {
            self.end(failure)
            context.close(promise: nil)
        } else if self.roundSize == 0 {
            self.endWarmUpIfDue()
        } else if self.packets >= self.roundSize {
            self.endRound(measured: true)
        }
    }

    private func decode(_ buffer: ByteBuffer) -> DecodeFault? {
        let result = buffer.withUnsafeReadableBytes { bytes in
            Result { () throws(DecodeFault) in try self.machine.take(bytes) }
        }
        switch result {
        case .success(let sum):
            self.packets &+= sum.packets
            self.checksum += sum
            return nil
        case .failure(let fault): return fault
        }
    }

    private func endWarmUpIfDue() {
        guard let begin = self.begin else { return }
        let elapsed = clamor_monotonic_nanoseconds() - begin.wall
        guard elapsed >= self.warmUp, self.packets > 0 else { return }
        let share = Double(Self.roundLength) / Double(max(1, elapsed))
        self.roundSize = max(1, UInt64(Double(self.packets) * share))
        self.endRound(measured: false)
    }

    private func endRound(measured: Bool) {
        let now = DecodeClock()
        guard let begin = self.begin else { return }
        let round = now.round(since: begin, packets: self.packets, bytes: self.bytes, reads: self.reads)
        self.meter.add(round, measured: measured)
        self.packets = 0
        self.bytes = 0
        self.reads = 0
        // A second clock read excludes the cost of recording a round.
        self.begin = DecodeClock()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return }
        // An incomplete round counts only in the totals.
        if self.packets > 0 || self.reads > 0 { self.endRound(measured: false) }
        self.end(nil)
        context.close(promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.end(.connection("the loopback connection broke: \(SystemError.words(error))"))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { self.end(.connection("the loopback connection broke")) }

    /// Only the first call has an effect.
    func end(_ fault: DecodeFault?) {
        guard let ended = self.ended else { return }
        self.ended = nil
        ended(fault.map { .failure($0) } ?? .success(self.checksum))
    }
}
