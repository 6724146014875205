import DequeModule
import NIOCore

/// The subscriptions of one connection whose retained messages have not all been sent, in order.
struct RetainedDebt {
    let connection: ConnectionID
    var subscriptions = Deque<Int32>()
}

// Retained messages for new subscriptions: a part in each turn of the loop, so that other clients are served meanwhile.
//
// A message that comes meanwhile is sent as any other. The search finds neither it nor the one that it replaces.
extension Broker {
    /// Steps of all searches in one turn: about 3 ms.
    static let stepsPerTurn = 16_384

    /// Whether retained messages wait for their turn, or for their client.
    package var owesRetained: Bool { !self.debts.isEmpty }

    /// Sends the retained messages of new subscriptions, after those of older ones.
    mutating func sendRetained(to new: [Int32], on connection: ConnectionID, now: NIODeadline) {
        var debt = RetainedDebt(connection: connection)
        if let place = self.debts.firstIndex(where: { $0.connection == connection }) {
            debt = self.debts.remove(at: place)
        }
        for index in new {
            // [MQTT-3.8.4-3]: the subscription is replaced, and its search with it.
            let isOwed = self.subscriptions[Int(index)].search != nil
            self.subscriptions[Int(index)].search = self.retained.search(self.subscriptions[Int(index)].filter)
            if isOwed { continue }
            if debt.subscriptions.isEmpty, self.sendRetained(to: index, on: connection, now: now) { continue }
            debt.subscriptions.append(index)
        }
        guard !debt.subscriptions.isEmpty else { return }
        self.debts.append(debt)
        self.debtsDue = min(self.debtsDue, now + .milliseconds(1))
    }

    /// Begins a turn, in which connections get their parts round robin.
    mutating func sendOwed(now: NIODeadline) {
        self.stepsLeft = Self.stepsPerTurn
        guard self.debtsDue <= now else { return }
        for _ in 0..<self.debts.count where self.stepsLeft > 0 {
            guard var debt = self.debts.popFirst() else { break }
            while let index = debt.subscriptions.first, self.sendRetained(to: index, on: debt.connection, now: now) {
                debt.subscriptions.removeFirst()
            }
            if !debt.subscriptions.isEmpty { self.debts.append(debt) }
        }
        // With steps left all that wait do so for their clients.
        let pause = TimeAmount.milliseconds(self.stepsLeft > 0 ? 10 : 1)
        self.debtsDue = self.debts.isEmpty ? .distantFuture : now + pause
    }

    /// Drops what is owed to a connection that ends; a session that goes on keeps its searches.
    mutating func forgetDebt(of connection: ConnectionID) {
        guard let place = self.debts.firstIndex(where: { $0.connection == connection }) else { return }
        let session = self.connections[connection].session
        let owed = self.debts.remove(at: place).subscriptions
        if self.sessions[Int(session)].kept?.expiry ?? 0 > 0 { return }
        for index in owed where self.subscriptions[Int(index)].session == session {
            self.subscriptions[Int(index)].search = nil
        }
    }

    /// Sends retained messages to one subscription, as long as the turn has steps and the client takes them.
    ///
    /// - Returns: whether nothing is owed any more.
    private mutating func sendRetained(to index: Int32, on connection: ConnectionID, now: NIODeadline) -> Bool {
        let subscription = self.subscriptions[Int(index)]
        // Unsubscribed meanwhile.
        guard var search = subscription.search, subscription.session == self.connections[connection].session else {
            return true
        }
        while self.stepsLeft > 0, self.connections[connection].waitingBytes <= self.configuration.highWaterMark {
            if let message = self.retained.next(of: &search, steps: &self.stepsLeft) {
                // By what a message and its bytes take in the time of steps.
                self.stepsLeft -= 8 + message.bytes / 128
                message.aged(to: now)?.withView { view in
                    subscription.identifier.withUnsafeBytes {
                        self.send(
                            view,
                            to: connection,
                            qos: min(message.qos, subscription.qos),
                            retain: true,
                            identifiers: $0,
                            tally: Tally(kind: .retained, qos: message.qos)
                        )
                    }
                }
            } else if search.isOver {
                self.subscriptions[Int(index)].search = nil
                guard subscription.isStatistics else { return true }
                self.stepsLeft -= 512
                self.sendStatistics(to: index, now: now)
                return true
            }
        }
        self.subscriptions[Int(index)].search = search
        return false
    }
}
