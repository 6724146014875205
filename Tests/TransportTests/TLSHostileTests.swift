import Foundation
import NIOCore
import NIOSSL
import TestSupport
import Testing
import Transport

@Suite("TLS servers that misbehave, and ends", .timeLimit(.minutes(10)))
struct TLSHostileTests {
    static let answers: [(String, [ScriptedPeer.Step], ConnectError.Reason)] = [
        ("HTTP", [.expectCount(5), .send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))], .tls(.notTLS)),
        ("MQTT", [.expectCount(5), .send([0x20, 2, 0, 5, 0xE0, 0])], .tls(.notTLS)),
        ("zeros", [.expectCount(5), .send([UInt8](repeating: 0, count: 70_000))], .tls(.notTLS)),
        ("handshake_failure", [.expectCount(5), .send([21, 3, 3, 0, 2, 2, 40])], .tls(.noSharedCipher)),
        ("protocol_version", [.expectCount(5), .send([21, 3, 3, 0, 2, 2, 70])], .tls(.noSharedVersion)),
        (
            "internal_error", [.expectCount(5), .send([21, 3, 3, 0, 2, 2, 80])],
            .tls(.handshake("alert internal error"))
        ),
        (
            "a ServerHello of nothing", [.expectCount(5), .send([22, 3, 3, 0, 4, 2, 0, 0, 0])],
            .tls(.handshake("decode error"))
        ),
        ("half a record, then the end", [.expectCount(5), .send([22, 3, 3, 1]), .halfClose], .tls(.closed)),
        ("the end", [.halfClose], .tls(.closed)),
        ("a reset", [.expectCount(5), .reset], .reset),
        ("nothing", [], .timedOut(.tls)),
        ("half a record, and nothing", [.expectCount(5), .send([22, 3, 3, 1])], .timedOut(.tls)),
    ]

    @Test("ends in the right error within the deadline", arguments: answers)
    func hostile(name: String, script: [ScriptedPeer.Step], reason: ConnectError.Reason) async throws {
        try await withScriptedPeer(script) { peer in
            // Long enough for TCP on a busy host, so that it comes during the handshake.
            let deadline = reason == .timedOut(.tls) ? TimeAmount.seconds(2) : .seconds(60)
            try await withTLSLoop(TLSSettings(), port: peer.port) { loop in
                let result = try await loop.connect(within: deadline)
                #expect(result.reason == reason)
                #expect(try await loop.run(\.connector.pending) == 0)
            }
        }
    }

    static let limits:
        [(TLSProtocolVersion, TLSProtocolVersion?, TLSProtocolVersion, TLSProtocolVersion?, TLSVersion?)] = [
            (.v1_2, nil, .v1_2, .v1_2, .tlsv12), (.v1_2, .v1_2, .v1_2, nil, .tlsv12), (.v1_3, nil, .v1_2, nil, .tlsv13),
            (.v1_3, nil, .v1_2, .v1_2, nil), (.v1_2, .v1_2, .v1_3, nil, nil), (.v1_0, .v1_1, .v1_0, nil, .tlsv11),
        ]

    @Test(
        "[SPEC A1 streamSSLLevel] the highest version in common is taken; none in common is an error",
        arguments: limits
    )
    func versions(
        lowest: TLSProtocolVersion,
        highest: TLSProtocolVersion?,
        serverLowest: TLSProtocolVersion,
        serverHighest: TLSProtocolVersion?,
        version: TLSVersion?
    ) async throws {
        let certificates = try await Certificates.all()
        var serving = server(certificates)
        serving.minimumVersion = serverLowest
        serving.maximumVersion = serverHighest
        var settings = trusting(certificates)
        settings.minimumVersion = lowest
        settings.maximumVersion = highest
        try await withTLSPeer(serving) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                let result = try await loop.connect()
                if let version {
                    let channel = try result.get().channel
                    #expect(try await peer.until { $0.handshakes == 1 }.versions == [version])
                    let names: [TLSVersion: String] = [.tlsv11: "TLSv1.1", .tlsv12: "TLSv1.2", .tlsv13: "TLSv1.3"]
                    #expect(try await loop.run { _ in channel.tlsVersion } == names[version])
                } else {
                    #expect(result.tlsFailure == .noSharedVersion)
                }
            }
        }
    }

    @Test("cipher suites: the one asked for, by either name; one that does not suit the server's key is none in common")
    func ciphers() async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates)) { peer in
            for (name, failure) in [
                ("ECDHE-ECDSA-CHACHA20-POLY1305", nil), ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", nil),
                ("ECDHE-RSA-AES128-GCM-SHA256", TLSFailure.noSharedCipher),
            ] {
                var settings = trusting(certificates)
                settings.maximumVersion = .v1_2
                settings.ciphers = [name]
                try await withTLSLoop(settings, port: peer.port) { loop in
                    let result = try await loop.connect()
                    #expect(result.tlsFailure == failure)
                    if failure == nil { _ = try result.get() }
                }
            }
        }
    }

    @Test("the key log has a line for each secret, in the format of SSLKEYLOGFILE, and only its owner reads it")
    func keyLog() async throws {
        let certificates = try await Certificates.all()
        let folder = try ScratchFolder()
        var settings = trusting(certificates)
        settings.keyLogFile = folder.path("keys")
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in _ = try await loop.connect().get() }
        }
        let lines = try String(contentsOfFile: folder.path("keys"), encoding: .utf8).split(separator: "\n")
        let labels = Set(lines.map { $0.prefix { $0 != " " } })
        #expect(
            labels.isSuperset(of: [
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
                "SERVER_TRAFFIC_SECRET_0",
            ])
        )
        #expect(lines.allSatisfy { $0.split(separator: " ").map(\.count).dropFirst().first == 64 })
        #expect(
            try FileManager.default.attributesOfItem(atPath: folder.path("keys"))[.posixPermissions] as? Int == 0o600
        )
    }

    @Test("closing the sending side sends close_notify, and the peer's end is read to the last byte")
    func halfClose() async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                let connection = try await loop.connect().get()
                let channel = connection.channel
                let goodbye = [UInt8](repeating: 0xE0, count: 30_000)
                channel.write(ByteBuffer(bytes: goodbye), promise: nil)
                channel.flush()
                channel.close(mode: .output, promise: nil)
                try await peer.until { $0.closeNotifies == 1 }
                try await connection.until { $0.events.contains("inactive") }
                #expect(try await peer.seen().bytes == goodbye)
                #expect(try await peer.seen().errors.isEmpty)
                #expect(try await connection.ask(\.bytes) == goodbye)
                #expect(try await connection.ask(\.errors.isEmpty))
                let events = try await connection.ask(\.events)
                #expect(events.contains("inputClosed"))
            }
        }
    }

    @Test("an end without close_notify is an end, and no error")
    func endWithoutClose() async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                let connection = try await loop.connect().get()
                try await connection.send(TLSPeer.hangUp)
                try await connection.until { $0.events.contains("inputClosed") }
                #expect(try await connection.ask(\.errors.isEmpty))
                connection.channel.close(promise: nil)
                try await connection.until { $0.events.contains("inactive") }
            }
        }
    }

    @Test("closing does not wait for the server's close_notify")
    func close() async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                let connection = try await loop.connect().get()
                try await connection.channel.close()
                try await peer.until { $0.closeNotifies == 1 }
            }
        }
    }
}
