import LoadEngine
import LoopContext
import Measurement
package import NIOCore
import XMPP

// Acknowledgements of stream management (XEP-0198), and the stanzas that they cover.
extension XMPPShardWork {
    /// Adds the stanzas that the stream itself has sent since the last write, answers to requests, to the list of
    /// unacknowledged writes.
    ///
    /// Called before each write and each acknowledgement.
    ///
    /// The server counts all stanzas. Otherwise each of these would confirm a message that the server does not have.
    func noteOwnStanzas(_ place: Int) {
        guard self.metrics.acknowledged != nil else { return }
        let sent = self.streams[place].stanzasSent
        let own = sent &- self.clients[place].own.counted
        self.clients[place].own.counted = sent
        // The count has decreased: stream management is off, or begins anew.
        guard own > 0, own < 1 << 31 else { return }
        self.clients[place].own.writes.append(Write(at: self.context.now, count: Int32(clamping: own), isOwn: true))
    }

    /// Adds the load's stanzas after they have been appended.
    func noteUnacknowledged(_ place: Int, count: Int, at began: NIODeadline) {
        guard self.metrics.acknowledged != nil, count > 0 else { return }
        self.clients[place].own.counted = self.streams[place].stanzasSent
        self.clients[place].own.writes.append(Write(at: began, count: Int32(count)))
    }

    package func acknowledged(_ place: Int, count: Int, now: NIODeadline) {
        guard let ids = self.metrics.acknowledged else { return }
        // Adds the stream's own stanzas first. Added later, they would precede the next write although acknowledged.
        self.noteOwnStanzas(place)
        var left = count
        var done = 0
        var known = 0
        while left > 0, done < self.clients[place].own.writes.count {
            let write = self.clients[place].own.writes[done]
            let part = min(left, Int(write.count))
            if !write.isOwn {
                self.meter.record(
                    ids.duration,
                    (now - write.at).nanoseconds,
                    count: UInt64(part),
                    lane: self.slab.times.lane(write.at)
                )
                known += part
            }
            left -= part
            self.clients[place].own.writes[done].count -= Int32(part)
            if self.clients[place].own.writes[done].count == 0 { done += 1 }
        }
        self.clients[place].own.writes.removeFirst(done)
        self.clients[place].own.acknowledged += UInt64(known)
        self.meter.add(ids.count, UInt64(known))
    }
}
