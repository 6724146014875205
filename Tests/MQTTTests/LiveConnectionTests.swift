import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("A connection on a socket")
struct LiveConnectionTests {
    /// More than a socket takes at once, in packets of 1,002 bytes.
    private static let much = 19_960 * 1_002

    // MARK: Reads

    /// A stream of PUBLISH packets, `size` bytes together.
    private static func stream(_ size: Int) -> [UInt8] {
        var stream: [UInt8] = []
        while stream.count < size {
            let left = size - stream.count
            // The rest in one packet, or as much as leaves room for another.
            let body = left <= 129 ? left - 2 : min(120, left - 2 - 5)
            stream += [0x30, UInt8(body), 0, 1, 0x74] + Array(repeating: 9, count: body - 3)
        }
        return stream
    }

    @Test(
        "a single write of S bytes behind the CONNACK takes ⌈S/N⌉ reads of at most N, and brings the same messages",
        arguments: [1, 7, 1_460, 65_536],
        [5, 1_460, 1_461, 32_768]
    )
    func reads(_ readSize: Int, _ size: Int) async throws {
        let stream = Self.stream(size)
        #expect(stream.count == size)
        let script: [ScriptedPeer.Step] = [.expect([0xC0, 0]), .send(stream)]
        try await withLiveClient(.v311, readSize: readSize, behindConnack: script) { client, _ in
            let before = try await client.run { state in
                state.connection.ping()
                return state.observer.reads.count
            }
            // CONNACK has 4 bytes.
            try await client.until { $0.readBytes >= 4 + size }
            let (reads, messages) = try await client.run { ($0.observer.reads, $0.observer.messages.count) }
            #expect(reads[before...].count == (size + readSize - 1) / readSize)
            #expect(reads.allSatisfy { $0 <= readSize })
            #expect(reads[..<before].reduce(0, +) == 4)
            #expect(before == (4 + readSize - 1) / readSize)
            #expect(messages == Self.messages(in: stream))
        }
    }

    private static func messages(in stream: [UInt8]) -> Int {
        var count = 0
        var offset = 0
        while offset < stream.count {
            offset += 2 + Int(stream[offset + 1])
            count += 1
        }
        return count
    }

    // MARK: Writes

    @Test("bytes that the kernel does not take at once are followed, and the owner hears when all are gone")
    func partialWrites() async throws {
        try await withLiveClient(behindConnack: [.discard, .stopReading]) { client, peer in
            try await peer.untilScriptDone()
            let connectBytes = try await client.run { $0.observer.wrote }
            let held = try await client.publish(bytes: Self.much)
            #expect(held > 0 && held < Self.much)
            try await peer.startReading()
            try await client.until { $0.calls.contains(.writable) }
            try await peer.untilBytes(connectBytes + Self.much)
            let (wrote, writable, unsent) = try await client.run { state in
                (state.observer.wrote, state.observer.sinceConnected.count { $0 == .writable }, state.connection.unsent)
            }
            #expect(wrote == connectBytes + Self.much)
            #expect(writable == 1)
            #expect(unsent == 0)
        }
    }

    @Test("[§2.2.1] a server that reads nothing is left when it has two answers due for each packet identifier")
    func unreadAnswers() async throws {
        let message = wire(publish("t", [1], qos: .atLeastOnce, id: 5))
        let most = 2 * 65_535
        try await withLiveClient(behindConnack: [.discard, .stopReading]) { client, peer in
            try await peer.untilScriptDone()
            #expect(try await client.publish(bytes: Self.much) > 0)
            let before = try await client.run { $0.observer.readBytes }
            try await peer.perform([.send(Array(repeatElement(message, count: most).joined()))])
            try await client.until { $0.readBytes == before + most * message.count }
            #expect(try await client.run { $0.observer.end } == nil)
            try await peer.perform([.send(message)])
            try await client.until { $0.end != nil }
            guard case .violation(.receiveMaximumExceeded, _) = try await client.run({ $0.observer.end }) else {
                Issue.record("the end is another")
                return
            }
        }
    }

    @Test("a write that the kernel takes at once is no news")
    func smallWrite() async throws {
        try await withLiveClient(behindConnack: [.discard]) { client, peer in
            let before = try await client.run { $0.observer.wrote }
            #expect(try await client.publish(bytes: 1_002) == 0)
            try await peer.untilBytes(before + 1_002)
            let (wrote, calls) = try await client.run { ($0.observer.wrote, $0.observer.sinceConnected) }
            #expect(wrote == before + 1_002)
            #expect(calls.isEmpty)
        }
    }

    enum Loss: CaseIterable {
        case reset, fin, abort
    }

    @Test("at the loss of a connection it is known what the kernel had taken", arguments: Loss.allCases)
    func unsentAtLoss(_ loss: Loss) async throws {
        try await withLiveClient(behindConnack: [.stopReading]) { client, peer in
            try await peer.untilScriptDone()
            let before = try await client.run { $0.observer.wrote }
            let held = try await client.publish(bytes: Self.much)
            #expect(held > 0 && held < Self.much)
            switch loss {
            case .reset: try await peer.reset()
            case .fin: try await peer.halfClose()
            case .abort: try await client.run { $0.connection.abort() }
            }
            try await client.until { $0.end != nil }
            let (wrote, calls) = try await client.run { ($0.observer.wrote, $0.observer.calls) }
            #expect(calls.contains(.ending(unsent: held)))
            #expect(wrote - before == Self.much - held)
            switch (loss, calls.last) {
            case (.reset, .ended(.failed)), (.fin, .ended(.closedByPeer)), (.abort, .ended(.aborted)): break
            default: Issue.record("\(calls)")
            }
        }
    }

