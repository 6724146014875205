import LoopContext
import MQTTCodec
import NIOCore

// What a store does not take. Nothing is sent that it should know of and does not; so what MQTT has wait for a change
// waits until it is made.
extension ClientCore {
    /// A commit has failed; the changes are tried again, in their order, with all that came behind them.
    ///
    /// What the store will never take would hold up everything behind it, also what makes room: then the changes go one
    /// by one, and the one that is refused makes way.
    func failed(_ changes: [MQTTStoreChange], _ thens: [Then], _ error: any Error) {
        let refusal = (error as? MQTTStoreError).flatMap { $0.isRefusal ? $0 : nil }
        if let refusal, changes.count == 1, changes[0] != .removeAll {
            self.singleCommits = max(0, self.singleCommits - 1)
            return self.refused(changes[0], thens[0], refusal)
        }
        self.changes = changes + self.changes
        self.thens = thens + self.thens
        if refusal != nil, changes.count > 1 {
            self.singleCommits = changes.count
        } else {
            for change in changes { self.fail(change, "\(error)") }
            self.retryAt = self.context.now + .seconds(1)
            self.tellOfStore(.everything, "\(error)")
        }
    }

    /// Who waits for a new message of ours hears of it.
    private func fail(_ change: MQTTStoreChange, _ words: String) {
        guard case .insert(let stored) = change else { return }
        if case .received = stored.stage { return }
        self.outgoing[stored.sequence]?.end(.failure(.storeFailed(words)))
    }

    /// - A new message of ours is not sent: its call has failed.
    /// - One of the server's stays without PUBREC until the store has it.
    /// - An identifier that the store does not take is given back, and the message is the next one to get another.
    /// - PUBREL and PUBCOMP wait, and what is done with is removed later.
    private func refused(_ change: MQTTStoreChange, _ then: Then, _ error: MQTTStoreError) {
        let words = "\(error)"
        switch change {
        case .insert(let stored):
            guard case .received = stored.stage else {
                return self.refused(stored, words)
            }
            // The store knows it already, which is what was wanted.
            if case .duplicate = error { return self.committed([then]) }
            self.putOff(change, then)
        case .advance(let sequence, let stage):
            // It is gone, or has gone on.
            guard self.outgoing[sequence]?.stage == stage else { return }
            switch stage {
            case .published: self.takeBack(sequence)
            case .queued, .released, .received: self.putOff(change, then)
            }
        case .remove, .forget, .removeAll: self.putOff(change, then)
        }
        self.tellOfStore(change.subject, words)
    }

    /// A message of ours that the store did not want: it has not been sent, and is not going to be.
    private func refused(_ stored: MQTTStoredMessage, _ words: String) {
        guard let outgoing = self.outgoing[stored.sequence] else { return }
        switch outgoing.stage {
        case .published(let id), .released(let id): self.session.pointee.withdraw(publish: id)
        case .queued, .received: break
        }
        if outgoing.waiter == nil { self.seed.events.send(.storeFailed(words)) }
        self.finish(stored.sequence, .failure(.storeFailed(words)), forgets: false)
    }

    /// Gives back the identifiers of all that waits for the store to know them, so that nothing is overtaken.
    private func takeBack(_ sequence: UInt64) {
        var unsent = [sequence]
        for index in self.changes.indices.reversed() {
            guard case .send(let other, let id) = self.thens[index], self.outgoing[other]?.stage == .published(id)
            else { continue }
            unsent.append(other)
            if case .insert(var stored) = self.changes[index] {
                stored.stage = .queued
                self.changes[index] = .insert(stored)
                self.thens[index] = .nothing
            } else {
                self.changes.remove(at: index)
                self.thens.remove(at: index)
            }
        }
        for sequence in unsent {
            guard case .published(let id)? = self.outgoing[sequence]?.stage else { continue }
            self.session.pointee.withdraw(publish: id)
        }
        self.requeue(unsent)
        self.retryAt = self.context.now + .seconds(1)
    }

    // MARK: Once more

    private func putOff(_ change: MQTTStoreChange, _ then: Then) {
        // What came behind it about the same message stays behind it.
        var (changes, thens): ([MQTTStoreChange], [Then]) = ([], [])
        self.refusedChanges.append((change, then))
        for (later, its) in zip(self.changes, self.thens) {
            if self.joinsRefused(later, its) { continue }
            changes.append(later)
            thens.append(its)
        }
        (self.changes, self.thens) = (changes, thens)
        self.refusedAgainAt = min(self.refusedAgainAt, self.context.now + .seconds(1))
    }

    /// Whether a change has to wait for one that the store refused, or takes its place.
    func joinsRefused(_ change: MQTTStoreChange, _ then: Then) -> Bool {
        if self.refusedChanges.isEmpty { return false }
        switch change {
        case .remove(let sequence):
            self.refusedChanges.removeAll {
                if case .advance(sequence, _) = $0.change { true } else { false }
            }
        case .advance(let sequence, .published):
            // It was in the queue, and goes on now: to wait would have those behind it overtake it ([MQTT-4.6.0-1]).
            self.refusedChanges.removeAll {
                if case .advance(sequence, .queued) = $0.change { true } else { false }
            }
        case .forget(let id):
            self.refusedChanges.removeAll {
                if case .insert(let stored) = $0.change { stored.stage == .received(id) } else { false }
            }
        case .insert, .advance, .removeAll: break
        }
        guard self.refusedChanges.contains(where: { $0.change.subject == change.subject }) else { return false }
        self.refusedChanges.append((change, then))
        return true
    }

    func takeUpRefused() {
        self.refusedAgainAt = .distantFuture
        let again = self.refusedChanges
        self.refusedChanges = []
        self.changes += again.map(\.change)
        self.thens += again.map(\.then)
    }

    // MARK: Telling

    private func tellOfStore(_ subject: MQTTStoreChange.Subject, _ words: String) {
        if self.toldOfStore.insert(subject).inserted { self.seed.events.send(.storeFailed(words)) }
    }

    func storeTook(_ changes: [MQTTStoreChange]) {
        if self.toldOfStore.isEmpty { return }
        self.toldOfStore.remove(.everything)
        for change in changes { self.toldOfStore.remove(change.subject) }
    }
}

extension MQTTStoreChange {
    /// The message that a change is about.
    enum Subject: Hashable {
        case outbound(UInt64)
        case inbound(PacketID)
        case everything
    }

    var subject: Subject {
        switch self {
        case .insert(let stored):
            if case .received(let id) = stored.stage { .inbound(id) } else { .outbound(stored.sequence) }
        case .advance(let sequence, _), .remove(let sequence): .outbound(sequence)
        case .forget(let id): .inbound(id)
        case .removeAll: .everything
        }
    }
}
