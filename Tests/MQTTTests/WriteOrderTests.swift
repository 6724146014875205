import Foundation
import LoopContext
import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("SPEC A6: what the kernel takes in parts", .timeLimit(.minutes(10)))
struct WriteOrderTests {
    @Test("bytes that wait for a slow reader arrive whole and in order, followed by bytes written meanwhile")
    func order() async throws {
        // 20 times 10 packets, 20 MB together: more than a socket takes at once.
        let packets = (0..<200).map { number in
            wire(publish("t", Array(repeating: UInt8(number), count: 100_000)))
        }
        let expected = packets.flatMap { $0 }
        try await withLiveClient(behindConnack: [.stopReading]) { client, peer in
            try await peer.untilScriptDone()
            let connect = try await client.run { $0.observer.wrote }
            var held = 0
            for turn in packets.pieces(of: 10) {
                held = try await client.run { state in
                    state.context.refresh()
                    for packet in turn {
                        state.connection.append(packet.count) { memory in
                            memory.copyBytes(from: packet)
                            return packet.count
                        }
                    }
                    return state.connection.flush()
                }
            }
            #expect(held > 0)
            try await peer.startReading()
            try await peer.untilBytes(connect + expected.count)
            // Bytes of 20 MB are not compared one by one.
            let received = try await peer.received()
            #expect(Data(received.dropFirst(connect)) == Data(expected))
        }
    }
}

extension Array {
    /// The elements in pieces of `size`.
    fileprivate func pieces(of size: Int) -> [[Element]] {
        stride(from: 0, to: self.count, by: size).map { Array(self[$0..<Swift.min($0 + size, self.count)]) }
    }
}
