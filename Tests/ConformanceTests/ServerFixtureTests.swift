import Foundation
import TestSupport
import Testing

@Suite("The servers themselves")
struct ServerFixtureTests {
    @Test(
        "ejabberd serves MQTT and is gone when the test is",
        .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)"),
        .timeLimit(.minutes(10))
    )
    func ejabberd() async throws {
        let folder = try ScratchFolder()
        let openssl = try RunningProgram(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                folder.path("k.pem"), "-out", folder.path("c.pem"), "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost",
            ]
        )
        #expect(try await openssl.ended().status == 0)
        let pem =
            try String(contentsOfFile: folder.path("c.pem"), encoding: .utf8)
            + String(contentsOfFile: folder.path("k.pem"), encoding: .utf8)
        let path = try folder.write(pem, to: "all.pem")
        let pid = try await Ejabberd.withOwn(certificate: path) { server in
            let publish = try RunningProgram(
                "/usr/bin/mosquitto_pub",
                [
                    "-h", "127.0.0.1", "-p", "\(server.port)", "-V", "5", "-u", server.username, "-P",
                    Ejabberd.password, "-t", "a", "-m", "b", "-q", "2",
                ]
            )
            #expect(try await publish.ended().status == 0)
            let anonymous = try RunningProgram(
                "/usr/bin/mosquitto_pub",
                ["-h", "127.0.0.1", "-p", "\(server.port)", "-V", "5", "-t", "a", "-m", "b"]
            )
            #expect(try await anonymous.ended().errors.contains("Not authorized"))
            return server.program.pid
        }
        #expect(kill(pid, 0) == -1)
    }
}
