import LoopContext
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Transport

@Suite("Unsent bytes")
struct UnsentBytesTests {
    /// More than a socket takes at once, so that the peer, which does not read, holds some of it up.
    private static let size = 20_000_000

    enum Loss: CaseIterable {
        case reset, fin, finThenReset
    }

    @Test("what the kernel had taken at the loss of a connection is known", arguments: Loss.allCases)
    func atLoss(_ loss: Loss) async throws {
        try await withScriptedPeer([.expectCount(2), .stopReading]) { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                let connection = try await loop.connect(greeting: [1, 2]).get()
                try await peer.untilScriptDone()
                let tracker = try await connection.track(from: 2)
                let held = try await connection.write(Self.size, tracker)
                #expect(held > 0 && held < Self.size)

                switch loss {
                case .reset:
                    try await peer.reset()
                    try await connection.until { $0.events.contains("inactive") }
                    #expect(try await connection.ask(\.events).suffix(2) == ["error", "inactive"])
                case .fin:
                    try await peer.halfClose()
                    try await connection.until { $0.events.contains("inputClosed") }
                case .finThenReset:
                    try await peer.halfClose()
                    try await peer.reset()
                    try await connection.until { $0.events.contains("inactive") }
                    #expect(try await connection.ask(\.events).suffix(2) == ["inputClosed", "inactive"])
                }
                let bytes = try await loop.eventLoop.submit { tracker.value.bytes }.get()
                #expect(bytes.written == UInt64(Self.size + 2))
                #expect(bytes.taken == UInt64(Self.size + 2 - held))
                // Too late to ask for it now.
                if loss != .fin { #expect(try await connection.ask { _ in connection.channel.unsentBytes } == nil) }
            }
        }
    }

    @Test("a write into a connection that is reset already was not sent, although no error is caught")
    func writeAfterReset() async throws {
        try await withScriptedPeer([.expectCount(2)]) { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                let connection = try await loop.connect(greeting: [1, 2]).get()
                try await peer.untilScriptDone()
                let tracker = try await connection.track(from: 2)
                let isHeld = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: Void.self)
                let wasReset = Gate()
                async let writing = connection.ask { recorder in
                    // The loop sees nothing of the reset before it writes.
                    isHeld.succeed(())
                    wasReset.waitUntilOpen()
                    tracker.value.bytes.willWrite(100)
                    connection.channel.writeAndFlush(ByteBuffer(repeating: 7, count: 100), promise: nil)
                    tracker.value.bytes.update(from: connection.channel)
                }
                try await isHeld.futureResult.get()
                try await peer.reset()
                wasReset.open()
                try await writing
                try await connection.until { $0.events.contains("inactive") }
                #expect(try await !connection.ask(\.events).contains("error"))
                let (bytes, atRead) = try await loop.eventLoop.submit { tracker.value.values }.get()
                #expect(bytes.written == 102)
                #expect(bytes.taken == 2)
                // The read after the failed write saw it while it was there.
                #expect(atRead == 100)
            }
        }
    }

    @Test("a drained channel has everything taken")
    func drained() async throws {
        try await withScriptedPeer([.discard]) { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                let connection = try await loop.connect().get()
                let tracker = try await connection.track(from: 0)
                _ = try await connection.write(Self.size, tracker)
                try await peer.untilBytes(Self.size)
                try await connection.until { $0.events.last == "writable" }
                let bytes = try await loop.eventLoop.submit { tracker.value.bytes }.get()
                #expect(bytes.taken == UInt64(Self.size))
            }
        }
    }
}

/// Follows a connection as the doc comment of ``UnsentBytes`` tells.
private final class Tracker {
    var bytes = UnsentBytes()
    /// What the channel held before the last read.
    var heldAtRead: Int?

    var values: (UnsentBytes, Int?) { (self.bytes, self.heldAtRead) }
}

extension Connection {
    fileprivate func track(from written: Int) async throws -> NIOLoopBound<Tracker> {
        try await self.ask { recorder in
            let tracker = Tracker()
            let channel = self.channel
            tracker.bytes.willWrite(written)
            tracker.bytes.update(from: channel)
            recorder.onEvent = { _, context in tracker.bytes.update(from: context.channel) }
            recorder.receive.beforeRead = { _ in
                tracker.heldAtRead = channel.unsentBytes
                tracker.bytes.update(from: channel)
            }
            return NIOLoopBound(tracker, eventLoop: channel.eventLoop)
        }
    }

    /// Writes and says what the channel holds of it then.
    fileprivate func write(_ count: Int, _ tracker: NIOLoopBound<Tracker>) async throws -> Int {
        try await self.ask { _ in
            tracker.value.bytes.willWrite(count)
            self.channel.writeAndFlush(ByteBuffer(repeating: 7, count: count), promise: nil)
            tracker.value.bytes.update(from: self.channel)
            return self.channel.unsentBytes ?? 0
        }
    }
}
