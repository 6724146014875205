import Foundation
import Measurement
import Report
import TestSupport
import Testing
import Transport
import clamor

@Suite("A run without any connection")
struct ConnectionHintTests {
    @Test(
        "has a hint with the option for each failure of TLS that one mends",
        arguments: [
            (TLSFailure.unknownIssuer("CN=a"), "--cacertfile FILE"),
            (.wrongName(wanted: "127.0.0.1", names: ["localhost"]), "--sni NAME"),
            (.notTLS, "leave out -S"),
            (.closed, "leave out -S"),
        ] as [(TLSFailure, String)]
    )
    func hints(_ failure: TLSFailure, _ option: String) {
        var record = RunRecord(
            command: ["clamor", "conn"],
            tool: ToolRecord(name: "clamor", version: "0.1.0"),
            host: HostFacts(),
            plan: ["tls": "verified"],
            startedAt: "2026-11-21T01:37:00.000000Z"
        )
        record.errors = [ErrorRecord(kind: "tls", count: 1, firstAt: record.startedAt, example: failure.description)]
        #expect(record.connectionHint.contains(option), "\(record.connectionHint)")
    }

    @Test(
        "has the keys of its file in refusal and hint",
        arguments: [
            ("target: mqtts://127.0.0.1:1", "ca_file: /no/such", 64, "ca_file: cannot read /no/such"),
            ("target: mqtts://127.0.0.1:1", "cert_file: /no/c, key_file: /no/k", 64, "_file: cannot read /no/"),
            ("target: mqtts://127.0.0.1:1", "ciphers: nonsense", 64, "ciphers: "),
            (
                "target: xmpp://127.0.0.1:1", "jid: a@b, password: p, tls: direct, ca_file: /no/such", 64,
                "ca_file: cannot read /no/such"
            ),
            ("target: mqtt://127.0.0.1:1", "clients: 2", 69, "check that the server listens at this host and port"),
        ]
    )
    func keys(_ target: String, _ keys: String, _ status: Int32, _ words: String) async throws {
        let folder = try ScratchFolder()
        let file = try folder.write("\(target)\nduration: 100ms\ngroups: { a: { \(keys) } }\n", to: "a.yaml")
        let ending = try await ClamorBinary.run(["run", file, "--out", folder.path("out")])
        #expect(ending.status == status, "\(ending.errors)")
        #expect((ending.output + ending.errors).contains(words), "\(ending.errors)")
        #expect(!ending.errors.contains(" --"), "\(ending.errors)")
    }

    @Test(
        "says the hint on stderr where there is no summary",
        arguments: [
            ("", 1, false), ("--quiet", 0, true), ("--json", 0, true),
        ]
    )
    func quiet(_ flag: String, _ hints: Int, _ isOnStderr: Bool) async throws {
        let folder = try ScratchFolder()
        let words = ["conn", "-p", "1", "--out", folder.path("out")] + (flag.isEmpty ? [] : [flag])
        let ending = try await ClamorBinary.run(words)
        #expect(ending.status == 69)
        let hint = "check that the server listens at this host and port"
        #expect(ending.output.components(separatedBy: "Hint  \(hint)").count == hints + 1)
        #expect(ending.errorLines.count == 1)
        #expect(ending.errors.hasSuffix("; \(hint)\n") == isOnStderr, "\(ending.errors)")
    }
}
