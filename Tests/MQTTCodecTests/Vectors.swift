import Foundation
import MQTTCodec
import NIOCore
import TestSupport
import Testing

/// One case of Tests/Vectors/mqtt: bytes written by hand from the standard, and what they are.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let clause: String
    /// `first`: the bytes are what a server gets before any CONNECT.
    let version: String
    /// The side that decodes.
    let role: String
    private let bytes: String
    private let packet: PacketDescription?
    /// The error, as ``DecodeError/testName``, and the reason code that answers it.
    let mustFail: String?
    let reason: String?
    /// The encoder writes the packet in another form.
    let otherForm: Bool?

    var testDescription: String { "\(self.name) (\(self.version), \(self.clause))" }
    var wire: [UInt8] { hex(self.bytes) }
    var isServer: Bool { self.role == "server" }
    var isConnect: Bool { self.version == "first" || self.wire[0] >> 4 == 1 && self.mustFail != "secondConnect" }

    var protocolVersion: ProtocolVersion {
        switch self.version {
        case "3.1": .v31
        case "5": .v5
        default: .v311
        }
    }

    var expected: Packet {
        get throws {
            guard let packet = self.packet else { throw BadVector(name: self.name) }
            return try packet.packet(version: self.protocolVersion)
        }
    }

    /// A decoder that is where the vector begins: a server has seen a CONNECT of the version.
    func decoder() throws -> PacketDecoder {
        if self.isServer, !self.isConnect { return try connectedServer(self.protocolVersion) }
        return PacketDecoder(role: self.isServer ? .server : .client(self.protocolVersion))
    }

    static let all: [Vector] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/mqtt")
        let names = [
            "connect", "connack", "publish", "acknowledgements", "subscribe", "unsubscribe", "disconnect", "framing",
        ]
        return names.flatMap { name -> [Vector] in
            do {
                let data = try Data(contentsOf: folder.appendingPathComponent(name + ".json"))
                return try JSONDecoder().decode([Vector].self, from: data)
            } catch {
                preconditionFailure("\(name).json: \(error)")
            }
        }
    }()

    static let packets = Self.all.filter { $0.mustFail == nil }
    static let refusals = Self.all.filter { $0.mustFail != nil }
}

struct BadVector: Error { let name: String }

/// A packet as the JSON of a vector has it.
struct PacketDescription: Decodable, Sendable {
    struct WillDescription: Decodable, Sendable {
        let topic: String
        let payload: String
        let qos: UInt8
        let retain: Bool
        let properties: [[Scalar]]?
    }

    struct SubscriptionDescription: Decodable, Sendable {
        let filter: String
        let qos: UInt8
        let noLocal: Bool?
        let retainAsPublished: Bool?
        let retainHandling: UInt8?
    }

    enum Scalar: Decodable, Sendable {
        case number(UInt32)
        case text(String)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(UInt32.self) {
                self = .number(number)
            } else {
                self = .text(try container.decode(String.self))
            }
        }
    }

    let type: String
    let clientID: String?
    let cleanStart: Bool?
    let keepAlive: UInt16?
    let username: String?
    let password: String?
    let will: WillDescription?
    let sessionPresent: Bool?
    let code: UInt8?
    let isVersion3: Bool?
    let codes: String?
    let topic: String?
    let payload: String?
    let qos: UInt8?
    let retain: Bool?
    let dup: Bool?
    let packetID: UInt16?
    let subscriptions: [SubscriptionDescription]?
    let filters: [String]?
    let properties: [[Scalar]]?
}

