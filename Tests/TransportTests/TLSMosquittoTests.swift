import NIOCore
import TestSupport
import Testing
import Transport

/// A CONNECT of MQTT 3.1.1 with an empty client id, and its CONNACK.
private let connect: [UInt8] = [0x10, 12, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, 0]
private let connack: [UInt8] = [0x20, 2, 0, 0]

@Suite(
    "TLS with mosquitto",
    .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)),
    .timeLimit(.minutes(10))
)
struct TLSMosquittoTests {
    private func listener(_ certificates: Certificates, _ name: Certificates.Name = .server) -> [String] {
        ["certfile \(certificates.certificate(name))", "keyfile \(certificates.key(name))"]
    }

    private func mutual(_ certificates: Certificates) -> [String] {
        self.listener(certificates) + ["cafile \(certificates.authority)", "require_certificate true"]
    }

    private func session(_ settings: TLSSettings, host: String = "broker.test", port: Int) async throws {
        try await withTLSLoop(settings, host: host, port: port) { loop in
            let connection = try await loop.connect().get()
            try await connection.send(connect)
            try await connection.until { $0.bytes == connack }
            // DISCONNECT, close_notify, FIN; and what mosquitto says to it.
            connection.channel.write(ByteBuffer(bytes: [0xE0, 0]), promise: nil)
            connection.channel.flush()
            connection.channel.close(mode: .output, promise: nil)
            try await connection.until { $0.events.contains("inputClosed") || $0.events.contains("inactive") }
            #expect(try await connection.ask(\.errors.isEmpty))
        }
    }

    @Test("a session", arguments: [TLSProtocolVersion.v1_2, .v1_3])
    func session(version: TLSProtocolVersion) async throws {
        let certificates = try await Certificates.all()
        var settings = trusting(certificates)
        settings.maximumVersion = version
        settings.applicationProtocols = ["mqtt"]
        try await Mosquitto.with(listener: self.listener(certificates)) { broker in
            try await self.session(settings, port: broker.port)
        }
    }

    @Test("wrong authority, wrong name, expired: each by its name", arguments: TLSHandshakeTests.refusals)
    func refused(name: Certificates.Name, failure: TLSFailure) async throws {
        let certificates = try await Certificates.all()
        try await Mosquitto.with(listener: self.listener(certificates, name)) { broker in
            try await withTLSLoop(trusting(certificates), port: broker.port) { loop in
                let result = try await loop.connect(greeting: connect)
                #expect(result.tlsFailure == failure)
            }
        }
    }

    @Test(
        "mutual TLS: with the certificate a session, without one refused",
        arguments: [TLSProtocolVersion.v1_2, .v1_3]
    )
    func mutual(version: TLSProtocolVersion) async throws {
        let certificates = try await Certificates.all()
        try await Mosquitto.with(listener: self.mutual(certificates)) { broker in
            var settings = TLSIdentityTests.client(certificates, .client)
            settings.maximumVersion = version
            try await self.session(settings, port: broker.port)
            settings.certificateFile = nil
            settings.keyFile = nil
            try await withTLSLoop(settings, port: broker.port) { loop in
                let result = try await loop.connect(greeting: connect)
                #expect(result.tlsFailure == .clientCertificateRequired)
            }
        }
    }

    @Test("mutual TLS: a certificate for each client by %i")
    func perClient() async throws {
        let certificates = try await Certificates.all()
        var settings = trusting(certificates)
        settings.certificateFile = certificates.folder + "/client-%i.pem"
        settings.keyFile = certificates.folder + "/client-%i.key"
        try await Mosquitto.with(listener: self.mutual(certificates)) { broker in
            try await withTLSLoop(settings, port: broker.port) { loop in
                for client in 0..<2 {
                    let connection = try await loop.connect(client: client).get()
                    try await connection.send(connect)
                    try await connection.until { $0.bytes == connack }
                }
            }
        }
    }

    @Test("pre-shared keys: the right one makes a session, others are refused")
    func preSharedKeys() async throws {
        let folder = try ScratchFolder()
        let keys = try folder.write("sensor:00112233445566778899aabbccddeeff\n", to: "keys")
        try await Mosquitto.with(listener: ["psk_hint clamor", "psk_file \(keys)"]) { broker in
            var settings = TLSSettings()
            settings.preSharedKey = try TLSPreSharedKey("sensor:00112233445566778899aabbccddeeff")
            try await self.session(settings, port: broker.port)
            for wrong in ["sensor:0011", "other:00112233445566778899aabbccddeeff"] {
                settings.preSharedKey = try TLSPreSharedKey(wrong)
                try await withTLSLoop(settings, port: broker.port) { loop in
                    let result = try await loop.connect()
                    #expect(result.tlsFailure == .preSharedKeyRefused)
                }
            }
        }
    }

    @Test("a port without TLS is said to be one")
    func plain() async throws {
        try await Mosquitto.with { broker in
            try await withTLSLoop(TLSSettings(), port: broker.port) { loop in
                // It takes the handshake for the first bytes of a long packet, waits for the rest, or gives up.
                let result = try await loop.connect(within: .seconds(3))
                let reasons: [ConnectError.Reason?] = [.reset, .tls(.closed), .tls(.notTLS), .timedOut(.tls)]
                #expect(reasons.contains(result.reason))
            }
        }
    }
}
