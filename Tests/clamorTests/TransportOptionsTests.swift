import RunControl
import Scenario
import Testing
import Transport
import clamor

@Suite("TLS, WebSocket and PROXY on the command line")
struct TransportOptionsTests {
    private static func tls(_ change: (inout TransportOptions.TLS) -> Void = { _ in }) -> TransportOptions {
        var options = TransportOptions()
        var tls = TransportOptions.TLS()
        change(&tls)
        options.tls = tls
        return options
    }

    private static func webSocket(
        secure: Bool = false,
        _ change: (inout TransportOptions.WebSocket) -> Void = { _ in }
    ) -> TransportOptions {
        var options = secure ? Self.tls() : TransportOptions()
        var webSocket = TransportOptions.WebSocket()
        change(&webSocket)
        options.webSocket = webSocket
        return options
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let line: String
        let port: Int
        let transport: TransportOptions
        var testDescription: String { self.line }

        init(_ line: String, _ port: Int, _ transport: TransportOptions) {
            self.line = line
            self.port = port
            self.transport = transport
        }
    }

    static let cases = [
        Case("", 1_883, TransportOptions()), Case("-S", 8_883, tls()), Case("-S true", 8_883, tls()),
        Case("--ssl", 8_883, tls()), Case("-S false", 1_883, TransportOptions()), Case("-S -p 7", 7, tls()),
        Case("--url mqtts://127.0.0.1", 8_883, tls()), Case("--url mqtts://127.0.0.1:7/", 7, tls()),
        Case("--ws", 80, webSocket()), Case("--ws -S", 443, webSocket(secure: true)),
        Case("--url ws://127.0.0.1", 80, webSocket()), Case("--url wss://127.0.0.1/", 443, webSocket(secure: true)),
        Case("--url ws://127.0.0.1:8083/a/b?c=d", 8_083, webSocket { $0.path = "/a/b?c=d" }),
        Case("--ws --path /x", 80, webSocket { $0.path = "/x" }),
        Case(
            "--ws --header=X-One:1 --ws-headers=Two:b:c",
            80,
            webSocket { $0.headers = [.init("X-One", "1"), .init("Two", "b:c")] }
        ),
        Case("--ws --subprotocol mqttv3.1", 80, webSocket { $0.subprotocols = ["mqttv3.1"] }),
        Case("--ws -S --subprotocol mqtt,a", 443, webSocket(secure: true) { $0.subprotocols.append("a") }),
        Case("-S --cacertfile ca", 8_883, tls { $0.caFile = "ca" }),
        Case("-S --ca ca", 8_883, tls { $0.caFile = "ca" }),
        Case(
            "-S --certfile c-%i.pem --keyfile k-%i.pem",
            8_883,
            tls {
                $0.certificateFile = "c-%i.pem"
                $0.keyFile = "k-%i.pem"
            }
        ),
        Case("-S --insecure", 8_883, tls { $0.isInsecure = true }),
        Case("-S --pin sha256/AAA= --pin a.pem", 8_883, tls { $0.pins = ["sha256/AAA=", "a.pem"] }),
        Case("-S --psk me:00fF", 8_883, tls { $0.psk = .init(identity: "me", key: [0, 255]) }),
        Case("-S --psk a:b:01", 8_883, tls { $0.psk = .init(identity: "a:b", key: [1]) }),
        Case("-S --tls-version 1.3", 8_883, tls { $0.versions = .v1_3 ... .v1_3 }),
        Case("-S --tls-version 1.0-1.2", 8_883, tls { $0.versions = .v1_0 ... .v1_2 }),
        Case("-S --tls-version tlsv1.2", 8_883, tls { $0.versions = .v1_2 ... .v1_2 }),
        Case("-S --alpn mqtt,x-amzn-mqtt-ca", 8_883, tls { $0.alpn = ["mqtt", "x-amzn-mqtt-ca"] }),
        Case("-S --sni broker.example", 8_883, tls { $0.serverName = "broker.example" }),
        Case("-S --ciphers AES128-GCM-SHA256", 8_883, tls { $0.ciphers = "AES128-GCM-SHA256" }),
    ]

    @Test("flags and schemes say which layers there are, and the port", arguments: cases)
    func layers(_ test: Case) throws {
        let options = try options("conn " + test.line)
        #expect(options.transport == test.transport)
        #expect(options.target == .servers([Target(host: "127.0.0.1", port: test.port)]))
    }

    @Test("PROXY v1 and v2", arguments: ProxyProtocol.allCases)
    func proxy(_ version: ProxyProtocol) throws {
        #expect(try options("conn --proxy-protocol \(version.rawValue)").transport.proxy == version)
    }

