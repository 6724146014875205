import LiveServer
import NIOCore
import NIOPosix

/// A client that writes bytes and sees the bytes that come back.
struct Visitor {
    let channel: any Channel
    private var chunks: AsyncStream<[UInt8]>.Iterator
    /// The bytes that were read and not yet returned.
    private var bytes: [UInt8] = []

    private final class Receiver: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let chunks: AsyncStream<[UInt8]>.Continuation

        init(_ chunks: AsyncStream<[UInt8]>.Continuation) { self.chunks = chunks }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.chunks.yield(Array(self.unwrapInboundIn(data).readableBytesView))
        }

        func channelInactive(context: ChannelHandlerContext) { self.chunks.finish() }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    init(to server: LiveServer, reads: Bool = true) async throws {
        let (stream, chunks) = AsyncStream.makeStream(of: [UInt8].self)
        self.channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.autoRead, value: reads)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Receiver(chunks))
                }
            }
            .connect(to: server.address).get()
        self.chunks = stream.makeAsyncIterator()
    }

    func send(_ text: String) { self.send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) { self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Nothing more will be sent.
    func endInput() { self.channel.close(mode: .output, promise: nil) }

    /// All that comes until the connection ends.
    mutating func rest() async -> String {
        while let chunk = await self.chunks.next(isolation: #isolation) { self.bytes += chunk }
        return self.take(self.bytes.count)
    }

    /// The text up to the end of `mark`; everything, if the connection ends before.
    mutating func read(to mark: String) async -> String {
        let mark = Array(mark.utf8)
        var searched = 0
        while true {
            if let found = self.bytes[searched...].firstRange(of: mark) { return self.take(found.upperBound) }
            searched = max(0, self.bytes.count - mark.count)
            guard let chunk = await self.chunks.next(isolation: #isolation) else { return self.take(self.bytes.count) }
            self.bytes += chunk
        }
    }

    private mutating func take(_ count: Int) -> String {
        defer { self.bytes.removeFirst(count) }
        return String(decoding: self.bytes.prefix(count), as: UTF8.self)
    }

    /// All answers to `text`, sent by a client that then closes its side.
    static func answers(_ text: String, from server: LiveServer) async throws -> String {
        var visitor = try await Visitor(to: server)
        visitor.send(text)
        visitor.endInput()
        return await visitor.rest()
    }

    /// A request for a path.
    static func get(_ path: String, _ method: String = "GET", _ lines: String...) -> String {
        let headers = ["Host: localhost"] + lines
        return "\(method) \(path) HTTP/1.1\r\n" + headers.map { $0 + "\r\n" }.joined() + "\r\n"
    }
}

extension LiveLimits {
    /// No test of content may end because its machine was busy for 30 s.
    static let patient: Self = {
        var limits = Self()
        limits.idleSeconds = 3600
        limits.lingerSeconds = 3600
        return limits
    }()
}

extension LiveServer {
    /// Runs `body` with a server on a free port of 127.0.0.1.
    static func with<Result>(
        _ routes: [String: LiveRoute],
        limits: LiveLimits = .patient,
        _ body: (LiveServer) async throws -> Result
    ) async throws -> Result {
        let server = try await LiveServer.start(host: "127.0.0.1", port: 0, routes: routes, limits: limits)
        do {
            let result = try await body(server)
            await server.close()
            return result
        } catch {
            await server.close()
            throw error
        }
    }
}

/// The statuses of the responses in a text.
func statuses(_ text: String) -> [Int] {
    text.matches(of: #/HTTP/1\.1 ([0-9]{3}) /#).compactMap { Int($0.1) }
}
