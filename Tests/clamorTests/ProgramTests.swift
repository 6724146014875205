import TestSupport
import Testing
import clamor
import RunResult

@Suite("The program's streams and codes")
struct ProgramTests {
    @Test(
        "wrong usage is code 64, a line for each mistake on stderr, nothing on stdout",
        arguments: [
            "", "-h", "frob", "pub -h", "pub --version 4", "pub -c 0", "pub --frob", "pub --cacertfile x", "capacity",
            "doctor -c 0",
            "pub -q 9 -c 0 -V 8 -R x",
            "pub --rate 5/s -I 5", "pub -m template:///nowhere", "report /nowhere", "broker --drop x",
            "pub --url xmpp://h", "sub --threads 0", "decode --protocol coap",
            "decode --threshold decode_packet_time<10ns",
        ]
    )
    func usage(_ line: String) async throws {
        let result = try await ClamorBinary.run(line.split(separator: " ").map(String.init))
        #expect(result.status == ExitStatus.usage.rawValue)
        #expect((1...4).contains(result.errorLines.count))
        #expect(result.errorLines.allSatisfy { $0.hasPrefix("clamor") })
        #expect(result.output.isEmpty)
    }

    @Test(
        "help and version go to stdout, code 0",
        arguments: [
            "--help", "conn --help", "pub --help", "sub --help", "pubsub --help", "decode --help", "doctor --help",
            "broker --help", "report --help", "run --help", "compare --help", "merge --help", "capacity --help",
            "calibrate --help", "init --help", "proxy --help", "help pub", "--version",
        ]
    )
    func help(_ line: String) async throws {
        let result = try await ClamorBinary.run(line.split(separator: " ").map(String.init))
        #expect(result.status == 0)
        #expect(!result.output.isEmpty)
        #expect(result.errors.isEmpty)
    }

    @Test("help says where a default is not emqtt_bench's")
    func differences() async throws {
        let help = try await ClamorBinary.run(["pub", "--help-all"]).output
            .split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for text in [
            "emqtt_bench: 200", "emqtt_bench: 1000", "emqtt_bench: 1)", "emqtt_bench: false", "emqtt_bench: 10)",
        ] {
            #expect(help.contains(text))
        }
    }

    @Test("the codes are the contract's")
    func codes() {
        #expect(ExitStatus.allCases.map(\.rawValue) == [64, 65, 73, 69, 105, 97, 98, 99, 0])
    }
}
