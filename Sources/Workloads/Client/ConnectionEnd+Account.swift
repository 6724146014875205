package import MQTT
package import MQTTCodec

#if canImport(Glibc)
import Glibc
#endif

extension ConnectionEnd {
    /// The error kind, the reason of the disconnect, and an example message.
    package func account(version: ProtocolVersion) -> (kind: String, reason: DisconnectReason, words: String) {
        switch self {
        case .answered, .aborted: ("closed", .closed, "closed by this side")
        case .refused(let connack):
            (
                "connack \(Self.hex(connack.code))", .server,
                "CONNACK refused: \(Self.words(connack, version))" + Self.more(connack.properties)
            )
        case .notAuthenticated(let error): ("auth", .protocol, "the authentication failed: \(error)")
        case .sessionKept:
            ("session", .protocol, "the server still has a session of this client id, which this run did not begin")
        case .connackTimedOut: ("timeout", .timeout, "no CONNACK within the connect timeout")
        case .pingTimedOut: ("timeout", .timeout, "no PINGRESP in time")
        case .closedByPeer: ("closed", .closed, "the server closed the connection")
        case .disconnected(let disconnect):
            (
                "disconnect \(Self.hex(disconnect.reason.rawValue))", .server,
                "DISCONNECT from the server: \(disconnect.reason.name)" + Self.more(disconnect.properties)
            )
        case .malformed(.packetTooLarge(let size)):
            // The limit of a CONNACK is fixed.
            (
                "protocol", .protocol,
                "a packet of \(size) bytes came, above the maximum packet size (of a CONNACK: 512 KiB)"
            )
        case .malformed(let error): ("protocol", .protocol, "the server's bytes are not MQTT: \(error)")
        case .violation(_, let words): ("protocol", .protocol, "the server broke the protocol: \(words)")
        case .insecure(let failure): ("tls", .reset, "\(failure)")
        case .failed(let code) where code == ECONNRESET || code == EPIPE:
            ("reset", .reset, "connection reset by the server")
        case .failed(let code):
            ("io", .reset, "the socket failed: \(String(cString: strerror(code)))")
        }
    }

    private static func hex(_ code: UInt8) -> String { "0x" + (code < 16 ? "0" : "") + String(code, radix: 16) }

    /// The server's reason string and the server that it refers the client to.
    private static func more(_ properties: Properties) -> String {
        (properties.reasonString.map { " (\($0))" } ?? "") + (properties.serverReference.map { ", use \($0)" } ?? "")
    }

    private static func words(_ connack: ConnAck, _ version: ProtocolVersion) -> String {
        let code = Self.hex(connack.code)
        let isVersion5 = version == .v5 && !connack.isVersion3
        let reason = isVersion5 ? ReasonCode(rawValue: connack.code) : nil
        let returnCode = isVersion5 ? nil : ConnectReturnCode(rawValue: connack.code)
        if version == .v5, reason == .unsupportedProtocolVersion || returnCode == .unacceptableProtocolVersion {
            return "unsupported protocol version (\(code)); try MQTT 3.1.1"
        }
        return "\(reason?.name ?? returnCode?.name ?? "unknown code") (\(code))"
    }
}
