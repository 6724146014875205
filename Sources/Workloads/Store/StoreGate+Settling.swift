import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// What becomes of a client when a commit of its flows has returned, or does not.
extension StoreGate {
    func settle(_ part: Part) {
        let place = part.place
        self.work.meter.add(self.metrics.changes, UInt64(part.changes.count))
        self.work.meter.add(self.metrics.recorded, part.records)
        let index = self.work.clients[place].own.qos == .exactlyOnce ? 1 : 0
        if part.publishes > 0, let id = self.metrics.messages[index] { self.work.meter.add(id, part.publishes) }
        if let end = part.end { self.clients[place].committed = end }
        if self.clients[place].hasFailed { return }
        for step in part.steps { self.take(step, place) }
        if !self.write(place) { self.work.clients[place].connection?.flush() }
    }

    private func take(_ step: Step, _ place: Int) {
        let connection = self.work.clients[place].connection
        switch step {
        case .release(let id, let session):
            guard session == self.clients[place].session else { return }
            // Without a connection PUBREL goes out when the session is resumed.
            guard let connection else {
                _ = self.work.sessions[place].release(id)
                return
            }
            connection.release(id, flushes: false)
        case .record(let id, let session):
            guard session == self.clients[place].session else { return }
            guard let connection else {
                // PUBREC answers the message when it comes again.
                _ = self.work.sessions[place].record(id, .success, isUp: false)
                return
            }
            connection.acknowledge(.exactlyOnce, id: id, flushes: false)
        case .complete(let id, let number):
            if number == self.clients[place].connection { connection?.complete(id, flushes: false) }
        case .send(let sequence, let id):
            self.sendQueued(place, sequence, id: id)
        }
    }

    /// The client does not go on: what it sent from here on would not survive.
    func fail(_ place: Int, _ words: String) {
        guard !self.clients[place].hasFailed else { return }
        self.clients[place].hasFailed = true
        if case let part = Int(self.clients[place].part), part >= 0 {
            // What would go on; what ends flows is still worth a try.
            self.gathered[part].changes.removeAll { if case .insert = $0 { true } else { false } }
            self.gathered[part].publishes = 0
            self.gathered[part].records = 0
            self.gathered[part].end = nil
        }
        let client = self.work.clients[place]
        switch client.stage {
        case .finished:
            self.countLate("the store failed: \(words)")
        case .connecting where !client.hasLink:
            // The connector, which would tell of the end too, is let go on until CONNACK.
            self.work.meter.error(StoreFailure.kind, at: Int64(self.context.now.uptimeNanoseconds)) {
                "the store failed: \(words)"
            }
            self.work.clients[place].attempts = .max
        default:
            self.work.refuse(place, StoreFailure.kind, "the store failed: \(words)")
        }
    }

    private func countLate(_ words: String) {
        self.work.meter.error(StoreFailure.lateKind, at: Int64(self.context.now.uptimeNanoseconds)) { words }
    }

    // MARK: - The end

    /// Whether changes of the client's flows are not stored yet.
    func isOpen(_ place: Int) -> Bool { self.clients[place].part >= 0 || self.clients[place].isUnderWay }

    /// The client is done: its connection is gone at once, and the run hears that all is over when the store is done with
    /// it too.
    func finished(_ place: Int) {
        self.work.shard.lost(place, returns: false)
        guard self.isOpen(place) else { return self.work.shard.finished(place) }
        self.clients[place].isLeaving = true
        self.leaving += 1
        self.commit()
    }

    func letGo(_ place: Int) {
        self.clients[place].isLeaving = false
        self.leaving -= 1
        self.work.shard.finished(place)
    }

    /// The run is over: nobody waits any longer for a commit that does not return.
    func abort(_ place: Int) {
        guard self.clients[place].isLeaving else { return }
        self.clients[place].hasFailed = true
        self.countLate("the store did not answer before the run was over")
        self.letGo(place)
    }
}