    @Test(
        "SPEC A15: a write into a connection that is reset already was not sent, and tells of the RST",
        arguments: [0, much]
    )
    func writeAfterReset(_ held: Int) async throws {
        try await withLiveClient(behindConnack: [.stopReading]) { client, peer in
            try await peer.untilScriptDone()
            let connect = try await client.run { $0.observer.wrote }
            // Whether the kernel holds something back from before, or not.
            let unsent = held > 0 ? try await client.publish(bytes: held) : 0
            let size = try await client.run(meantime: { try await peer.reset() }) { state in
                let packet = wire(publish("t", [1]))
                state.connection.append(packet.count) { memory in
                    memory.copyBytes(from: packet)
                    return packet.count
                }
                _ = state.connection.flush()
                return packet.count
            }
            try await client.until { $0.end != nil }
            let (wrote, calls) = try await client.run { ($0.observer.wrote, $0.observer.calls) }
            #expect(calls.contains(.ending(unsent: unsent + size)))
            #expect(wrote - connect == held - unsent)
            #expect(calls.last == .ended(.failed(104)))
        }
    }

    // MARK: Ends

    @Test("DISCONNECT and FIN are answered by the peer's FIN", arguments: [ProtocolVersion.v31, .v311, .v5])
    func answered(_ version: ProtocolVersion) async throws {
        try await withLiveClient(version, behindConnack: [.expect([0xE0, 0])]) { client, peer in
            try await client.run { $0.connection.finish() }
            // Our FIN followed.
            try await peer.untilEnd()
            #expect(try await client.run { $0.observer.end } == nil)
            try await peer.halfClose()
            try await client.until { $0.end != nil }
            #expect(try await client.run { $0.observer.sinceConnected } == [.ending(unsent: 0), .ended(.answered)])
            #expect(try await peer.mismatches().isEmpty)
        }
    }

    @Test("[MQTT-3.14.4-1] what the peer still sends is delivered, and not acknowledged behind our DISCONNECT")
    func lastMessages() async throws {
        try await withLiveClient(.v311, behindConnack: [.expect([0xE0, 0])]) { client, peer in
            let before = try await peer.byteCount()
            try await client.run { $0.connection.finish() }
            try await peer.untilEnd()
            try await peer.perform([
                .send(wire(publish("late", [1], qos: .atLeastOnce, id: 5), version: .v311)), .close,
            ])
            try await client.until { $0.end != nil }
            let (calls, wrote) = try await client.run { ($0.observer.sinceConnected, $0.observer.wrote) }
            #expect(
                calls == [
                    .message(topic: "late", payload: [1], qos: .atLeastOnce, dup: false), .ending(unsent: 0),
                    .ended(.answered),
                ]
            )
            #expect(try await peer.byteCount() == before + 2)
            #expect(wrote == before + 2)
        }
    }

    @Test("a FIN that comes while bytes of ours are still held back is no answer")
    func finTooEarly() async throws {
        try await withLiveClient(behindConnack: [.stopReading]) { client, peer in
            try await peer.untilScriptDone()
            let held = try await client.publish(bytes: Self.much)
            #expect(held > 0)
            try await client.run { $0.connection.finish() }
            try await peer.halfClose()
            try await client.until { $0.end != nil }
            #expect(try await client.run { $0.observer.end } == .closedByPeer)
            // DISCONNECT was queued after them.
            #expect(try await client.run { $0.observer.calls.contains(.ending(unsent: held + 2)) })
        }
    }

    @Test("a reset is no answer to our FIN")
    func resetIsNoAnswer() async throws {
        try await withLiveClient(behindConnack: [.expect([0xE0, 0])]) { client, peer in
            try await client.run { $0.connection.finish() }
            try await peer.untilEnd()
            try await peer.reset()
            try await client.until { $0.end != nil }
            guard case .failed = try await client.run({ $0.observer.end }) else {
                Issue.record("taken for an answer")
                return
            }
        }
    }

    @Test("the peer's FIN unasked is the end, with what came before it")
    func closedByPeer() async throws {
        let script: [ScriptedPeer.Step] = [.send(wire(publish("last", [2]))), .close]
        try await withLiveClient(behindConnack: script) { client, _ in
            try await client.until { $0.end != nil }
            let message = RecordingObserver.Call.message(topic: "last", payload: [2], qos: .atMostOnce, dup: false)
            let calls = try await client.run { $0.observer.sinceConnected }
            #expect(calls == [message, .ending(unsent: 0), .ended(.closedByPeer)])
        }
    }

    @Test("messages in flight when the peer is lost are reported")
    func inFlightAtLoss() async throws {
        try await withLiveClient(behindConnack: [.expectCount(5), .reset]) { client, _ in
            try await client.run { state in
                let now = state.context.refresh()
                let id = state.session.pointee.publish(
                    InFlightPublish(due: now, written: now, sequence: 42, qos: .atLeastOnce)
                )
                state.connection.write(publish("t", qos: .atLeastOnce, id: PacketID(rawValue: id)))
                _ = state.connection.flush()
            }
            try await client.until { $0.end != nil }
            let calls = try await client.run { $0.observer.calls }
            #expect(calls.contains(.abandoned(42, .connectionLost(timedOutBefore: false))))
        }
    }
}
