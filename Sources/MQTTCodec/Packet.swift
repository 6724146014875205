package import NIOCore

/// Any packet.
public enum Packet: Hashable, Sendable {
    /// Opens a session.
    case connect(Connect)
    /// Answers a CONNECT.
    case connAck(ConnAck)
    /// An application message.
    case publish(Publish)
    /// Acknowledges a QoS 1 PUBLISH.
    case pubAck(PubAck)
    /// Step two of four of a QoS 2 PUBLISH.
    case pubRec(PubRec)
    /// Step three of four.
    case pubRel(PubRel)
    /// Step four of four.
    case pubComp(PubComp)
    /// Requests subscriptions.
    case subscribe(Subscribe)
    /// Answers a SUBSCRIBE.
    case subAck(SubAck)
    /// Ends subscriptions.
    case unsubscribe(Unsubscribe)
    /// Answers an UNSUBSCRIBE.
    case unsubAck(UnsubAck)
    /// Checks that the other side responds.
    case pingReq
    /// The response to PINGREQ.
    case pingResp
    /// The last packet.
    case disconnect(Disconnect)
    /// One step of enhanced authentication.
    case auth(Auth)
}

extension Packet {
    package var type: PacketType {
        switch self {
        case .connect: .connect
        case .connAck: .connAck
        case .publish: .publish
        case .pubAck: .pubAck
        case .pubRec: .pubRec
        case .pubRel: .pubRel
        case .pubComp: .pubComp
        case .subscribe: .subscribe
        case .subAck: .subAck
        case .unsubscribe: .unsubscribe
        case .unsubAck: .unsubAck
        case .pingReq: .pingReq
        case .pingResp: .pingResp
        case .disconnect: .disconnect
        case .auth: .auth
        }
    }

    /// Appends the whole packet, fixed header included, right or wrong: ``PacketProblem`` is for checking.
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        switch self {
        case .connect(let packet): packet.encode(as: version, into: &buffer)
        case .connAck(let packet): packet.encode(as: version, into: &buffer)
        case .publish(let packet): packet.encode(as: version, into: &buffer)
        case .pubAck(let packet): packet.encode(as: version, into: &buffer)
        case .pubRec(let packet): packet.encode(as: version, into: &buffer)
        case .pubRel(let packet): packet.encode(as: version, into: &buffer)
        case .pubComp(let packet): packet.encode(as: version, into: &buffer)
        case .subscribe(let packet): packet.encode(as: version, into: &buffer)
        case .subAck(let packet): packet.encode(as: version, into: &buffer)
        case .unsubscribe(let packet): packet.encode(as: version, into: &buffer)
        case .unsubAck(let packet): packet.encode(as: version, into: &buffer)
        case .pingReq: buffer.writePacket(.pingReq) { _ in }
        case .pingResp: buffer.writePacket(.pingResp) { _ in }
        case .disconnect(let packet): packet.encode(as: version, into: &buffer)
        case .auth(let packet): packet.encode(as: version, into: &buffer)
        }
    }
}

extension Packet {
    /// The packet without what is left out rather than make it larger than the peer takes: reason string and user
    /// properties ([MQTT-3.4.2-2], [MQTT-3.4.2-3]); `nil` if it has neither, or may not do without.
    package var withoutReasons: Packet? {
        switch self {
        case .connAck(let packet): packet.properties.withoutReasons.map { .connAck(packet.with($0)) }
        case .pubAck(let packet): packet.properties.withoutReasons.map { .pubAck(packet.with($0)) }
        case .pubRec(let packet): packet.properties.withoutReasons.map { .pubRec(packet.with($0)) }
        case .pubRel(let packet): packet.properties.withoutReasons.map { .pubRel(packet.with($0)) }
        case .pubComp(let packet): packet.properties.withoutReasons.map { .pubComp(packet.with($0)) }
        case .subAck(let packet): packet.properties.withoutReasons.map { .subAck(packet.with($0)) }
        case .unsubAck(let packet): packet.properties.withoutReasons.map { .unsubAck(packet.with($0)) }
        case .disconnect(let packet): packet.properties.withoutReasons.map { .disconnect(packet.with($0)) }
        case .auth(let packet): packet.properties.withoutReasons.map { .auth(packet.with($0)) }
        case .connect, .publish, .subscribe, .unsubscribe, .pingReq, .pingResp: nil
        }
    }
}

extension Properties {
    fileprivate var withoutReasons: Properties? {
        let rest = self.entries.filter { $0.id != .reasonString && $0.id != .userProperty }
        return rest.count < self.entries.count ? Properties(rest) : nil
    }
}

/// A packet whose properties can be replaced.
private protocol HasProperties {
    var properties: Properties { get set }
}

extension HasProperties {
    fileprivate func with(_ properties: Properties) -> Self {
        var packet = self
        packet.properties = properties
        return packet
    }
}

extension ConnAck: HasProperties {}
extension PubAck: HasProperties {}
extension PubRec: HasProperties {}
extension PubRel: HasProperties {}
extension PubComp: HasProperties {}
extension SubAck: HasProperties {}
extension UnsubAck: HasProperties {}
extension Disconnect: HasProperties {}
extension Auth: HasProperties {}
