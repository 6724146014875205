package import NIOCore

/// Ends subscriptions.
///
/// Spec: MQTT 5.0 §3.10, MQTT 3.1.1 §3.10.
public struct Unsubscribe: Hashable, Sendable {
    package var packetID: PacketID
    package var filters: [String]
    package var properties: Properties

    package init(_ packetID: PacketID, filters: [String], properties: Properties = Properties()) {
        self.packetID = packetID
        self.filters = filters
        self.properties = properties
    }
}

/// Answers an UNSUBSCRIBE: one code per filter in 5.0, none before.
///
/// Spec: MQTT 5.0 §3.11, MQTT 3.1.1 §3.11.
public struct UnsubAck: Hashable, Sendable {
    package var packetID: PacketID
    package var codes: [UInt8]
    package var properties: Properties

    package init(_ packetID: PacketID, codes: [UInt8] = [], properties: Properties = Properties()) {
        self.packetID = packetID
        self.codes = codes
        self.properties = properties
    }
}

extension Unsubscribe {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writePacket(.unsubscribe) { body in
            body.writeInteger(self.packetID.rawValue)
            if version == .v5 { self.properties.encode(into: &body) }
            for filter in self.filters { body.writeText(filter) }
        }
    }

    init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        self.init(try reader.packetID(), filters: [])
        if version == .v5 { self.properties = try reader.properties(.unsubscribe) }
        repeat {
            if reader.isAtEnd { throw .noFilters }
            self.filters.append(String(decoding: try reader.filter(version: version), as: UTF8.self))
        } while !reader.isAtEnd
    }
}

extension UnsubAck {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writePacket(.unsubAck) { body in
            body.writeInteger(self.packetID.rawValue)
            guard version == .v5 else { return }
            self.properties.encode(into: &body)
            body.writeBytes(self.codes)
        }
    }

    init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        self.init(try reader.packetID())
        if version != .v5 {
            try reader.expectEnd()
            return
        }
        self.properties = try reader.properties(.unsubAck)
        self.codes = try reader.reasonCodes(.unsubAck, version: version)
    }
}
