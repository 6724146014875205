package import LoadEngine
import LoopContext
import MQTT
import Measurement
package import NIOCore

// Clients that the plan tells to leave, and to come back.
extension MQTTShardWork {
    /// How long a server may take to answer DISCONNECT and FIN with its own.
    static var leaveGrace: TimeAmount { .seconds(2) }

    package func depart(_ place: Int, _ cause: DeparturePlan.Cause, cuts: Bool) {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection else { return }
        let now = self.context.refresh()
        self.clients[place].stage = .leaving
        self.clients[place].begun = now
        self.clients[place].isLive = false
        self.live -= 1
        if let id = self.metrics.departures[cause] { self.meter.add(id.left) }
        if cuts { return connection.abort() }
        connection.finish()
        if self.clients[place].stage == .leaving { self.wantsTimer(place, at: now + Self.leaveGrace) }
    }

    package func departureMissed(_ place: Int, _ cause: DeparturePlan.Cause) {
        if let id = self.metrics.departures[cause] { self.meter.add(id.missed) }
    }

    package func departuresMissed(_ cause: DeparturePlan.Cause, count: UInt64) {
        if let id = self.metrics.departures[cause] { self.meter.add(id.missed, count) }
    }

    func left(_ place: Int) {
        self.clients[place].stage = .away
        self.shard.left(place)
    }

    package func reconnect(_ place: Int, due: NIODeadline) {
        // Of those who took no part at first.
        if self.clients[place].stage == .idle, self.tallies[place].connectNanoseconds == 0 {
            return self.connect(place, due: due)
        }
        guard self.clients[place].stage == .away else { return self.shard.returnEnded(place) }
        self.meter.record(self.metrics.reconnect.lag, (self.context.now - due).nanoseconds)
        self.begin(place)
    }
}
