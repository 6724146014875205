import Ledger
import TestSupport
import Testing

extension Integration {
    @Suite("The same seed gives the same messages, byte for byte")
    struct SameMessagesTests {
        /// All that a server reads of a run, connection by connection, but for run number and due times; `~` is a space.
        private static func streams(_ line: String, seed: Int, threads: Int) async throws -> [[UInt8]] {
            try await KeepingPeer.with { peer in
                let words = line.split(separator: " ").map { String($0).replacing("~", with: " ") }
                let folder = try ScratchFolder()
                let own = ["-h", "127.0.0.1", "-p", "\(peer.port)", "--seed", "\(seed)", "--threads", "\(threads)"]
                let ending = try await ClamorBinary.run(
                    words + own + ["--drain", "500ms", "--duration", "20s", "--out", folder.path("out")]
                )
                #expect(ending.status == 0, "\(ending.errors)")
                return peer.kept.map(Self.masked)
            }
        }

        /// DESIGN section 3: magic and version 4, run id 4, publisher 4, flags 4, sequence 8, due time 8.
        private static func masked(_ stream: [UInt8]) -> [UInt8] {
            var stream = stream
            let magic: [UInt8] = [0x43, 0x4C, 0x4D, 0x01]
            for start in stream.indices.dropLast(PayloadHeader.size - 1) where Array(stream[start..<start + 4]) == magic
            {
                for offset in Array(4..<8) + Array(24..<32) { stream[start + offset] = 0 }
            }
            return stream
        }

        @Test(
            "whatever the number of event loops; another seed gives others",
            arguments: [
                // 12 messages of each client: as many as go out unacknowledged.
                "pub -c 5 -q 0,1,2 -L 60 --rate 600/s -t fleet/%i/%c -s 64",
                "pub -c 5 -q 0,1 -L 60 --rate 600/s -t fleet/%rand_1000000/%i -s 40",
                "pub -c 5 -q 0,1 -L 60 --rate 600/s -t fleet/%i -s 40..400",
                "pub -c 5 -L 60 -I 5 -t a/%i -m value~%rand_1000000~of~%s -u user-%rand_99999",
                "pub -c 5 -q 1 -L 60 -t a/%i -m %rand_1000000 -F 12",
            ]
        )
        func bytes(_ line: String) async throws {
            let one = try await Self.streams(line, seed: 7, threads: 1)
            #expect(one.count == 5)
            #expect(one.allSatisfy { $0.count > 12 * 10 })
            #expect(try await Self.streams(line, seed: 7, threads: 1) == one)
            #expect(try await Self.streams(line, seed: 7, threads: 3) == one)
            #expect(try await Self.streams(line, seed: 8, threads: 1) != one)
        }
    }
}