    @Test(
        "each mistake has its line",
        arguments: [
            ("--cacertfile x", "--cacertfile: is a matter of TLS; add -S, or leave it out"),
            ("--ca x", "--ca: is a matter of TLS; add -S, or leave it out"),
            ("--insecure", "--insecure: is a matter of TLS; add -S, or leave it out"),
            ("-S false --sni a", "--sni: is a matter of TLS; add -S, or leave it out"),
            ("--path /a", "--path: is a matter of WebSocket; add --ws, or leave it out"),
            ("--header A:b", "--header: is a matter of WebSocket; add --ws, or leave it out"),
            ("--subprotocol a", "--subprotocol: is a matter of WebSocket; add --ws, or leave it out"),
            ("-S --certfile c", "--certfile: a certificate needs its private key; add --keyfile"),
            ("-S --key k", "--key: a private key needs its certificate; add --certfile"),
            (
                "-S --insecure --cacertfile c",
                "--cacertfile: --insecure verifies nothing; leave one of the two out"
            ),
            (
                "-S --psk s3cret",
                "--psk: is not a pre-shared key; write it like IDENTITY:0123abcd, the key in hexadecimal"
            ),
            (
                "-S --psk :00",
                "--psk: is not a pre-shared key; write it like IDENTITY:0123abcd, the key in hexadecimal"
            ),
            (
                "-S --psk a:123",
                "--psk: is not a pre-shared key; write it like IDENTITY:0123abcd, the key in hexadecimal"
            ),
            (
                "-S --psk a:12 --cacertfile c",
                "--cacertfile: a pre-shared key takes the place of certificates; leave one of the two out"
            ),
            (
                "-S --psk a:12 --tls-version 1.3",
                "--tls-version: a pre-shared key is used with TLS 1.2; leave it out, or use 1.2"
            ),
            (
                "-S --psk-file /nowhere",
                "--psk-file: cannot read /nowhere (no such file); check the path and its permissions"
            ),
            ("-S --tls-version 2", "--tls-version: '2' is not a version of TLS; write it like 1.2, 1.3 or 1.2-1.3"),
            (
                "-S --tls-version 1.3-1.2",
                "--tls-version: '1.3-1.2' is not a version of TLS; write it like 1.2, 1.3 or 1.2-1.3"
            ),
            (
                "-S --alpn a,,b",
                "--alpn: 'a,,b' is not a list of protocols; write it like mqtt or mqtt,x-amzn-mqtt-ca"
            ),
            ("--ws --path mqtt", "--path: 'mqtt' is not a path; write it like /mqtt, other characters as %20"),
            ("--ws --header s3cret", "--header: is not a header; write it like 'Authorization: Bearer abc'"),
            (
                "--ws --header Upgrade:a",
                "--header: Upgrade is part of the handshake itself; leave it out"
            ),
            (
                "--ws --ws-headers Sec-WebSocket-Key:a",
                "--ws-headers: Sec-WebSocket-Key is part of the handshake itself; leave it out"
            ),
            ("--proxy-protocol v3", "--proxy-protocol: 'v3' is not one of v1, v2"),
            ("--url mqtts://a/b", "--url: mqtts:// has nothing behind the port; end it there"),
            (
                "--url wss://u:Sup3r/S3cret@a/x",
                "--url: has an @ behind the first /, ? or #; write these in a password as %2F, %3F and %23, and @ in a path as %40"
            ),
            (
                "--url ws://u:12?34@a",
                "--url: has an @ behind the first /, ? or #; write these in a password as %2F, %3F and %23, and @ in a path as %40"
            ),
            ("--url ws://a/b#c", "--url: '#' has no place in a WebSocket's URL; write it as %23"),
            ("--url ws://a/b --path /c", "--path: is part of --url already; leave one of the two out"),
            (
                "--url wss://a -S false",
                "-S: --url asks for TLS already; leave '-S false' out, or use another scheme"
            ),
        ]
    )
    func refuses(_ line: String, _ answer: String) {
        let words = ("conn " + line).split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(words) else {
            Issue.record("'\(line)' is taken")
            return
        }
        #expect(lines == ["clamor conn: " + answer])
    }

    @Test("a header with a line break in it is refused, and not shown")
    func headerInjection() {
        let answer = Invocation.parse(["conn", "--ws", "--header", "A: b\r\nHost: s3cret"])
        guard case .refused(let lines) = answer else {
            Issue.record("it is taken")
            return
        }
        #expect(lines == ["clamor conn: --header: A has a line break or another control character in it; take it out"])
    }
}