extension PacketDescription {
    func packet(version: ProtocolVersion) throws -> Packet {
        let properties = try Properties(described: self.properties)
        let reason = ReasonCode(rawValue: self.code ?? 0) ?? .success
        let id = PacketID(rawValue: self.packetID ?? 0)
        switch self.type {
        case "connect": return .connect(try self.connect(version, properties))
        case "connAck":
            let present = self.sessionPresent ?? false
            var answer = ConnAck(sessionPresent: present, code: self.code ?? 0, properties: properties)
            answer.isVersion3 = self.isVersion3 ?? false
            return .connAck(answer)
        case "publish": return .publish(try self.publish(id, properties))
        case "pubAck": return .pubAck(PubAck(id ?? 1, reason: reason, properties: properties))
        case "pubRec": return .pubRec(PubRec(id ?? 1, reason: reason, properties: properties))
        case "pubRel": return .pubRel(PubRel(id ?? 1, reason: reason, properties: properties))
        case "pubComp": return .pubComp(PubComp(id ?? 1, reason: reason, properties: properties))
        case "subscribe":
            return .subscribe(
                Subscribe(id ?? 1, (self.subscriptions ?? []).map(Subscription.init), properties: properties)
            )
        case "subAck": return .subAck(SubAck(id ?? 1, codes: hex(self.codes ?? ""), properties: properties))
        case "unsubscribe":
            return .unsubscribe(Unsubscribe(id ?? 1, filters: self.filters ?? [], properties: properties))
        case "unsubAck": return .unsubAck(UnsubAck(id ?? 1, codes: hex(self.codes ?? ""), properties: properties))
        case "pingReq": return .pingReq
        case "pingResp": return .pingResp
        case "disconnect": return .disconnect(Disconnect(reason: reason, properties: properties))
        case "auth": return .auth(Auth(reason: reason, properties: properties))
        default: throw BadVector(name: self.type)
        }
    }

    private func connect(_ version: ProtocolVersion, _ properties: Properties) throws -> Connect {
        let will = try self.will.map {
            Will(
                topic: $0.topic,
                payload: hex($0.payload),
                qos: QoS(rawValue: $0.qos) ?? .atMostOnce,
                retain: $0.retain,
                properties: try Properties(described: $0.properties)
            )
        }
        return Connect(
            version: version,
            clientID: self.clientID ?? "",
            cleanStart: self.cleanStart ?? false,
            keepAlive: self.keepAlive ?? 0,
            username: self.username,
            password: self.password.map(hex),
            will: will,
            properties: properties
        )
    }

    private func publish(_ id: PacketID?, _ properties: Properties) throws -> Publish {
        Publish(
            topic: self.topic ?? "",
            payload: ByteBuffer(bytes: hex(self.payload ?? "")),
            qos: QoS(rawValue: self.qos ?? 0) ?? .atMostOnce,
            retain: self.retain ?? false,
            dup: self.dup ?? false,
            packetID: id,
            properties: properties
        )
    }
}

extension Subscription {
    fileprivate init(_ description: PacketDescription.SubscriptionDescription) {
        self.init(
            filter: description.filter,
            qos: QoS(rawValue: description.qos) ?? .atMostOnce,
            noLocal: description.noLocal ?? false,
            retainAsPublished: description.retainAsPublished ?? false,
            retainHandling: RetainHandling(rawValue: description.retainHandling ?? 0) ?? .send
        )
    }
}

extension Properties {
    /// `[name, value]`, or `[name, value, value]` for a user property; binary values as hex.
    fileprivate init(described list: [[PacketDescription.Scalar]]?) throws {
        self.init()
        for item in list ?? [] {
            guard case .text(let name)? = item.first, let id = PropertyID.allCases.first(where: { "\($0)" == name })
            else { throw BadVector(name: "\(item)") }
            self.append(Property(id, try Property.Value(described: Array(item.dropFirst()), of: id)))
        }
    }
}

extension Property.Value {
    /// The types of table 2-4, written down a second time.
    fileprivate init(described values: [PacketDescription.Scalar], of id: PropertyID) throws {
        switch (values[0], id.rawValue) {
        case (.text(let name), 0x26):
            guard case .text(let value) = values[1] else { throw BadVector(name: "\(id)") }
            self = .pair(name, value)
        case (.text(let text), 0x09), (.text(let text), 0x16): self = .binary(hex(text))
        case (.text(let text), _): self = .text(text)
        case (.number(let number), 0x0B): self = .variable(number)
        case (.number(let number), 0x02), (.number(let number), 0x11), (.number(let number), 0x18),
            (.number(let number), 0x27):
            self = .fourBytes(number)
        case (.number(let number), 0x13), (.number(let number), 0x21), (.number(let number), 0x22),
            (.number(let number), 0x23):
            self = .twoBytes(UInt16(number))
        case (.number(let number), _): self = .byte(UInt8(number))
        }
    }
}
