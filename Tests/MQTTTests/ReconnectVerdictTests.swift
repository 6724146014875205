import MQTT
import MQTTCodec
import Testing

@Suite("Whether to come back")
struct ReconnectVerdictTests {
    @Test(
        "[SPEC A12] a return code of 3.1.1 that cannot heal is final",
        arguments: [
            (1, .giveUp), (2, .giveUp), (3, .retry), (4, .giveUp), (5, .giveUp), (6, .retry), (255, .retry),
        ] as [(UInt8, ReconnectVerdict)]
    )
    func returnCodes(_ code: UInt8, _ verdict: ReconnectVerdict) {
        for version in [ProtocolVersion.v31, .v311] {
            #expect(ReconnectVerdict(.refused(MQTTRefusal(code: code, version: version))) == verdict)
        }
    }

    @Test("[SPEC A12] a reason code of CONNACK is final unless the server may feel better later")
    func refusals() {
        let heals: Set<UInt8> = [0x80, 0x83, 0x88, 0x89, 0x97, 0x9C, 0x9F]
        for code in UInt8(0x80)...0xFF {
            let verdict = ReconnectVerdict(.refused(MQTTRefusal(code: code, version: .v5)))
            // A code that MQTT 5 does not have never gets here: the decoder refuses it.
            guard ReasonCode(rawValue: code) != nil else { continue }
            #expect(verdict == (heals.contains(code) ? .retry : .giveUp), "code \(code)")
        }
    }

    @Test("[SPEC A12] a DISCONNECT is final where coming back would do the same again")
    func disconnects() {
        let final: Set<ReasonCode> = [
            .notAuthorized, .sessionTakenOver, .topicFilterInvalid, .topicNameInvalid, .packetTooLarge,
            .payloadFormatInvalid, .retainNotSupported, .qosNotSupported, .serverMoved,
            .sharedSubscriptionsNotSupported, .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported,
        ]
        for code in ReasonCode.allCases where code.isAllowed(in: .disconnect, toServer: false) {
            let verdict = ReconnectVerdict(.connectionLost(.disconnected(code, Properties())))
            #expect(verdict == (final.contains(code) ? .giveUp : .retry), "\(code)")
        }
    }

    @Test(
        "[SPEC A12] what the network does may heal",
        arguments: [
            .noConnection(MQTTConnectFailure(kind: "refused", words: "")), .timedOut(.connack),
            .connectionLost(.closedByServer), .connectionLost(.pingTimedOut), .connectionLost(.failed(errno: 104)),
            .connectionLost(.protocolError(.malformedPacket, "")), .noCredentials(""),
        ] as [MQTTClientError]
    )
    func network(_ error: MQTTClientError) { #expect(ReconnectVerdict(error) == .retry) }

    @Test(
        "what the caller did does not heal by itself",
        arguments: [.invalid(""), .storeFailed(""), .shutDown, .cancelled, .disconnected] as [MQTTClientError]
    )
    func caller(_ error: MQTTClientError) { #expect(ReconnectVerdict(error) == .giveUp) }

    @Test("[MQTT5-4.11] a server that names another one is left for it: 0x9C for now, 0x9D for good")
    func redirects() throws {
        var properties = Properties()
        properties.serverReference = "other.example:8883"
        let server = try #require(ServerReference("other.example:8883"))
        for (code, isPermanent) in [(ReasonCode.useAnotherServer, false), (.serverMoved, true)] {
            let refusal = MQTTRefusal(code: code.rawValue, version: .v5, properties: properties)
            #expect(ReconnectVerdict(.refused(refusal)) == .redirect(server, permanently: isPermanent))
            #expect(
                ReconnectVerdict(.connectionLost(.disconnected(code, properties)))
                    == .redirect(server, permanently: isPermanent)
            )
        }
        // Another code's reference is not meant so.
        let busy = MQTTRefusal(code: 0x89, version: .v5, properties: properties)
        #expect(ReconnectVerdict(.refused(busy)) == .retry)
    }

    @Test(
        "[MQTT5-4.11] a server reference is a list of hosts, with or without ports",
        arguments: [
            ("myserver.xyz.org", "myserver.xyz.org", nil), ("myserver.xyz.org:8883", "myserver.xyz.org", 8_883),
            ("10.10.151.22:8883", "10.10.151.22", 8_883),
            ("[fe80:9610:3eff:fe1c]:1883", "fe80:9610:3eff:fe1c", 1_883), ("[::1]", "::1", nil),
            ("one two:2", "one", nil), (":1 two:2", "two", 2), ("  a  ", "a", nil),
        ] as [(String, String, UInt16?)]
    )
    func references(_ text: String, _ host: String, _ port: UInt16?) throws {
        let reference = try #require(ServerReference(text))
        #expect(reference.host == host)
        #expect(reference.port == port)
    }

    @Test(
        "[MQTT5-4.11] a reference that is not understood is none",
        arguments: [
            "", " ", ":1883", "a:", "a:0", "a:65536", "a:+1", "a:x", "::1", "a:1:2", "[::1", "[a]", "[::1]x", "[::1]:",
            "mqtt://a", "a/b", "a\tb", "\u{E9}", String(repeating: "a", count: 254),
        ]
    )
    func noReference(_ text: String) { #expect(ServerReference(text) == nil) }
}
