import NIOCore
import TestSupport
import Testing
import Transport

@Suite("Writes past the channel", .timeLimit(.minutes(10)))
struct DirectSocketTests {
    /// More than two sockets' buffers hold.
    private static let much = 32 << 20

    /// A writer and what it wants to say, for the loop alone.
    private final class Writer {
        var socket = DirectSocket()
        var bytes: ByteBuffer

        init(_ count: Int) { self.bytes = ByteBuffer(bytes: (0..<count).map { UInt8(truncatingIfNeeded: $0) }) }
    }

    /// Runs `body` with a connection to a peer that follows `script`, and with the peer.
    private static func with(
        _ script: [ScriptedPeer.Step] = [],
        _ body: (Connection, ScriptedPeer) async throws -> Void
    ) async throws {
        try await withScriptedPeer(script) { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                try await body(try await loop.connect().get(), peer)
            }
        }
    }

    private static func on<Answer: Sendable>(
        _ connection: Connection,
        _ body: @escaping @Sendable (any Channel) throws -> Answer
    ) async throws -> Answer {
        let channel = connection.channel
        return try await channel.eventLoop.submit { try body(channel) }.get()
    }

    @Test("what the kernel has room for is gone at once, in order")
    func whole() async throws {
        try await Self.with { connection, peer in
            let taken = try await Self.on(connection) { channel in
                let writer = Writer(600)
                let first = writer.socket.write(&writer.bytes, past: channel)
                #expect(writer.bytes.readableBytes == 0)
                writer.bytes.writeBytes([7, 8, 9])
                return [first, writer.socket.write(&writer.bytes, past: channel)]
            }
            #expect(taken == [600, 3])
            try await peer.untilBytes(603)
            #expect(try await peer.received() == (0..<600).map { UInt8(truncatingIfNeeded: $0) } + [7, 8, 9])
        }
    }

    @Test("what it has no room for stays, from the first byte that was not taken")
    func part() async throws {
        try await Self.with([.stopReading]) { connection, peer in
            try await peer.untilScriptDone()
            try await Self.on(connection) { channel in
                let writer = Writer(Self.much)
                // The kernel moves what it took to the peer's buffer, and then takes more, until both are full.
                var taken = 0
                while case let more = writer.socket.write(&writer.bytes, past: channel), more > 0 { taken += more }
                #expect(taken > 0 && taken < Self.much)
                #expect(writer.bytes.readableBytes == Self.much - taken)
                #expect(writer.bytes.readableBytesView.first == UInt8(truncatingIfNeeded: taken))
                #expect(!writer.socket.wasReset)
            }
        }
    }

    @Test("nothing overtakes what the channel holds")
    func order() async throws {
        try await Self.with([.stopReading]) { connection, peer in
            try await peer.untilScriptDone()
            try await Self.on(connection) { channel in
                let writer = Writer(1)
                // Nothing is held: the channel was used, and is free again.
                channel.writeAndFlush(ByteBuffer(bytes: [0]), promise: nil)
                writer.socket.channelMayHold = true
                #expect(writer.socket.write(&writer.bytes, past: channel) == 1)
                #expect(!writer.socket.channelMayHold)
                #expect(channel.unsent(of: 0, isBare: true) == 0)

                channel.writeAndFlush(ByteBuffer(repeating: 1, count: Self.much), promise: nil)
                writer.socket.channelMayHold = true
                writer.bytes.writeBytes([2])
                #expect(writer.socket.write(&writer.bytes, past: channel) == 0)
                #expect(writer.bytes.readableBytes == 1)
                let held = channel.unsent(of: 5, isBare: true)
                #expect(held > 5 && held < Self.much)
                #expect(channel.unsent(of: 5, isBare: false) == 5)
            }
        }
    }

    @Test("SPEC A15: a peer's RST is reported by the write that meets it")
    func reset() async throws {
        try await Self.with { connection, peer in
            try await peer.untilConnections(1)
            let channel = connection.channel
            let (taken, left, isTold) = try await onHeldLoop(channel.eventLoop, meantime: { try await peer.reset() }) {
                let writer = Writer(5)
                let taken = writer.socket.write(&writer.bytes, past: channel)
                return (taken, writer.bytes.readableBytes, writer.socket.wasReset)
            }
            #expect(taken == 0 && left == 5 && isTold)
        }
    }

    @Test("a socket that the channel let go of is not written to")
    func closed() async throws {
        try await Self.with { connection, _ in
            let taken = try await Self.on(connection) { channel in
                let writer = Writer(5)
                writer.socket.close()
                return writer.socket.write(&writer.bytes, past: channel)
            }
            #expect(taken == 0)
        }
    }
}

extension DirectSocket {
    /// Takes what the kernel has taken off the buffer.
    fileprivate mutating func write(_ bytes: inout ByteBuffer, past channel: any Channel) -> Int {
        let taken = bytes.withUnsafeReadableBytes { self.write($0, past: channel) }
        bytes.moveReaderIndex(forwardBy: taken)
        return taken
    }
}
