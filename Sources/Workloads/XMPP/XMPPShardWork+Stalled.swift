import LoadEngine
import LoopContext
import Measurement
import NIOCore
import XMPP

// Clients in closed loop that would wait forever.
extension XMPPShardWork {
    /// Checks once a second for clients whose stanza has not reached all receivers within `--ack-timeout`, and for
    /// clients that will never have a receiver.
    func checkStalled(_ now: NIODeadline) {
        guard let groups = self.groups, !self.load.isOpenLoop, self.shard.phase == .loading else { return }
        for place in 0..<self.places.count where self.clients[place].stage == .up {
            if groups.isAlone(place, self.load.work) {
                self.checkAlone(place, groups)
            } else if self.clients[place].own.credit <= 0, now - groups.members[place].sentAt > self.load.ackTimeout {
                self.giveUp(place, groups, now: now)
            }
        }
    }

    private func giveUp(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        let count = self.giveUpFlights(place, groups, as: .failed)
        guard count > 0 else { return }
        for _ in 0..<count {
            self.error("fan-out timeout", "a stanza did not reach all receivers within the acknowledgement timeout")
        }
        self.clients[place].own.credit = Int32(clamping: self.load.window)
        self.shard.markAble(place, at: now)
    }

    private func checkAlone(_ place: Int, _ groups: XMPPGroups) {
        let seat = groups.seat(place)
        let nobodyComes = (0..<groups.size).allSatisfy { member in
            let other = groups.place(group: seat.group, member: member)
            return other == place || self.clients[other].stage == .idle && self.clients[other].attempts == .max
        }
        guard nobodyComes else { return }
        self.error("no contacts", "none of a client's contacts came up, so it had no receiver")
        self.clients[place].connection?.abort()
    }
}
