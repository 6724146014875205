import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded

// The server's actions.
extension SessionLife {
    func receive(_ bytes: UnsafeRawBufferPointer) {
        guard self.isOpen, let pipeline = self.channel?.pipeline else { return }
        self.knowsAliases = false
        pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        pipeline.fireChannelReadComplete()
    }

    func receive(_ packet: Packet) {
        var buffer = ByteBuffer()
        packet.encode(as: self.options.version, into: &buffer)
        guard self.isOpen, let pipeline = self.channel?.pipeline else { return }
        pipeline.fireChannelRead(buffer)
        pipeline.fireChannelReadComplete()
    }

    /// Answers what has been asked, first in, first out.
    func answer(_ count: Int) {
        for _ in 0..<min(count, self.written.requests.count) { self.answerOne(0) }
    }

    /// Answers one request, in any order.
    func answerOne(_ choice: Int) {
        guard !self.written.requests.isEmpty else { return }
        let request = self.written.requests.remove(at: choice % self.written.requests.count)
        switch request {
        case .publish(let publish):
            guard let id = publish.packetID else { return }
            self.receive(publish.qos == .atLeastOnce ? .pubAck(PubAck(id)) : .pubRec(PubRec(id)))
        case .pubRel(let packet): self.receive(.pubComp(PubComp(packet.packetID)))
        case .pubRec(let packet): self.receive(.pubRel(PubRel(packet.packetID)))
        case .subscribe(let packet):
            self.receive(.subAck(SubAck(packet.packetID, codes: packet.subscriptions.map(\.qos.rawValue))))
        case .unsubscribe(let packet):
            let codes = [UInt8](repeating: 0, count: self.options.version == .v5 ? packet.filters.count : 0)
            self.receive(.unsubAck(UnsubAck(packet.packetID, codes: codes)))
        case .pingReq: self.receive(.pingResp)
        case .auth(let packet): self.sendAuth(packet.reason == .reAuthenticate ? 0 : 8)
        default: break
        }
    }

    func sendConnAck(_ argument: UInt8) {
        var answer = ConnAck(sessionPresent: argument & 1 == 1)
        if self.options.version == .v5 {
            if argument & 2 != 0 { answer.properties.receiveMaximum = UInt16(argument >> 4) + 1 }
            if argument & 4 != 0 { answer.properties.serverKeepAlive = UInt16(argument >> 4) }
            if self.authenticates, argument & 8 == 0 { answer.properties.authenticationMethod = "FUZZ" }
        }
        self.receive(.connAck(answer))
    }

    func sendPublish(_ argument: UInt8) {
        let qos = QoS.allCases[Int(argument) % 3]
        let id = qos == .atMostOnce ? nil : PacketID(rawValue: UInt16(argument >> 4) + 1)
        self.receive(.publish(Publish(topic: "s/t", qos: qos, packetID: id)))
    }

    func sendAuth(_ argument: UInt8) {
        var properties = Properties()
        if argument & 1 == 0 { properties.authenticationMethod = argument & 2 == 0 ? "FUZZ" : "OTHER" }
        if argument & 4 == 0, argument & 1 == 0 { properties.authenticationData = [argument] }
        self.receive(
            .auth(Auth(reason: argument & 8 == 0 ? .continueAuthentication : .success, properties: properties))
        )
    }

    /// A message by alias, which its owner has to see with its topic.
    func sendAliased(_ argument: UInt8) throws(Finding) {
        guard self.options.version == .v5, self.session.pointee.state == .connected else { return }
        let alias = UInt16(argument & 3) + 1
        let topic = argument & 4 == 0 ? "" : "s/\(argument >> 3)"
        let isRight = alias <= self.options.topicAliasMaximum && (!topic.isEmpty || self.aliases[alias] != nil)
        if !topic.isEmpty { self.aliases[alias] = topic }
        let count = self.observer.messages
        self.receive(.publish(Publish(topic: topic, properties: [.topicAlias(alias)])))
        guard self.knowsAliases else { return }
        if isRight, self.isOpen {
            try Finding.unless(self.observer.messages == count + 1, "an aliased message was not delivered")
            try Finding.unless(self.observer.lastTopic == self.aliases[alias], "an alias for another topic")
        } else {
            try Finding.unless(self.observer.messages == count, "a message with an alias that is none")
            try Finding.unless(!self.isOpen, "an alias that is none was passed over")
        }
    }

    func lose(_ how: UInt8) {
        guard let pipeline = self.channel?.pipeline else { return }
        switch how % 3 {
        case 0:
            pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            pipeline.fireChannelInactive()
        case 1:
            pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
            pipeline.fireChannelInactive()
        default:
            pipeline.fireChannelReadComplete()
            pipeline.fireChannelInactive()
        }
    }

    func advance(by time: TimeAmount) throws(Finding) {
        let end = self.now + time
        var left = 200
        while self.isOpen, self.observer.timer <= end {
            left -= 1
            try Finding.unless(left > 0, "timers without end")
            self.loop.advanceTime(to: max(self.now, self.observer.timer))
            self.context.refresh()
            self.observer.timer = .distantFuture
            self.connection?.timerFired(now: self.now)
            if self.isOpen, let next = self.session.pointee.deadline {
                try Finding.unless(next > self.now, "a timer that does not move")
                self.observer.timer = min(self.observer.timer, next)
            }
            try self.check()
        }
        self.loop.advanceTime(to: max(self.now, end))
        self.context.refresh()
    }
}
