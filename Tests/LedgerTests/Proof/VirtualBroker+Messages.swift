import Ledger
import TestSupport

// Publishing.
extension VirtualBroker {
    mutating func publish(_ client: Int) {
        for (number, stream) in self.plan.group(of: client).streams.enumerated() {
            guard self.dice.hits(0.45), let message = self.create(client, number, stream) else { continue }
            self.clients[client].uplink.append(message)
            if stream.qos == 0 {
                self.clients[client].confirmable.append(message)
            } else {
                self.clients[client].inFlight.append(message)
            }
        }
    }

    mutating func create(_ client: Int, _ number: Int, _ stream: ProofPlan.Stream) -> Int? {
        guard let topic = stream.topics.randomElement(using: &self.dice) else { return nil }
        let message = self.run.messages.count
        self.run.messages.append(
            VirtualRun.Message(client: client, stream: number, topic: topic, qos: stream.qos, sent: self.run.log.count)
        )
        self.run.log.append(.sent(message: message))
        return message
    }

    /// A message that was due while its publisher was away may have a number and never be written.
    mutating func isAway(_ client: Int) {
        for (number, stream) in self.plan.group(of: client).streams.enumerated() where self.dice.hits(0.03) {
            guard let message = self.create(client, number, stream) else { continue }
            self.run.messages[message].isUnsent = true
        }
        for (number, stream) in self.plan.group(of: client).streams.enumerated() where self.dice.hits(0.02) {
            guard let topic = stream.topics.randomElement(using: &self.dice) else { continue }
            self.run.neverSent.append(VirtualRun.NeverSent(client: client, stream: number, topic: topic))
        }
    }

    /// The server takes messages of a client.
    mutating func handle(_ client: Int, most: Int) {
        var left = most
        while left > 0, !self.clients[client].uplink.isEmpty {
            left -= 1
            let message = self.clients[client].uplink.removeFirst()
            let qos = self.run.messages[message].qos
            if qos == 2, !self.clients[client].taken.insert(message).inserted {
                self.clients[client].answers.append((message, false))
                continue
            }
            let hasMatched = self.route(message)
            if qos > 0 { self.clients[client].answers.append((message, !hasMatched)) }
        }
    }

    mutating func answer(_ client: Int, most: Int) {
        let answers = self.clients[client].answers.prefix(most)
        self.clients[client].answers.removeFirst(answers.count)
        for (message, isAdmitted) in answers {
            self.run.messages[message].isKnown = true
            self.run.messages[message].isAdmitted = isAdmitted
            self.clients[client].inFlight.removeAll { $0 == message }
        }
    }

    /// A publisher's connection ends.
    mutating func confirm(_ client: Int, _ fate: PublisherLedger.ConnectionFate) {
        for message in self.clients[client].confirmable {
            switch fate {
            case .confirmed: self.run.messages[message].isKnown = true
            case .outstanding: self.run.messages[message].isOutstanding = true
            case .broken: break
            }
        }
        self.clients[client].confirmable = []
        self.run.log.append(.publisherLeft(client: client, fate))
    }
}

// Routing.
extension VirtualBroker {
    mutating func route(_ message: Int) -> Bool {
        let facts = self.run.messages[message]
        if self.plan.group(of: facts.client).streams[facts.stream].isRetained { self.retained[facts.topic] = message }
        var hasMatched = false
        for reach in self.plan.reach[facts.topic] {
            let filters = self.plan.filters(of: reach, from: facts.client)
            if filters.isEmpty { continue }
            switch reach.target {
            case .client(let client): hasMatched = self.send(message, to: client, filters) || hasMatched
            case .share(let share): hasMatched = self.send(message, toShare: share, filters[0]) || hasMatched
            }
        }
        return hasMatched
    }

    /// Whether the route from a publisher to a subscription has spread.
    func hasRoute(from client: Int, since step: Int) -> Bool {
        self.plan.clusterDelay == 0 || self.step >= step + (client * 7 + step) % (self.plan.clusterDelay + 1)
    }

    mutating func send(_ message: Int, to client: Int, _ filters: [ProofPlan.Filter]) -> Bool {
        let state = self.clients[client]
        let facts = self.run.messages[message]
        guard state.hasSession, state.isSubscribed, self.hasRoute(from: facts.client, since: state.subscribedAt) else {
            return false
        }
        let group = self.plan.group(of: client)
        var levels = filters.map { min($0.qos, group.grant, facts.qos) }
        if !group.copiesPerFilter { levels = [levels.max() ?? 0] }
        for qos in levels {
            self.enqueue(Copy(message: message, target: .client(client), qos: qos, queuedAt: self.step), for: client)
        }
        return true
    }

    mutating func send(_ message: Int, toShare share: Int, _ filter: ProofPlan.Filter) -> Bool {
        let facts = self.run.messages[message]
        let members = self.clients.indices.filter {
            self.plan.group(of: $0).share == share && self.clients[$0].hasSession && self.clients[$0].isSubscribed
        }
        guard self.hasRoute(from: facts.client, since: self.shares[share].subscribedAt) else { return false }
        let connected = members.filter { self.clients[$0].isConnected }
        let chosen = self.dice.hits(0.85) && !connected.isEmpty ? connected : members
        guard let client = chosen.randomElement(using: &self.dice) else { return false }
        let qos = min(filter.qos, self.plan.grant(of: .share(share)), facts.qos)
        self.enqueue(Copy(message: message, target: .share(share), qos: qos, queuedAt: self.step), for: client)
        return true
    }

    mutating func enqueue(_ copy: Copy, for client: Int) {
        if self.clients[client].isConnected {
            self.clients[client].wire.append(copy)
        } else if copy.qos > 0 || self.plan.queuesAll {
            self.clients[client].queue.append(copy)
        }
    }
}

// Delivering.
extension VirtualBroker {
    mutating func deliver(_ client: Int, most: Int) {
        var left = most
        while left > 0, !self.clients[client].wire.isEmpty {
            left -= 1
            if self.mayOvertake(client), self.dice.hits(0.3) {
                self.clients[client].wire.swapAt(0, 1)
                self.deliverFirst(client)
            }
            self.deliverFirst(client)
        }
    }

    /// The server keeps order only within a topic.
    func mayOvertake(_ client: Int) -> Bool {
        let wire = self.clients[client].wire.prefix(2)
        guard wire.count == 2, !wire[0].isStored, !wire[1].isStored else { return false }
        let (one, two) = (self.run.messages[wire[0].message], self.run.messages[wire[1].message])
        return one.topic != two.topic
    }

    mutating func deliverFirst(_ client: Int) {
        var copy = self.clients[client].wire.removeFirst()
        // Without Retain As Published the flag marks a stored copy, which the harness does not count.
        if copy.isStored { return }
        copy.hasArrived = true
        self.run.log.append(
            .arrived(
                VirtualRun.Arrival(
                    message: copy.message,
                    client: client,
                    target: copy.target,
                    qos: copy.qos,
                    isRedelivery: copy.isRedelivery,
                    isResumed: self.clients[client].isResumed
                ),
                times: 1
            )
        )
        if copy.isRedelivery { self.run.features.insert(.redelivery) }
        if copy.qos > 0 { self.clients[client].unacknowledged.append(copy) }
    }

    mutating func acknowledge(_ client: Int, most: Int) {
        let count = min(most, self.clients[client].unacknowledged.count)
        self.clients[client].unacknowledged.removeFirst(count)
    }
}
