// The decoder's code outside the hot path.

extension PacketDecoder {
    @usableFromInline
    mutating func firstByteProblem(_ first: UInt8) -> DecodeError? {
        guard let type = PacketType(rawValue: first >> 4) else { return .packetTypeZero }
        if self.awaitsConnect {
            if type != .connect { return .connectExpected(type) }
        } else if let problem = self.typeProblem(type) {
            return problem
        }
        let flags = first & 0x0F
        switch type {
        case .publish:
            if flags & 0b0110 == 0b0110 { return .publishQoS3 }
            return flags & 0b1110 == 0b1000 ? .dupAtQoS0 : nil
        case .pubRel, .subscribe, .unsubscribe:
            // 3.1 §2.1 lets a sender mark the repetition of these too.
            let checked = self.version == .v31 ? flags & 0b0111 : flags
            return checked == type.reservedFlags ? nil : .reservedFlags(type, flags)
        default:
            return flags == 0 ? nil : .reservedFlags(type, flags)
        }
    }

    private func typeProblem(_ type: PacketType) -> DecodeError? {
        switch type {
        case .connect: self.isServer ? .secondConnect : .wrongDirection(type)
        case .publish, .pubAck, .pubRec, .pubRel, .pubComp: nil
        case .subscribe, .unsubscribe, .pingReq: self.isServer ? nil : .wrongDirection(type)
        case .connAck, .subAck, .unsubAck, .pingResp: self.isServer ? .wrongDirection(type) : nil
        case .disconnect: self.isServer || self.version == .v5 ? nil : .wrongDirection(type)
        case .auth: self.version == .v5 ? nil : .authBeforeVersion5
        }
    }

    /// The remaining length in any number of bytes.
    @usableFromInline
    mutating func longHeader(
        _ packet: UnsafeRawPointer,
        available: Int
    ) throws(DecodeError) -> (header: Int, size: Int) {
        var length = 0
        for index in 1...4 {
            if index >= available { return (0, 0) }
            let byte = (packet + index).load(as: UInt8.self)
            length |= Int(byte & 0x7F) << (7 * (index - 1))
            if byte & 0x80 != 0 { continue }
            if byte == 0, index > 1, self.version == .v5 { throw .remainingLengthNotMinimal }
            let size = 1 + index + length
            if size > self.maximumPacketSize { throw .packetTooLarge(size: size) }
            return (1 + index, size)
        }
        throw .remainingLengthTooLong
    }

    /// Adds bytes to the carry until it has all of the remaining length, and with it the packet's size.
    ///
    /// - Returns: how many it took.
    @usableFromInline
    mutating func carryHeader(_ base: UnsafeRawPointer, _ count: Int) throws(DecodeError) -> Int {
        var offset = 0
        while self.carry.needed == 0, offset < count {
            self.carry.append(base + offset, count: 1)
            offset += 1
            guard let packet = self.carry.bytes.baseAddress else { continue }
            (_, self.carry.needed) = try self.longHeader(packet, available: self.carry.count)
        }
        return offset
    }

    @usableFromInline
    mutating func publishProperties(
        _ bytes: UnsafeRawBufferPointer,
        offset: Int
    ) throws(DecodeError) -> (properties: UnsafeRawBufferPointer, payloadOffset: Int, hasAlias: Bool) {
        var reader = self.reader(bytes)
        let (properties, seen) = try reader.validatedProperties(self.isServer ? .publishToServer : .publishToClient)
        return (properties, offset + bytes.count - reader.rest.count, seen & PropertyID.topicAlias.bit != 0)
    }

    /// A topic that is not plain ASCII, or empty, or wrong.
    @usableFromInline
    mutating func checkTopic(_ topic: UnsafeRawBufferPointer, hasAlias: Bool) throws(DecodeError) {
        if topic.isEmpty {
            if hasAlias { return }
            throw .topicEmpty
        }
        try Text.check(topic, refusesControlCharacters: self.refusesControlCharacters)
        if TopicName.problem(topic) != nil { throw .topicHasWildcard }
    }

    /// Whether a topic, not empty, breaks no rule.
    @usableFromInline
    mutating func passes(_ topic: UnsafeRawBufferPointer) -> Bool {
        do {
            try self.checkTopic(topic, hasAlias: false)
            return true
        } catch {
            return false
        }
    }

    /// An acknowledgement with more than its packet identifier: reason, then perhaps properties (§3.4.2).
    @usableFromInline
    mutating func longAcknowledgement(
        _ type: PacketType,
        _ body: UnsafeRawBufferPointer
    ) throws(DecodeError) -> (reason: UInt8, properties: UnsafeRawBufferPointer) {
        guard self.version == .v5 else { throw .trailingBytes(body.count - 2) }
        let reason = body[2]
        if reason != 0 { try ReasonCode.check(reason, in: type, toServer: self.isServer) }
        // §3.4.2.2.1: no property length at all when the remaining length is below 4.
        if body.count == 3 { return (reason, .none) }
        var reader = self.reader(UnsafeRawBufferPointer(rebasing: body[3...]))
        let (properties, _) = try reader.validatedProperties(.acknowledgement)
        try reader.expectEnd()
        return (reason, properties)
    }

    @usableFromInline
    mutating func control(
        _ first: UInt8,
        _ body: UnsafeRawBufferPointer,
        hasMinimalLength: Bool
    ) throws(DecodeError) -> Packet {
        var reader = self.reader(body)
        let version = self.version
        switch PacketType(rawValue: first >> 4) {
        case .connect:
            // Known from here on, so that the answer to a broken CONNECT has the form of its version.
            self.version = try Connect.version(&reader)
            // Which rule the length falls under was not known before.
            if self.version == .v5, !hasMinimalLength { throw .remainingLengthNotMinimal }
            let connect = try Connect(&reader, version: self.version)
            self.awaitsConnect = false
            // Until CONNACK an authentication exchange takes small packets alone (MQTT 5 §3.1.2.11.9).
            if self.laterMaximum > self.maximumPacketSize, connect.properties.authenticationMethod == nil {
                self.takesLarger()
            }
            return .connect(connect)
        case .connAck:
            self.takesLarger()
            return .connAck(try ConnAck(&reader, version: version))
        case .subscribe: return .subscribe(try Subscribe(&reader, version: version))
        case .subAck: return .subAck(try SubAck(&reader, version: version))
        case .unsubscribe: return .unsubscribe(try Unsubscribe(&reader, version: version))
        case .unsubAck: return .unsubAck(try UnsubAck(&reader, version: version))
        case .disconnect: return .disconnect(try Disconnect(&reader, version: version, toServer: self.isServer))
        case .auth: return .auth(try Auth(&reader, toServer: self.isServer))
        case .pingReq:
            try reader.expectEnd()
            return .pingReq
        case .pingResp:
            try reader.expectEnd()
            return .pingResp
        case .publish, .pubAck, .pubRec, .pubRel, .pubComp, nil:
            throw .packetTypeZero
        }
    }

    private func reader(_ bytes: UnsafeRawBufferPointer) -> ByteReader {
        ByteReader(bytes, refusesControlCharacters: self.refusesControlCharacters)
    }
}
