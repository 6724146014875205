import LoadEngine
import MQTT
import MQTTCodec
import NIOCore
import SASL
import TestSupport
import Testing
import Transport
import VirtualServers
import Workloads

@Suite("The account of a connection that ended")
struct ConnectionEndTests {
    private static func refusal(_ code: UInt8, isVersion3: Bool = false) -> ConnAck {
        var answer = ConnAck(code: code)
        answer.isVersion3 = isVersion3
        return answer
    }

    @Test(
        "a refused connection is counted by its code and explained by the version that the code belongs to",
        arguments: [
            (.v5, Self.refusal(1, isVersion3: true), "unsupported protocol version (0x01); try MQTT 3.1.1"),
            (.v5, Self.refusal(0x84), "unsupported protocol version (0x84); try MQTT 3.1.1"),
            (.v5, Self.refusal(5, isVersion3: true), "not authorized (0x05)"),
            (.v5, Self.refusal(0x87), "Not authorized (0x87)"),
            (.v311, Self.refusal(1), "unacceptable protocol version (0x01)"),
            (.v31, Self.refusal(9), "unknown code (0x09)"),
        ] as [(ProtocolVersion, ConnAck, String)]
    )
    func refused(_ version: ProtocolVersion, _ answer: ConnAck, _ words: String) {
        let (kind, reason, account) = ConnectionEnd.refused(answer).account(version: version)
        #expect(account == "CONNACK refused: \(words)")
        #expect(words.contains("(\(kind.dropFirst("connack ".count)))"))
        #expect(reason == .server)
    }

    private static let ends: [ConnectionEnd] = [
        .answered, .refused(ConnAck(code: 0x87)), .notAuthenticated(.serverNotVerified), .sessionKept,
        .connackTimedOut, .pingTimedOut, .closedByPeer, .disconnected(Disconnect(reason: .serverBusy)),
        .malformed(.unknownReason(.connAck, 0x8E)), .violation(.protocolError, "two words"), .insecure(.closed),
        .failed(32), .failed(22), .aborted,
    ]

    /// Does not compile with a case that the list above lacks.
    private static func isListed(_ end: ConnectionEnd) -> Bool {
        switch end {
        case .answered, .refused, .notAuthenticated, .sessionKept, .connackTimedOut, .pingTimedOut, .closedByPeer,
            .disconnected,
            .malformed, .violation, .insecure, .failed, .aborted:
            true
        }
    }

    @Test("every end is explained in words for people", arguments: ends, ProtocolVersion.allCases)
    func words(_ end: ConnectionEnd, _ version: ProtocolVersion) {
        #expect(Self.isListed(end))
        let words = end.account(version: version).words
        #expect(Wording.swift(in: words) == nil, "\(words)")
    }

    @Test("what the kernel took before a connection was lost counts as sent, and the rest of the write as not sent")
    func unsentAtLoss() throws {
        let run = try MQTTVirtualRun(
            .init(duration: .seconds(1), window: 12, latency: .milliseconds(1), pace: .closed)
        )
        let publisher = { [unowned run] in run.network.links.first { $0.client == 0 } }
        // PUBLISH with a topic of 3 bytes and a payload of 48 (MQTT 5.0 §3.3); the whole window is one write.
        let size = 58
        run.at(.milliseconds(-1)) { publisher()?.makeRoom(3 * size + 1) }
        // Taken between the write and the loss, so that neither count of what is left to settle is 0.
        run.at(.milliseconds(400)) { publisher()?.makeRoom(size) }
        run.at(.milliseconds(500)) { [unowned run] in run.network.cut(0) }
        run.perform()
        #expect(run.counter("publish_offered", .atLeastOnce) == 12)
        // The fifth is among them: its first byte went out.
        #expect(run.counter("publish_sent", .atLeastOnce) == 5)
        #expect(run.counter("publish_not_sent", .atLeastOnce) == 7)
        #expect(run.counter("publish_acked", .atLeastOnce) == 4)
        #expect(run.imbalances.isEmpty)
    }

    @Test("bytes that break a rule are explained by the rule and its clause")
    func malformed() {
        let words = ConnectionEnd.malformed(.unknownReason(.connAck, 0x8E)).account(version: .v5).words
        #expect(words == "the server's bytes are not MQTT: the code 0x8e, which CONNACK does not have (§2.4)")
    }

    @Test("a packet that is too large has its remedy")
    func tooLarge() {
        let (kind, _, words) = ConnectionEnd.malformed(.packetTooLarge(size: 2_000_000)).account(version: .v311)
        #expect(kind == "protocol")
        #expect(words == "a packet of 2000000 bytes came, above the maximum packet size (of a CONNACK: 512 KiB)")
    }
}
