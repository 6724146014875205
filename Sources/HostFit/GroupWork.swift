/// The clients of one group in one part of a plan, as far as they cost their host something.
package struct GroupWork: Hashable, Sendable {
    package enum Speech: Sendable {
        case mqtt
        case xmpp
    }

    /// Messages of one kind, in open loop.
    package struct Flow: Hashable, Sendable {
        /// Messages per second of all clients: the highest, and the mean of the whole load.
        package var peak: Double
        package var mean: Double
        package var qos: UInt8
        /// How often each message comes to clients of the run.
        package var deliveries: Double
        /// That of its deliveries.
        package var deliveredQoS: UInt8
        /// Bytes of a payload, on average.
        package var size: Double
        /// Topics that keep the last message.
        package var retained = 0.0
        /// Whether the server itself answers it.
        package var isPing = false

        package init(peak: Double, mean: Double? = nil, qos: UInt8 = 0, deliveries: Double = 0, size: Double = 0) {
            self.peak = peak
            self.mean = mean ?? peak
            self.qos = qos
            self.deliveredQoS = qos
            self.size = size
            self.deliveries = deliveries
        }
    }

    package var speech = Speech.mqtt
    package var clients: Int
    package var hasTLS = false
    /// Connects per second; `nil`: as fast as they succeed.
    package var connectRate: Double?
    package var flows: [Flow] = []
    /// Whether its clients send as fast as they can: no rate is known.
    package var isClosedLoop = false
    /// Seconds after which a silent client pings; `nil`: never.
    package var keepAlive: Double?
    /// Bytes per client beside those of every client.
    package var ownBytes: UInt64 = 0

    package init(clients: Int) { self.clients = clients }
}

/// The CPU that event loops need in a second.
struct LoopWork: Hashable, Sendable {
    /// Cores of loops that never sleep.
    var busy = 0.0
    /// Events per second that wake a loop if it sleeps.
    var events = 0.0

    /// The cores that the work takes on as many `places` for loops.
    ///
    /// The busier a loop, the more events it finds awake: a share b + n × w × (1 − u) = u, with the wake-up's cost w.
    func cores(places: Double, wakeup: Double) -> Double {
        guard places > 0 else { return self.busy }
        let wakes = self.events / places * wakeup / 1e6
        return places * (self.busy / places + wakes) / (1 + wakes)
    }

    static func + (left: LoopWork, right: LoopWork) -> LoopWork {
        LoopWork(busy: left.busy + right.busy, events: left.events + right.events)
    }
}

extension ClientCosts {
    /// Resident bytes of a client in this process.
    func bytes(_ group: GroupWork) -> UInt64 {
        self.client + (group.speech == .xmpp ? self.stream : 0) + (group.hasTLS ? self.tls : 0) + group.ownBytes
    }

    /// The connects of a second at a rate, with the ends of as many clients.
    func connects(_ group: GroupWork, rate: Double) -> LoopWork {
        let one = (group.speech == .xmpp ? self.login : self.connect) + (group.hasTLS ? self.handshake : 0)
        return LoopWork(busy: rate * one / 1e6, events: rate * self.connectEvents)
    }

    /// A second of a group's load; `rate` is the messages per second of a flow.
    func load(_ group: GroupWork, _ rate: (GroupWork.Flow) -> Double) -> LoopWork {
        let clients = Double(group.clients)
        var work = LoopWork(busy: clients * self.idle / 1e6)
        let sends = group.flows.reduce(0) { $0 + rate($1) }
        // A client that publishes more often has no need of a ping.
        if let seconds = group.keepAlive, sends * seconds < clients {
            work.busy += clients / seconds * (self.ping + (group.hasTLS ? 2 * self.record : 0)) / 1e6
        }
        for flow in group.flows {
            let one = self.message(flow, in: group)
            work = work + LoopWork(busy: one.busy * rate(flow), events: one.events * rate(flow))
        }
        return work
    }

    /// One message, with its acknowledgements and deliveries.
    private func message(_ flow: GroupWork.Flow, in group: GroupWork) -> LoopWork {
        let record = group.hasTLS ? self.record : 0
        // Packets of one end of a flow beside the message: none, PUBACK, PUBREC with PUBREL and PUBCOMP.
        let steps = group.speech == .xmpp ? 0 : Double(min(flow.qos, 2))
        let sent = group.speech == .xmpp ? self.stanza : self.sent
        let came = group.speech == .xmpp ? self.stanza : self.delivered
        let sending = sent + record + steps * (self.answer + record) + max(0, steps - 1) * (self.sent + record)
        let receiving =
            came + record + steps * (self.acknowledged + record) + max(0, steps - 1) * (self.answer + record)
        // The steps of an acknowledgement follow each other closely, and all copies of a message come at once.
        let events = 1 + min(1, steps) + min(1, flow.deliveries)
        return LoopWork(busy: (sending + flow.deliveries * receiving) / 1e6, events: events)
    }
}
