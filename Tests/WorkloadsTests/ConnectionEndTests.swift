import MQTT
import MQTTCodec
import Testing
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
            (.v5, Self.refusal(1, isVersion3: true), "unsupported protocol version (0x01); try -V 4"),
            (.v5, Self.refusal(0x84), "unsupported protocol version (0x84); try -V 4"),
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
}
