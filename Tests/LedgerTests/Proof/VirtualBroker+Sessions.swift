import Ledger
import TestSupport

// Coming and going.
extension VirtualBroker {
    mutating func leave(_ client: Int) {
        // A part of what is under way still comes through.
        self.handle(client, most: .random(in: 0...3, using: &self.dice))
        let isOrderly = self.dice.hits(0.4)
        if isOrderly {
            self.handle(client, most: .max)
            self.answer(client, most: .max)
        }
        self.deliver(client, most: .random(in: 0...3, using: &self.dice))
        self.confirm(client, isOrderly ? .confirmed : .broken)
        self.run.log.append(.left(client: client, visit: self.clients[client].visit))
        var state = self.clients[client]
        state.isConnected = false
        state.awaySince = self.step
        state.returnsAt = self.step + Int.random(in: 1...8, using: &self.dice)
        state.uplink = []
        state.answers = []
        var again: [Copy] = []
        for var copy in state.unacknowledged + state.wire where copy.qos > 0 && !copy.isStored {
            // A client knows a message of QoS 2 by its packet identifier.
            if copy.qos == 2, copy.hasArrived { continue }
            copy.isRedelivery = true
            again.append(copy)
        }
        (state.wire, state.unacknowledged, state.queue) = ([], [], again)
        self.clients[client] = state
        if !self.plan.group(of: client).keepsSessions { self.endSession(client) }
    }

    /// The server drops a session.
    mutating func endSession(_ client: Int) {
        let copies = self.clients[client].queue
        self.clients[client].queue = []
        self.clients[client].hasSession = false
        self.clients[client].isSubscribed = false
        self.clients[client].taken = []
        guard let share = self.plan.group(of: client).share else { return }
        for copy in copies where copy.qos == 1 && self.plan.redistributes {
            _ = self.send(copy.message, toShare: share, self.plan.shares[share])
        }
        if !self.plan.group(of: client).keepsSessions { self.letGo(client, of: share) }
    }

    /// The harness knows that the server has let a member of a share group go.
    mutating func letGo(_ client: Int, of share: Int) {
        guard self.shares[share].known.remove(client) != nil else { return }
        self.run.features.insert(.shareChurn)
        self.tell(.share(share), VirtualRun.memberVisit(client, self.clients[client].visit), .closed)
        guard self.shares[share].known.isEmpty else { return }
        self.tell(.share(share), UInt64(self.shares[share].visit), .left, isTogether: true)
    }

    mutating func connect(_ client: Int) {
        let group = self.plan.group(of: client)
        let isFirst = self.clients[client].visit < 0
        var wasLost = false
        if !isFirst, group.keepsSessions, self.clients[client].hasSession {
            if self.step - self.clients[client].awaySince > group.expiry {
                self.run.features.insert(.sessionExpired)
                self.endSession(client)
                if let share = group.share { self.letGo(client, of: share) }
            } else if self.dice.hits(self.plan.losesSessions) {
                self.run.features.insert(.sessionLost)
                self.endSession(client)
                wasLost = true
            }
        }
        if !isFirst, !group.keepsSessions { self.run.features.insert(.cleanSession) }
        let isPresent = self.clients[client].hasSession
        self.clients[client].visit += 1
        self.clients[client].isConnected = true
        self.clients[client].hasSession = true
        self.clients[client].isResumed = isPresent
        if isPresent { self.run.features.insert(.keptSession) }
        self.sendAgain(client, isPresent: isPresent)
        if isPresent { self.resume(client) } else { self.subscribe(client, isFirst: isFirst, wasLost: wasLost) }
    }

    /// A publisher sends messages without an acknowledgement again.
    mutating func sendAgain(_ client: Int, isPresent: Bool) {
        let group = self.plan.group(of: client)
        let again = self.clients[client].inFlight.filter {
            isPresent || self.run.messages[$0].qos == 1 && group.resends
        }
        self.clients[client].inFlight = again
        self.clients[client].uplink = again
        for message in again { self.run.messages[message].isResent = true }
        if !again.isEmpty { self.run.features.insert(.resend) }
    }

    mutating func resume(_ client: Int) {
        let visit = self.clients[client].visit
        var queue = self.clients[client].queue
        queue.removeAll { copy in
            let facts = self.run.messages[copy.message]
            let stream = self.plan.group(of: facts.client).streams[facts.stream]
            guard stream.expires, !copy.isRedelivery, self.step - copy.queuedAt > 2 else { return false }
            self.run.features.insert(.messageExpired)
            return true
        }
        self.clients[client].queue = []
        if self.plan.redeliversLast {
            self.clients[client].wire = queue.filter { !$0.isRedelivery } + queue.filter(\.isRedelivery)
            self.deliver(client, most: .max)
        } else {
            self.clients[client].wire = queue
        }
        guard self.clients[client].isSubscribed else { return }
        if let share = self.plan.group(of: client).share {
            self.tell(.share(share), VirtualRun.memberVisit(client, visit), .resumed)
        } else if !self.plan.group(of: client).filters.isEmpty {
            self.tell(.client(client), UInt64(visit), .resumed)
        }
    }

    mutating func subscribe(_ client: Int, isFirst: Bool, wasLost: Bool) {
        let group = self.plan.group(of: client)
        let visit = self.clients[client].visit
        guard !group.isRefused else { return }
        self.clients[client].isSubscribed = true
        self.clients[client].subscribedAt = self.step
        if let share = group.share {
            if wasLost { self.tell(.share(share), VirtualRun.memberVisit(client, visit), .beganWithoutSession) }
            self.join(client, share)
        } else if !group.filters.isEmpty {
            self.tell(.client(client), UInt64(visit), wasLost ? .beganWithoutSession : .began)
            self.settle(.client(client), UInt64(visit))
            self.sendStored(client, group)
        }
    }

    mutating func join(_ client: Int, _ share: Int) {
        let wasEmpty = self.shares[share].known.isEmpty
        self.shares[share].known.insert(client)
        guard wasEmpty else { return }
        self.shares[share].visit += 1
        self.shares[share].subscribedAt = self.step
        self.tell(.share(share), UInt64(self.shares[share].visit), .began)
        self.settle(.share(share), UInt64(self.shares[share].visit))
    }

    mutating func settle(_ target: Target, _ visit: UInt64) {
        guard self.plan.clusterDelay > 0 else { return }
        self.tell(target, visit, .settled, after: self.plan.clusterDelay)
    }

    /// Stored messages for a new subscription, unless Retain Handling is 2.
    mutating func sendStored(_ client: Int, _ group: ProofPlan.Group) {
        guard !group.retainsAsPublished else { return }
        for (topic, message) in self.retained.sorted(by: { $0.key < $1.key })
        where group.filters.contains(where: { $0.topics.contains(topic) }) {
            self.clients[client].wire.append(
                Copy(message: message, target: .client(client), qos: 0, isStored: true)
            )
        }
    }
}
