/// A server's certificate for 127.0.0.1, and the authority that both programs verify it by: ECDSA with P-256.
struct Certificates {
    let authority: String
    private let certificate: String
    private let key: String

    /// Makes them with `openssl`.
    init(in directory: String) throws {
        self.authority = "\(directory)/authority.pem"
        self.certificate = "\(directory)/server.pem"
        self.key = "\(directory)/server.key"
        let script = """
            cd '\(directory)'
            new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
            openssl req -x509 $new -keyout authority.key -out authority.pem -subj '/CN=Clamor limits' -days 2
            openssl req $new -keyout server.key -out server.csr -subj '/CN=127.0.0.1'
            printf 'subjectAltName=IP:127.0.0.1\\n' > server.ext
            openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
                -extfile server.ext -out server.pem
            """
        let child = try Child(
            ["sh", "-ec", script],
            core: Laboratory.clientCore,
            directory: directory,
            name: "certificates"
        )
        let ending = try child.wait(limit: 60)
        guard ending.status == 0 else { throw Refusal("no certificates: \(ending.errors.suffix(200))") }
    }

    var serverArguments: [String] { ["--certfile", self.certificate, "--keyfile", self.key] }

    var mosquittoLines: String { "certfile \(self.certificate)\nkeyfile \(self.key)" }
}

extension Laboratory {
    /// The client's arguments for the protocol of its server.
    func arguments(_ side: Side, _ wire: Server.Wire) throws -> [String] {
        switch (wire, side) {
        case (.plain, _): []
        case (.tls, .reference): try ["--cafile", self.certificates.get().authority]
        case (.tls, .clamor): try ["-S", "--cacertfile", self.certificates.get().authority]
        case (.webSocket, _): ["--ws"]
        }
    }
}

extension Workload {
    /// The cost of a connection through TLS or WebSocket; the C side uses libssl for TLS.
    static func wires(seconds: Double) -> [Workload] {
        let ack = Server.Kind.sink("ack")
        let discard = Server.Kind.sink("discard")
        let rows = [
            Publishing("tls-qos0-64", "TLS: QoS 0, discard sink, 64 a write", discard, over: .tls, qos: 0, window: 64),
            Publishing("tls-qos0-1", "TLS: QoS 0, discard sink, one a write", discard, over: .tls, qos: 0, window: 1),
            Publishing(
                "tls-qos1-ack",
                "TLS: QoS 1, window 16, acknowledging sink",
                ack,
                over: .tls,
                qos: 1,
                window: 16
            ),
            Publishing(
                "tls-qos1-mosquitto",
                "TLS: QoS 1, window 16, mosquitto",
                .mosquitto,
                over: .tls,
                qos: 1,
                window: 16
            ),
        ]
        // Mosquitto looks after its WebSockets ten times a second: so few clients, and so much in flight.
        let frames = [
            Publishing(
                "ws-qos0-64",
                "WebSocket: QoS 0, mosquitto, 10 clients, 64 a write",
                .mosquitto,
                over: .webSocket,
                clients: 10,
                qos: 0,
                window: 64
            ),
            Publishing(
                "ws-qos0-1",
                "WebSocket: QoS 0, mosquitto, 10 clients, one a write",
                .mosquitto,
                over: .webSocket,
                clients: 10,
                qos: 0,
                window: 1
            ),
            Publishing(
                "ws-qos1-mosquitto",
                "WebSocket: QoS 1, window 64, mosquitto, 10 clients",
                .mosquitto,
                over: .webSocket,
                clients: 10,
                qos: 1,
                window: 64
            ),
        ]
        return [Self.handshake()]
            + (rows + frames).map { load in
                var workload = load.workload(seconds: seconds)
                workload.mostPairs = Self.otherPairs
                return workload
            }
    }

    private static func handshake() -> Workload {
        let load = Connecting(over: .tls, most: 5000)
        return Workload(
            name: "tls-connect",
            lines: [
                Line(
                    label: "TLS: connect, TCP to CONNACK, verified, TLS 1.3, ECDSA P-256",
                    key: Self.cost,
                    unit: "CPU-µs",
                    goal: .atMostTimes(1)
                ),
                Line(label: "the same, handshakes a second", key: "per_second", unit: "1/s", goal: .none),
                Line(
                    label: "TLS: idle connected client, \(load.clients) of them",
                    key: "resident_kib",
                    unit: "KiB",
                    goal: .atMost(29)
                ),
            ],
            mostPairs: Self.otherPairs,
            measure: load.measure
        )
    }
}
