public import MQTTCodec
import NIOCore

/// Where a client stands between its creation and its end.
public enum MQTTClientState: Hashable, Sendable {
    /// Never connected so far.
    case created
    /// From `connect` to CONNACK.
    case connecting
    /// CONNACK accepted.
    case connected
    /// DISCONNECT is on its way.
    case disconnecting
    /// The connection, or the attempt to have one, has ended; `connect` may be called again.
    case closed
}

/// What happened to a client's connection, told behind the change of state that it brings, or to its store.
public enum MQTTClientEvent: Hashable, Sendable {
    /// CONNACK accepted.
    case connected(MQTTConnectResult)
    /// CONNACK refused.
    case refused(MQTTRefusal)
    /// The client disconnected, and the connection is closed.
    case closed
    /// There was no connection, or the network broke it.
    case failed(MQTTClientError)
    /// The server broke a rule of the protocol, and was disconnected for it.
    case protocolError(MQTTClientError)
    /// The server ended the connection, with DISCONNECT or without a word.
    case closedByServer(MQTTClientError)
    /// The message store failed or refused, in its own words, where no call that waits says so.
    ///
    /// It is tried again each second, and told of once until it has gone well. What MQTT has wait for it waits: PUBREL,
    /// PUBREC, PUBCOMP and the messages of ours that have not been sent.
    case storeFailed(String)
}

/// One packet as it passes a hook.
public struct MQTTPacketTrace: Hashable, Sendable {
    /// What kind of packet it is.
    public var type: PacketType
    /// Of a PUBLISH; 0 otherwise.
    public var qos: QoS
    /// Of a PUBLISH.
    public var retain: Bool
    /// Of a PUBLISH.
    public var dup: Bool
    /// Where the packet has one.
    public var packetID: PacketID?
    /// The whole packet as on the wire.
    public var bytes: [UInt8]
}

extension MQTTPacketTrace {
    init?(_ packet: Packet, version: ProtocolVersion) {
        var buffer = ByteBuffer()
        packet.encode(as: version, into: &buffer)
        self.init(Array(buffer.readableBytesView), version: version)
    }

    /// Bytes of the packet that `bytes` begin with; `nil` if they do not say.
    static func size(of bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
        var size = 0
        for (index, byte) in bytes.dropFirst().prefix(4).enumerated() {
            size |= Int(byte & 0x7F) << (7 * index)
            if byte < 0x80 { return 2 + index + size }
        }
        return nil
    }

    /// Reads one whole packet, as far as what stands in its head; `nil` if it is none.
    init?(_ bytes: [UInt8], version: ProtocolVersion) {
        guard let first = bytes.first, let type = PacketType(rawValue: first >> 4) else { return nil }
        let head = 1 + (bytes.dropFirst().firstIndex { $0 < 0x80 } ?? bytes.count)
        func integer(_ offset: Int) -> Int {
            offset + 1 < bytes.count ? Int(bytes[offset]) << 8 | Int(bytes[offset + 1]) : 0
        }
        self.init(
            type: type,
            qos: type == .publish ? QoS(rawValue: first >> 1 & 3) ?? .exactlyOnce : .atMostOnce,
            retain: type == .publish && first & 1 != 0,
            dup: type == .publish && first & 8 != 0,
            bytes: bytes
        )
        switch type {
        case .publish where self.qos != .atMostOnce:
            self.packetID = PacketID(rawValue: UInt16(truncatingIfNeeded: integer(head + 2 + integer(head))))
        case .pubAck, .pubRec, .pubRel, .pubComp, .subscribe, .subAck, .unsubscribe, .unsubAck:
            self.packetID = PacketID(rawValue: UInt16(truncatingIfNeeded: integer(head)))
        default: break
        }
    }
}

/// How many messages are on their way.
public struct MQTTTraffic: Hashable, Sendable {
    /// Ours that have not been sent yet.
    public var queued: Int
    /// The server's that nobody has taken, or that are not acknowledged yet.
    public var flowingIn: Int
    /// Ours that were sent and are not acknowledged yet.
    public var flowingOut: Int
}

/// Closures that watch a client, or meddle with it.
///
/// They are called on the client's event loop and must return at once. For one packet the order is: `received`,
/// `ignore`, then what follows from it (`delivered`, the message, the end of a call), then `buffered`.
public struct MQTTClientHooks: Sendable {
    /// Before a packet goes to the transport.
    public var sending: (@Sendable (MQTTPacketTrace) -> Void)?
    /// Before a packet that came is looked at.
    public var received: (@Sendable (MQTTPacketTrace) -> Void)?
    /// Whether a packet that came is to be dropped as if it had been lost.
    public var ignore: (@Sendable (MQTTPacketTrace) -> Bool)?
    /// A message of ours was acknowledged for good, by PUBACK or PUBCOMP.
    public var delivered: (@Sendable (MQTTMessage, PacketID) -> Void)?
    /// On connect, on publish, on every acknowledgement and on close.
    public var buffered: (@Sendable (MQTTTraffic) -> Void)?

    /// No hooks.
    public init() {}

    var watchesPackets: Bool { self.sending != nil || self.received != nil || self.ignore != nil }
}
