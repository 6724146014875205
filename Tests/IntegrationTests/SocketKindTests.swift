import Measurement
import TestSupport
import Testing
import Transport

extension Integration {
    @Suite("Channels of SwiftNIO and sockets without channels", .enabled(if: SocketLoop.isAvailable))
    struct SocketKindTests {
        @Test(
            "have the same books of the same load",
            arguments: [
                "pubsub -h embedded -c 20 -q 0,1,2 -L 9000 --seed 7",
                "pubsub -h embedded -c 20 -q 1 --rate 3000/s -d 2s --seed 7 --threads 2",
                "pubsub -h embedded -c 10 -q 0 -s 60000 -L 4000 --read-size 1000 --seed 7",
                "pub -h embedded -c 8 -q 2 -F 3 -L 3000 -V 4 --reconnect 3 --seed 7",
            ]
        )
        func books(_ line: String) async throws {
            var sent: Set<UInt64> = []
            for kind in SocketKind.allCases {
                let run = try await ClamorRun.of("\(line) --transport \(kind.rawValue)")
                #expect(run.status == 0, "\(kind): \(run.ending.errors)")
                #expect(run.record.generator.transport == kind)
                #expect(run.record.state == .valid || run.record.state == .generatorLimited, "\(kind)")
                sent.insert(run.record.books.reduce(0) { $0 + ($1.sent ?? 0) })
                for books in run.record.books {
                    if let expected = books.expected { #expect(books.received == expected, "\(kind)") }
                }
                let (up, down) = (run.record.count("bytes_sent"), run.record.count("bytes_received"))
                #expect(up > 0 && down > 0, "\(kind)")
            }
            if line.contains("-L ") { #expect(sent.count == 1, "\(sent)") }
        }

        @Test("plain TCP takes sockets by itself, and every other load channels")
        func choice() async throws {
            let plain = try await ClamorRun.of("conn -h embedded -c 3 -d 200ms")
            #expect(plain.record.generator.transport == .socket)
            for layers in ["-S", "--ws", "--proxy-protocol v2"] {
                let run = try await ClamorRun.of("conn -h embedded -c 3 -d 200ms \(layers)")
                #expect(run.status == 0, "\(layers): \(run.ending.errors)")
                #expect(run.record.generator.transport == .nio, "\(layers)")
            }
        }

        @Test("sockets for a load with TLS are refused before anything connects", arguments: ["-S", "--ws"])
        func refused(_ layers: String) async throws {
            let ending = try await ClamorBinary.run(
                ["conn", "-p", "1", "-d", "1s", "--transport", "socket", layers]
            )
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1 && ending.errors.contains("--transport"), "\(ending.errors)")
        }
    }
}
