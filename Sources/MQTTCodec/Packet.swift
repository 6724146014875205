package import NIOCore

/// Any packet.
public enum Packet: Hashable, Sendable {
    case connect(Connect)
    case connAck(ConnAck)
    case publish(Publish)
    case pubAck(PubAck)
    case pubRec(PubRec)
    case pubRel(PubRel)
    case pubComp(PubComp)
    case subscribe(Subscribe)
    case subAck(SubAck)
    case unsubscribe(Unsubscribe)
    case unsubAck(UnsubAck)
    case pingReq
    case pingResp
    case disconnect(Disconnect)
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
