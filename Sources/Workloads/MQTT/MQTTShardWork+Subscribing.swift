import LoopContext
import MQTT
package import MQTTCodec
package import Measurement
package import NIOCore

/// The SUBSCRIBE packets of a client, one for each filter, of which one at a time is without its SUBACK.
struct SubscribeSequence {
    var rest: ArraySlice<Subscription>
    /// When the current packet is due, and whether it has yet to be written.
    var due: NIODeadline
    var isWaiting = false
    /// The codes of the packets before.
    var codes: [UInt8] = []
}

// A client between its CONNACK and its SUBACK.
extension MQTTShardWork {
    func subscribe(_ place: Int, now: NIODeadline) {
        let subscriptions = self.load.subscriptions(of: self.number(place))
        guard self.subscribesEach, subscriptions.count > 1 else {
            return self.subscribe(place, subscriptions, now: now)
        }
        self.sequences[place] = SubscribeSequence(rest: subscriptions[...], due: now)
        self.subscribeNext(place, now: now)
    }

    /// Writes the next packet of a sequence.
    func subscribeNext(_ place: Int, now: NIODeadline) {
        self.sequences[place]?.isWaiting = false
        guard let next = self.sequences[place]?.rest.popFirst() else { return }
        self.subscribe(place, [next], now: now)
    }

    /// Whether that was the last packet; else the next one is written, or waits until it is due.
    private func isSubscribed(_ place: Int, _ codes: inout [UInt8], now: NIODeadline) -> Bool {
        guard var sequence = self.sequences.removeValue(forKey: place) else { return true }
        sequence.codes += codes
        codes = sequence.codes
        guard !sequence.rest.isEmpty else { return true }
        sequence.due = self.subscribeInterval.map { sequence.due + $0 } ?? now
        sequence.isWaiting = sequence.due > now
        self.sequences[place] = sequence
        if sequence.isWaiting {
            self.wantsTimer(place, at: sequence.due)
        } else {
            self.subscribeNext(place, now: now)
        }
        return false
    }

    private func subscribe(_ place: Int, _ subscriptions: [Subscription], now: NIODeadline) {
        self.clients[place].own.subscribeSent = now
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
        let due = self.sequences[place]?.due ?? self.clients[place].own.subscribeSent
        self.meter.record(self.metrics.subscribe, (now - due).nanoseconds)
        var codes = codes
        guard self.isSubscribed(place, &codes, now: now) else { return }
        self.noteGranted(place, codes)
        self.handlePresent(place, resumed: false, now: now)
        self.markUp(place, now: now)
    }

    package func recordNotUp(_ place: Int, as end: UnansweredEnd) {
        guard self.isSubscribing(place) else { return }
        guard let sequence = self.sequences[place] else {
            let age = self.age(since: self.clients[place].own.subscribeSent, end)
            return self.meter.recordUnanswered(self.metrics.subscribe, age, lane: MetricLane.measured, as: end)
        }
        // With a pace the later packets were due by their own times.
        var due = sequence.due
        for _ in 0...(self.subscribeInterval == nil ? 0 : sequence.rest.count) where due <= self.context.now {
            self.meter.recordUnanswered(
                self.metrics.subscribe,
                self.age(since: due, end),
                lane: MetricLane.measured,
                as: end
            )
            due = due + (self.subscribeInterval ?? .zero)
        }
    }

    /// The client cannot take part in the load, now or later.
    func refuse(_ place: Int, _ kind: String, _ words: String) {
        self.error(kind, words)
        self.clients[place].attempts = .max
        self.clients[place].connection?.abort()
    }
}
