import MQTT
package import MQTTCodec
package import Measurement
package import NIOCore

// A client between its CONNACK and its SUBACK.
extension MQTTShardWork {
    func subscribe(_ place: Int, now: NIODeadline) {
        self.clients[place].own.subscribeSent = now
        let subscriptions = self.load.subscriptions(of: self.number(place))
        let properties = self.load.subscribeOptions.properties
        if self.clients[place].connection?.subscribe(subscriptions, properties: properties) == nil {
            self.refuse(place, "suback", "no packet identifier is free, or the server takes no SUBSCRIBE so large")
        }
        self.wantsTimer(place, at: now + self.sessions[place].options.ackTimeout)
    }

    package func subscribed(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        if self.takesTurn(place, id, codes: codes, now: now) { return }
        // It answers a churn subscription that was given up.
        guard self.clients[place].stage == .connecting else { return }
        if let code = codes.first(where: { $0 >= 0x80 }) {
            let words = "SUBACK refused: \(Self.name(of: code))"
            return self.refuse(place, "suback 0x" + String(code, radix: 16), words)
        }
        self.meter.record(self.metrics.subscribe, (now - self.clients[place].own.subscribeSent).nanoseconds)
        self.noteGranted(place, codes)
        self.handlePresent(place, resumed: false, now: now)
        self.markUp(place, now: now)
    }

    package func recordNotUp(_ place: Int, as end: UnansweredEnd) {
        guard self.isSubscribing(place) else { return }
        let age = self.age(since: self.clients[place].own.subscribeSent, end)
        self.meter.recordUnanswered(self.metrics.subscribe, age, lane: MetricLane.measured, as: end)
    }

    /// The client cannot take part in the load, now or later.
    func refuse(_ place: Int, _ kind: String, _ words: String) {
        self.error(kind, words)
        self.clients[place].attempts = .max
        self.clients[place].connection?.abort()
    }
}
