import LoopContext
import NIOCore
import TestSupport
import Testing
import Transport

@Suite("Reads of a client")
struct ReadSizeTests {
    private static func blob(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    @Test(
        "for one write of S bytes there are ⌈S/N⌉ reads, the first of the channel included",
        arguments: [1, 7, 64, 65, 1_460, 4_096, 65_536],
        [1, 6, 7, 8, 1_460, 32_768]
    )
    func readsPerWrite(readSize: Int, size: Int) async throws {
        // A read of one byte is a system call: what is small stays small.
        let size = readSize == 1 ? min(size, 1_460) : size
        let blob = Self.blob(size)
        try await withScriptedPeer([.expect([0x10]), .send(blob), .expect([0x30]), .send(blob)]) { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)], readSize: readSize) { loop in
                let connection = try await loop.connect(greeting: [0x10]).get()
                try await connection.until { $0.bytes.count >= size }
                let reads = try await connection.ask(\.reads)
                #expect(reads.count == (size + readSize - 1) / readSize)
                #expect(reads.allSatisfy { $0 <= readSize })

                try await connection.channel.writeAndFlush(ByteBuffer(bytes: [0x30]))
                try await connection.until { $0.bytes.count >= 2 * size }
                #expect(try await connection.ask(\.reads.count) == 2 * ((size + readSize - 1) / readSize))
                #expect(try await connection.ask(\.bytes) == blob + blob)
            }
        }
    }

    @Test("a hundred clients take turns with one buffer")
    func oneBuffer() async throws {
        try await withScriptedPeer([.expect([1]), .send([2, 3]), .expect([4]), .send([5])]) { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                var addresses: Set<Int> = []
                for client in 0..<100 {
                    let connection = try await loop.connect(client: client, greeting: [1]).get()
                    try await connection.until { $0.bytes.count == 2 }
                    try await connection.channel.writeAndFlush(ByteBuffer(bytes: [4]))
                    try await connection.until { $0.bytes.count == 3 }
                    addresses.formUnion(try await connection.ask(\.places))
                }
                #expect(addresses.count == 1)
            }
        }
    }
}
