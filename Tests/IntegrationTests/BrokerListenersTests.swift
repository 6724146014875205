import Foundation
import TestSupport
import Testing

extension Integration {
    @Suite("clamor broker's listeners")
    struct BrokerListenersTests {
        @Test("the first line names the port of each listener")
        func firstLine() async throws {
            let certificates = try await Certificates.all()
            let arguments = [
                "broker", "-p", "0", "--ws-port", "0", "--tls-port", "0", "--wss-port", "0", "--certfile",
                certificates.certificate(.server), "--keyfile", certificates.key(.server),
            ]
            try await ClamorBinary.with(arguments) { program in
                let line = try await program.line()
                let form = /listening on 127\.0\.0\.1:(\d+), tls (\d+), ws (\d+), wss (\d+)/
                let match = try #require(try form.wholeMatch(in: line))
                let ports = [match.1, match.2, match.3, match.4].compactMap { Int($0) }
                #expect(Set(ports).count == 4)
                #expect(ports.allSatisfy { $0 > 0 })
                program.send(SIGINT)
                #expect(try await program.ended().status == 0)
            }
        }

        @Test(
            "what TLS cannot use is said in one line",
            arguments: [["--certfile", "/nowhere.pem", "--keyfile", "/nowhere.key"], ["--psk", "nonsense"]]
        )
        func refused(_ flags: [String]) async throws {
            let ending = try await ClamorBinary.run(["broker", "-p", "0", "--tls-port", "0"] + flags)
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1)
            #expect(ending.output.isEmpty)
        }
    }
}
