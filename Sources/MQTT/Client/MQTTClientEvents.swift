public import MQTTCodec
import NIOCore

/// The connection state of a client.
public enum MQTTClientState: Hashable, Sendable {
    /// No call of `connect` so far.
    case created
    /// The time from `connect` to CONNACK.
    case connecting
    /// CONNACK accepted.
    case connected
    /// DISCONNECT is being sent.
    case disconnecting
    /// The connection or the attempt has ended; `connect` may be called again.
    case closed
}

/// An event of a client's connection, sent after the change of state that it causes, or of its store.
public enum MQTTClientEvent: Hashable, Sendable {
    /// CONNACK accepted.
    case connected(MQTTConnectResult)
    /// CONNACK refused.
    case refused(MQTTRefusal)
    /// The client disconnected, and the connection is closed.
    case closed
    /// There was no connection, or the network broke it.
    case failed(MQTTClientError)
    /// The server broke a rule of the protocol, and the client disconnected it.
    case protocolError(MQTTClientError)
    /// The server ended the connection, with or without DISCONNECT.
    case closedByServer(MQTTClientError)
    /// The message store failed or rejected a change, in its own words, and no waiting call reports it.
    ///
    /// The change is retried each second, and reported once until it succeeds. Meanwhile PUBREL, PUBREC, PUBCOMP and
    /// unsent messages that depend on it wait.
    case storeFailed(String)
}

/// One packet, as passed to a hook.
public struct MQTTPacketTrace: Hashable, Sendable {
    /// The packet type.
    public var type: PacketType
    /// QoS of a PUBLISH; 0 for other packets.
    public var qos: QoS
    /// Retain flag of a PUBLISH.
    public var retain: Bool
    /// DUP flag of a PUBLISH.
    public var dup: Bool
    /// Packet identifier, if the packet has one.
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

    /// Size of the packet that starts at `bytes`; `nil` if they do not contain it.
    static func size(of bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
        var size = 0
        for (index, byte) in bytes.dropFirst().prefix(4).enumerated() {
            size |= Int(byte & 0x7F) << (7 * index)
            if byte < 0x80 { return 2 + index + size }
        }
        return nil
    }

    /// Decodes the header fields of one whole packet; `nil` if the bytes are no packet.
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

/// Numbers of messages in flight and waiting.
public struct MQTTTraffic: Hashable, Sendable {
    /// Messages of ours that have not been sent yet.
    public var queued: Int
    /// Messages of the server that no task has taken, or that are not acknowledged yet.
    public var flowingIn: Int
    /// Messages of ours that were sent and are not acknowledged yet.
    public var flowingOut: Int
}

/// Closures that observe a client, or change its packet flow.
///
/// They run on the client's event loop and must return at once. The order for one packet is: `received`, `ignore`, then
/// its effects (`delivered`, the message, the end of a call), then `buffered`.
public struct MQTTClientHooks: Sendable {
    /// Called before a packet goes to the transport.
    public var sending: (@Sendable (MQTTPacketTrace) -> Void)?
    /// Called before a received packet is processed.
    public var received: (@Sendable (MQTTPacketTrace) -> Void)?
    /// Returns `true` to drop a received packet as if it had been lost.
    public var ignore: (@Sendable (MQTTPacketTrace) -> Bool)?
    /// Called when PUBACK or PUBCOMP completes a message of ours.
    public var delivered: (@Sendable (MQTTMessage, PacketID) -> Void)?
    /// Called on connect, on publish, on every acknowledgement and on close.
    public var buffered: (@Sendable (MQTTTraffic) -> Void)?

    /// No hooks.
    public init() {}

    var watchesPackets: Bool { self.sending != nil || self.received != nil || self.ignore != nil }
}
