import MQTTCodec
import NIOCore
import TestSupport

enum Side {
    case client
    case server
}

extension Packet {
    /// A right packet that `side` may send in `version`.
    static func random(from side: Side, _ version: ProtocolVersion, using generator: inout SeededGenerator) -> Packet {
        var types: [PacketType] = [.publish, .publish, .publish, .pubAck, .pubRec, .pubRel, .pubComp]
        types +=
            side == .client
            ? [.connect, .subscribe, .unsubscribe, .pingReq, .disconnect]
            : [.connAck, .subAck, .unsubAck, .pingResp]
        if version == .v5 { types += [.disconnect, .auth] }
        var maker = PacketMaker(side: side, version: version, generator: generator)
        defer { generator = maker.generator }
        return maker.packet(types.randomElement(using: &maker.generator) ?? .publish)
    }
}

private struct PacketMaker {
    let side: Side
    let version: ProtocolVersion
    var generator: SeededGenerator

    mutating func flip() -> Bool { Bool.random(using: &self.generator) }

    mutating func number(_ range: ClosedRange<UInt32>) -> UInt32 { .random(in: range, using: &self.generator) }

    mutating func id() -> PacketID { PacketID(rawValue: UInt16(self.number(1...65_535))) ?? 1 }

    mutating func qos() -> QoS { QoS.allCases.randomElement(using: &self.generator) ?? .atMostOnce }

    mutating func bytes(upTo count: UInt32) -> [UInt8] {
        (0..<self.number(0...count)).map { _ in UInt8(self.number(0...255)) }
    }

    mutating func text(upTo count: UInt32) -> String {
        String((0..<self.number(1...count)).map { _ in "abz/0 é€🚀".randomElement(using: &self.generator) ?? "a" })
    }

    mutating func filter() -> String {
        ["#", "+", "a/+/b", "/", "+/+/#", "$SYS/#", self.text(upTo: 20)].randomElement(using: &self.generator) ?? "a"
    }

    /// Some of `ids`, each once, user properties perhaps twice; none before 5.0.
    mutating func properties(_ ids: PropertyID...) -> Properties {
        guard self.version == .v5, self.flip() else { return Properties() }
        var properties = Properties()
        for id in (ids + [.userProperty, .userProperty]).shuffled(using: &self.generator) where self.flip() {
            properties.append(Property(id, self.value(of: id)))
        }
        return properties
    }

    private mutating func value(of id: PropertyID) -> Property.Value {
        switch id {
        case .userProperty: .pair(self.text(upTo: 5), self.text(upTo: 200))
        case .subscriptionIdentifier: .variable(self.number(1...268_435_455))
        case .correlationData: .binary(self.bytes(upTo: 20))
        case .payloadFormatIndicator, .retainAvailable, .maximumQoS, .requestProblemInformation:
            .byte(UInt8(self.number(0...1)))
        case .receiveMaximum, .topicAlias, .topicAliasMaximum, .serverKeepAlive:
            .twoBytes(UInt16(self.number(1...65_535)))
        case .messageExpiryInterval, .sessionExpiryInterval, .willDelayInterval, .maximumPacketSize:
            .fourBytes(self.number(1...(.max)))
        default: .text(self.text(upTo: 30))
        }
    }

    mutating func packet(_ type: PacketType) -> Packet {
        let isV5 = self.version == .v5
        switch type {
        case .connect: return .connect(self.connect())
        case .connAck:
            let properties = self.properties(.receiveMaximum, .maximumQoS, .assignedClientIdentifier, .serverKeepAlive)
            return .connAck(ConnAck(sessionPresent: self.flip(), properties: properties))
        case .publish: return .publish(self.publish())
        case .pubAck:
            let reason: ReasonCode = isV5 && self.flip() ? .quotaExceeded : .success
            return .pubAck(PubAck(self.id(), reason: reason, properties: self.properties(.reasonString)))
        case .pubRec:
            let reason: ReasonCode = isV5 && self.flip() ? .noMatchingSubscribers : .success
            return .pubRec(PubRec(self.id(), reason: reason, properties: self.properties(.reasonString)))
        case .pubRel: return .pubRel(PubRel(self.id(), properties: self.properties(.reasonString)))
        case .pubComp:
            let reason: ReasonCode = isV5 && self.flip() ? .packetIdentifierNotFound : .success
            return .pubComp(PubComp(self.id(), reason: reason, properties: self.properties(.reasonString)))
        case .subscribe: return .subscribe(self.subscribe())
        case .subAck:
            let codes = (0...self.number(0...200)).map { _ in UInt8(self.number(0...2)) }
            return .subAck(SubAck(self.id(), codes: codes, properties: self.properties(.reasonString)))
        case .unsubscribe:
            let filters = (0...self.number(0...5)).map { _ in self.filter() }
            return .unsubscribe(Unsubscribe(self.id(), filters: filters, properties: self.properties()))
        case .unsubAck:
            let codes: [UInt8] = isV5 ? [0, 0x11, 0x87] : []
            return .unsubAck(UnsubAck(self.id(), codes: codes, properties: self.properties(.reasonString)))
        case .pingReq: return .pingReq
        case .pingResp: return .pingResp
        case .disconnect:
            let reason: ReasonCode = isV5 && self.flip() ? .quotaExceeded : .success
            return .disconnect(Disconnect(reason: reason, properties: self.properties(.reasonString)))
        case .auth:
            let properties: Properties = [.authenticationMethod(self.text(upTo: 9)), .authenticationData([0, 0xFF])]
            return .auth(Auth(reason: .continueAuthentication, properties: properties))
        }
    }

    private mutating func connect() -> Connect {
        let username = self.flip() ? self.text(upTo: 9) : nil
        let password = username != nil && self.flip() ? self.bytes(upTo: 9) : nil
        let will = Will(
            topic: self.text(upTo: 9),
            payload: self.bytes(upTo: 200),
            qos: self.qos(),
            retain: self.flip(),
            properties: self.properties(.willDelayInterval, .contentType, .payloadFormatIndicator)
        )
        return Connect(
            version: self.version,
            clientID: self.text(upTo: 40),
            cleanStart: self.flip(),
            keepAlive: UInt16(self.number(0...65_535)),
            username: username,
            password: password,
            will: self.flip() ? will : nil,
            properties: self.properties(.receiveMaximum, .sessionExpiryInterval, .requestProblemInformation)
        )
    }

    private mutating func publish() -> Publish {
        let qos = self.qos()
        let size = [0, 10, 100, 130, 16_500].randomElement(using: &self.generator) ?? 0
        var properties = self.properties(.messageExpiryInterval, .contentType, .correlationData, .topicAlias)
        if self.side == .server, self.version == .v5, self.flip() { properties.subscriptionIdentifiers = [1, 300] }
        return Publish(
            topic: self.text(upTo: 40),
            payload: ByteBuffer(bytes: [UInt8](repeating: UInt8(self.number(0...255)), count: size)),
            qos: qos,
            retain: self.flip(),
            dup: qos != .atMostOnce && self.flip(),
            packetID: qos == .atMostOnce ? nil : self.id(),
            properties: properties
        )
    }

    private mutating func subscribe() -> Subscribe {
        let isV5 = self.version == .v5
        let subscriptions = (0...self.number(0...5)).map { _ in
            Subscription(
                filter: self.filter(),
                qos: self.qos(),
                noLocal: isV5 && self.flip(),
                retainAsPublished: isV5 && self.flip(),
                retainHandling: isV5 && self.flip() ? .doNotSend : .send
            )
        }
        return Subscribe(self.id(), subscriptions, properties: self.properties(.subscriptionIdentifier))
    }
}
