import Ledger
import TestSupport

// The end of the run.
extension VirtualBroker {
    mutating func end() {
        self.step += 1_000
        self.tellLoops()
        let connected = self.clients.indices.filter { self.clients[$0].isConnected }
        let ending = self.plan.ending
        let unheard = ending == .publishes ? self.some(connected) : []
        let unreached = ending == .deliveries ? self.some(connected) : []
        for _ in 0..<2 {
            for client in connected {
                self.handle(client, most: self.most(if: ending == .anything || unheard.contains(client)))
                if unheard.contains(client) { continue }
                self.answer(client, most: self.most(if: ending == .anything))
            }
            for client in connected {
                self.deliver(client, most: self.most(if: ending == .anything || unreached.contains(client)))
                self.acknowledge(client, most: .max)
            }
        }
        for (client, state) in self.clients.enumerated() where state.visit >= 0 {
            if state.isConnected {
                self.leaveForGood(client, isAnswered: !unheard.contains(client) && state.uplink.isEmpty)
            } else {
                self.run.absent[client] = state.visit
            }
            // A server that hands over the last message answers the probe that follows it.
            if !state.isConnected || !state.wire.isEmpty || unheard.contains(client) {
                self.run.ending.unproved.insert(client)
            }
        }
        for (share, state) in self.shares.enumerated() where state.visit >= 0 && state.known.isEmpty {
            self.run.empty[share] = state.visit
        }
        self.probe()
    }

    private mutating func some(_ clients: [Int]) -> Set<Int> {
        Set(clients.filter { _ in self.dice.hits(0.4) })
    }

    private mutating func most(if isFew: Bool) -> Int { isFew ? .random(in: 0...3, using: &self.dice) : .max }

    /// The run ends the client's connection: what has no answer now is outstanding.
    private mutating func leaveForGood(_ client: Int, isAnswered: Bool) {
        self.confirm(client, isAnswered ? .confirmed : .outstanding)
        for message in self.clients[client].inFlight { self.run.messages[message].isOutstanding = true }
    }

    /// The harness probes the receivers, often at the first moment that is late enough or just before it.
    private mutating func probe() {
        self.run.ending.longest = [0, 300_000_000, 2_500_000_000].randomElement(using: &self.dice) ?? 0
        let enough = max(1_000_000_000, self.run.ending.longest)
        if self.plan.ending != .anything, self.dice.hits(0.75) {
            self.run.ending.quiet = enough + (self.dice.hits(0.5) ? 0 : .random(in: 0...enough, using: &self.dice))
        } else if self.dice.hits(0.7) {
            self.run.ending.quiet = self.dice.hits(0.5) ? enough - 1 : .random(in: -enough..<enough, using: &self.dice)
        }
    }
}
