import LoadEngine
import LoopContext
import Measurement
import NIOCore

/// A sweep over the clients of a loop for the oldest operation without an end.
///
/// It is spread over turns of the loop, so that none is held up by more than some 100 µs.
struct OldestSweep {
    /// Clients and slots of windows in one turn.
    static var mostInTurn: Int { 4_096 }

    var place = 0
    var isUnderWay = false
    /// The earliest due time of the clients so far.
    var found: NIODeadline?
}

// The age of the oldest operation without an end (gauge `oldest_outstanding`).
extension ClientLife {
    /// Begins a sweep, at whose end the gauge is set: in the sample at hand, or in the next one.
    ///
    /// The end of the drain ends it: ages count until then.
    func sampleOldest() {
        guard !self.slab.sweep.isUnderWay, self.shard.drainEnded == nil else { return }
        self.slab.sweep.isUnderWay = true
        self.sweepOn()
    }

    private func sweepOn() {
        var cost = 0
        while self.slab.sweep.place < self.places.count, cost < OldestSweep.mostInTurn {
            let (due, own) = self.oldestDue(self.slab.sweep.place)
            if let due { self.slab.sweep.found = min(self.slab.sweep.found ?? due, due) }
            self.slab.sweep.place += 1
            cost += 1 + own
        }
        // After the end of the run only what is left of the loop's tasks would run it.
        guard self.slab.sweep.place >= self.places.count || self.shard.drainEnded != nil else {
            let life = NIOLoopBound(self, eventLoop: self.context.eventLoop)
            return self.context.eventLoop.execute { life.value.sweepOn() }
        }
        let age = self.slab.sweep.found.map { (self.context.now - $0).nanoseconds } ?? 0
        self.meter.set(self.metrics.traffic.oldest, Double(max(0, age)) / 1e9)
        self.slab.sweep = OldestSweep()
    }

    /// The due time of the client's oldest operation without an end: its connect, what it owes, what is in flight.
    private func oldestDue(_ place: Int) -> (NIODeadline?, cost: Int) {
        let stage = self.clients[place].stage
        // A client that has given up owes nothing that could still come.
        guard stage != .idle, stage != .finished else { return (nil, 0) }
        var (oldest, cost) = self.oldestInFlight(place)
        if let owed = self.shard.oldestOwed(place) {
            oldest = min(oldest ?? owed, owed)
            // A due time is computed from the schedule, which takes as long as some slots.
            cost += 16
        }
        let isConnecting =
            switch stage {
            case .connecting, .joining: true
            case .waiting: !self.clients[place].isLoggedIn
            default: false
            }
        if isConnecting { oldest = min(oldest ?? self.clients[place].begun, self.clients[place].begun) }
        return (oldest, cost)
    }
}
