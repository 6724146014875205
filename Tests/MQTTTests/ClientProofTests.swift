import MQTT
import MQTTCodec
import SASL
import TestSupport
import Testing

/// A client that reauthenticates with a server that breaks the rules.
@Suite("A server's proof, asked for again (MQTT 5 §4.12.1)", .timeLimit(.minutes(10)))
struct ClientProofTests {
    /// The server's reply in the second exchange: after the client's proof, or instead of its own first message.
    struct Answer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var isEarly = false
        /// `nil` is the right proof.
        let auth: Auth?
        let error: MQTTClientError?
    }

    private static let method = "SCRAM-SHA-256"

    static let answers = [
        Answer(testDescription: "the right proof", auth: nil, error: nil),
        Answer(
            testDescription: "success without proof",
            auth: Auth(reason: .success, properties: [.authenticationMethod(method)]),
            error: .notAuthenticated("the server did not prove that it knows the password")
        ),
        Answer(
            testDescription: "success before the exchange",
            isEarly: true,
            auth: Auth(reason: .success, properties: [.authenticationMethod(method)]),
            error: .notAuthenticated("the server did not prove that it knows the password")
        ),
        Answer(
            testDescription: "[MQTT-4.12.0-5] another method",
            isEarly: true,
            auth: Auth(reason: .continueAuthentication, properties: [.authenticationMethod("X")]),
            error: .connectionLost(
                .protocolError(.protocolError, "AUTH with another method than CONNECT ([MQTT-4.12.0-5])")
            )
        ),
    ]

    @Test("decides", arguments: answers)
    func decides(_ answer: Answer) async throws {
        try await withScriptedPeer { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, id: "c") {
                    $0.authentication = .scramSHA256(user: "user", password: "secret")
                }
            )
            async let connected = client.connect()
            let first = try await Self.exchange(peer, from: 0)
            try await peer.send(wire(.connAck(ConnAck(properties: Self.properties(first.proof)))))
            _ = try await connected

            async let again = failure { try await client.reauthenticate() }
            if answer.isEarly, let auth = answer.auth {
                _ = try await Self.message(peer, "n,,", from: first.end)
                try await peer.send(wire(.auth(auth)))
            } else {
                let second = try await Self.exchange(peer, from: first.end)
                let right = Auth(reason: .success, properties: Self.properties(second.proof))
                try await peer.send(wire(.auth(answer.auth ?? right)))
            }
            #expect(await again == answer.error)
            client.abort()
        }
    }

    private static func properties(_ data: [UInt8]) -> Properties {
        [.authenticationMethod(Self.method), .authenticationData(data)]
    }

    /// Takes the server's part of SCRAM up to its proof, which it does not send.
    private static func exchange(_ peer: ScriptedPeer, from start: Int) async throws -> (proof: [UInt8], end: Int) {
        let credentials = try SCRAMCredentials(.sha256, password: "secret", salt: [1, 2, 3, 4])
        var server = SCRAMServer(.sha256, credentials: { _ in credentials })
        let first = try await Self.message(peer, "n,,", from: start)
        guard case .challenge(let challenge) = server.received(first.data) else { throw NoExchange() }
        let auth = Auth(reason: .continueAuthentication, properties: Self.properties(challenge))
        try await peer.send(wire(.auth(auth)))
        let final = try await Self.message(peer, "c=biws,", from: first.end)
        guard case .accepted(_, let proof) = server.received(final.data) else { throw NoExchange() }
        return (proof, final.end)
    }

    private struct NoExchange: Error {}

    /// The authentication data that begins this way, and its end; its length precedes it.
    private static func message(
        _ peer: ScriptedPeer,
        _ prefix: String,
        from start: Int
    ) async throws -> (data: [UInt8], end: Int) {
        let prefix = Array(prefix.utf8)
        var count = start
        while true {
            try await peer.untilBytes(count + 1)
            let bytes = try await peer.received()
            count = bytes.count
            let begin = (start..<max(start, count - prefix.count)).first { bytes[$0...].starts(with: prefix) }
            guard let begin else { continue }
            let end = begin + Int(bytes[begin - 2]) << 8 + Int(bytes[begin - 1])
            if end <= count { return (Array(bytes[begin..<end]), end) }
        }
    }
}
