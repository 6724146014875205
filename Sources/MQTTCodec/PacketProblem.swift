import NIOCore

/// Why a packet should not be sent: what strict validation finds before anything leaves.
///
/// The encoders do not look at it, so that a load plan can send wrong packets on purpose.
package enum PacketProblem: Error, Hashable, Sendable {
    /// An empty client identifier: never in 3.1, only with clean session in 3.1.1 [3.1.1: MQTT-3.1.3-8].
    case clientIDEmpty
    /// Over 65,535 bytes, or over 23 characters in 3.1 (3.1 §3.1).
    case clientIDTooLong(Int)
    /// U+0000 in a string [MQTT-1.5.4-2].
    case nullCharacter
    case userNameTooLong(Int)
    case passwordTooLong(Int)
    /// Allowed in 5.0 [3.1.1: MQTT-3.1.2-22].
    case passwordWithoutUserName
    case willTopic(TopicError)
    case willPayloadTooLong(Int)
    /// An empty topic is fine in 5.0 with a topic alias.
    case topic(TopicError)
    case packetIDMissing
    case packetIDAtQoS0
    case dupAtQoS0
    case noFilters
    case filter(TopicError)
    case noLocalOnShared
    /// Options that 3.x has no bits for.
    case optionsBeforeVersion5
    /// Properties in a 3.x packet.
    case propertiesBeforeVersion5
    /// The error that the other side's decoder would report for the properties.
    case properties(DecodeError)
    /// A remaining length over 268,435,455, or more than the server takes [MQTT-3.2.2-15].
    case tooLarge(size: Int, limit: Int)
}

extension PacketProblem {
    /// The largest packet there is: four bytes of remaining length.
    package static let largestPacket = 268_435_460

    /// Whether a whole packet may go out; only one that can be too large is encoded to see.
    ///
    /// - Parameters:
    ///   - packet: the packet.
    ///   - version: of the connection.
    ///   - body: bytes that it has at least; `nil` if that is not known.
    ///   - limit: the server's maximum packet size.
    /// - Returns: what is wrong with it, if something is.
    package static func size(
        of packet: Packet,
        as version: ProtocolVersion,
        body: Int? = nil,
        limit: Int = Self.largestPacket
    ) -> PacketProblem? {
        // Everything except the payload is at most one topic, and properties far below the limit.
        if let body, limit == Self.largestPacket, body < 1 << 26 { return nil }
        if let body, body > limit { return Self.size(body, limit: limit) }
        var buffer = ByteBuffer()
        packet.encode(as: version, into: &buffer)
        return Self.size(buffer.readableBytes, limit: limit)
    }

    /// Whether `size` bytes of a whole packet may go out; `limit` is the server's maximum packet size.
    package static func size(_ size: Int, limit: Int = Self.largestPacket) -> PacketProblem? {
        size > min(limit, Self.largestPacket) ? .tooLarge(size: size, limit: min(limit, Self.largestPacket)) : nil
    }
}

extension Connect {
    /// The first rule that this packet breaks, if it breaks one.
    package func problem() -> PacketProblem? {
        let idLength = self.clientID.utf8.count
        switch self.version {
        case .v31 where idLength == 0: return .clientIDEmpty
        case .v31 where self.clientID.count > 23: return .clientIDTooLong(idLength)
        case .v311 where idLength == 0 && !self.cleanStart: return .clientIDEmpty
        default: break
        }
        if idLength > UInt16.max { return .clientIDTooLong(idLength) }
        if self.clientID.utf8.contains(0) { return .nullCharacter }
        if let username = self.username {
            if username.utf8.count > UInt16.max { return .userNameTooLong(username.utf8.count) }
            if username.utf8.contains(0) { return .nullCharacter }
        }
        if let password = self.password {
            if password.count > UInt16.max { return .passwordTooLong(password.count) }
            if self.username == nil, self.version != .v5 { return .passwordWithoutUserName }
        }
        return self.will?.problem(as: self.version)
            ?? self.properties.problem(in: .connect, as: self.version)
    }
}

extension Will {
    fileprivate func problem(as version: ProtocolVersion) -> PacketProblem? {
        do {
            try TopicName.validate(self.topic)
        } catch {
            return .willTopic(error)
        }
        if self.payload.count > UInt16.max { return .willPayloadTooLong(self.payload.count) }
        return self.properties.problem(in: .will, as: version)
    }
}

extension Publish {
    /// The first rule that this packet breaks, if it breaks one.
    ///
    /// `packetID` is `false` if the session will assign the identifier.
    package func problem(as version: ProtocolVersion, toServer: Bool = true, packetID: Bool = true) -> PacketProblem? {
        let aliased = version == .v5 && self.topic.isEmpty && self.properties.topicAlias != nil
        if !aliased {
            do {
                try TopicName.validate(self.topic)
            } catch {
                return .topic(error)
            }
        }
        if self.qos == .atMostOnce {
            if self.packetID != nil { return .packetIDAtQoS0 }
            if self.dup { return .dupAtQoS0 }
        } else if packetID, self.packetID == nil {
            return .packetIDMissing
        }
        return self.properties.problem(in: toServer ? .publishToServer : .publishToClient, as: version)
            ?? PacketProblem.size(of: .publish(self), as: version, body: self.payload.readableBytes)
    }
}

extension Subscribe {
    /// The first rule that this packet breaks, if it breaks one.
    package func problem(as version: ProtocolVersion) -> PacketProblem? {
        if self.subscriptions.isEmpty { return .noFilters }
        for subscription in self.subscriptions {
            do {
                let filter = try TopicFilter(validating: subscription.filter)
                if filter.share != nil, subscription.noLocal { return .noLocalOnShared }
            } catch {
                return .filter(error)
            }
            let plain = Subscription(filter: subscription.filter, qos: subscription.qos)
            if version != .v5, subscription != plain { return .optionsBeforeVersion5 }
        }
        return self.properties.problem(in: .subscribe, as: version)
    }
}

extension Unsubscribe {
    /// The first rule that this packet breaks, if it breaks one.
    package func problem(as version: ProtocolVersion) -> PacketProblem? {
        if self.filters.isEmpty { return .noFilters }
        for filter in self.filters {
            do {
                _ = try TopicFilter(validating: filter)
            } catch {
                return .filter(error)
            }
        }
        return self.properties.problem(in: .unsubscribe, as: version)
    }
}

extension Properties {
    /// The error that a peer's decoder would report for these properties.
    package func problem(in scope: PropertyScope, as version: ProtocolVersion) -> PacketProblem? {
        if self.isEmpty { return nil }
        if version != .v5 { return .propertiesBeforeVersion5 }
        var buffer = ByteBuffer()
        self.encode(into: &buffer)
        return buffer.withUnsafeReadableBytes { bytes -> PacketProblem? in
            do throws(DecodeError) {
                var reader = ByteReader(bytes)
                _ = try reader.validatedProperties(scope)
                return nil
            } catch {
                return .properties(error)
            }
        }
    }
}
