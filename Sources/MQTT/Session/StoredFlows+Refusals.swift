package import MQTTCodec
package import NIOCore

/// What a store did not take.
struct StoreRefusals {
    /// No commit before this time.
    var retryAt = NIODeadline.distantFuture
    /// So many changes go to the store one by one, for it refused something among them.
    var singleCommits = 0
    /// What the store has to take in the end, with what came later about the same messages.
    var delayed: [MQTTStoreChange] = []
    var delayedUntil = NIODeadline.distantFuture
}

// Nothing is sent that the store should know of and does not: what MQTT has wait for a change waits until it is made.
extension StoredFlows {
    /// What comes of a commit that failed.
    package enum Failure: Hashable, Sendable {
        /// All changes are tried again, in a second.
        case retried
        /// They are tried one by one: what the store never takes would hold up what makes room.
        case split
        /// The store has the server's message already: what waits for the change may happen.
        case known
        /// This message of ours is not sent: it is over.
        case ended(UInt64)
        /// The change is made later: PUBREC, PUBREL and PUBCOMP wait, and what is done with is removed later. A
        /// message whose identifier is not taken gives it back, and is the next one to get another.
        case delayed
        /// The change is out of date.
        case dropped
    }

    static var patience: TimeAmount { .seconds(1) }

    /// Changes go to the store now.
    package var mayCommit: Bool { !self.changes.isEmpty && !self.waitsToRetry }

    /// The store failed, and is left alone for a while.
    package var waitsToRetry: Bool { self.refusals.retryAt != .distantFuture }

    /// How many changes the next commit may have.
    package var commitLimit: Int { self.refusals.singleCommits > 0 ? 1 : .max }

    /// When ``timePassed(now:)`` is due.
    package var deadline: NIODeadline { min(self.refusals.retryAt, self.refusals.delayedUntil) }

    /// - Returns: whether something may be committed now that could not before.
    package mutating func timePassed(now: NIODeadline) -> Bool {
        guard now >= self.deadline else { return false }
        if now >= self.refusals.retryAt { self.refusals.retryAt = .distantFuture }
        if now >= self.refusals.delayedUntil {
            self.refusals.delayedUntil = .distantFuture
            self.changes += self.refusals.delayed
            self.refusals.delayed = []
        }
        return true
    }

    /// A commit has returned, whatever the store said.
    package mutating func commitEnded() { self.refusals.singleCommits = max(0, self.refusals.singleCommits - 1) }

    /// A commit has failed; none of its changes is made.
    ///
    /// - Parameters:
    ///   - changes: of that commit.
    ///   - refusal: what is wrong with one of them; `nil` if it is the store that failed.
    ///   - session: gets identifiers back.
    ///   - now: when it failed.
    /// - Returns: what is to be done about it.
    package mutating func failed(
        _ changes: [MQTTStoreChange],
        _ refusal: MQTTStoreError?,
        _ session: inout MQTTSession,
        now: NIODeadline
    ) -> Failure {
        if let refusal, changes.count == 1, changes[0] != .removeAll {
            self.commitEnded()
            return self.refused(changes[0], refusal, &session, now: now)
        }
        self.changes = changes + self.changes
        if refusal != nil, changes.count > 1 {
            self.refusals.singleCommits = changes.count
            return .split
        }
        self.refusals.retryAt = now + Self.patience
        return .retried
    }

    private mutating func refused(
        _ change: MQTTStoreChange,
        _ error: MQTTStoreError,
        _ session: inout MQTTSession,
        now: NIODeadline
    ) -> Failure {
        switch change {
        case .insert(let stored):
            if case .received = stored.stage {
                if case .duplicate = error { return .known }
                break
            }
            guard let flow = self.flows[stored.sequence] else { return .dropped }
            if let id = flow.stage.packetID { session.withdraw(publish: id) }
            return .ended(stored.sequence)
        case .advance(let sequence, let stage):
            // It is gone, or has gone on.
            guard self.flows[sequence]?.stage == stage else { return .dropped }
            if case .published = stage {
                self.takeBack(sequence, &session, now: now)
                return .delayed
            }
        case .remove, .forget, .removeAll: break
        }
        self.delay(change, now: now)
        return .delayed
    }

    /// Gives back the identifiers of all that waits for the store to know them, so that nothing is overtaken.
    private mutating func takeBack(_ sequence: UInt64, _ session: inout MQTTSession, now: NIODeadline) {
        var unsent = [sequence]
        for index in self.changes.indices.reversed() {
            switch self.changes[index] {
            case .insert(var stored):
                guard case .published = stored.stage, self.flows[stored.sequence]?.stage == stored.stage else {
                    continue
                }
                unsent.append(stored.sequence)
                stored.stage = .queued
                self.changes[index] = .insert(stored)
            case .advance(let other, let stage):
                guard case .published = stage, self.flows[other]?.stage == stage else { continue }
                unsent.append(other)
                self.changes.remove(at: index)
            case .remove, .forget, .removeAll: break
            }
        }
        for sequence in unsent {
            if let id = self.flows[sequence]?.stage.packetID { session.withdraw(publish: id) }
        }
        self.putBack(unsent)
        self.refusals.retryAt = now + Self.patience
    }

    private mutating func delay(_ change: MQTTStoreChange, now: NIODeadline) {
        self.refusals.delayed.append(change)
        // What came behind it about the same message stays behind it.
        let later = self.changes
        self.changes = []
        for change in later where !self.joinsRefused(change) { self.changes.append(change) }
        self.refusals.delayedUntil = min(self.refusals.delayedUntil, now + Self.patience)
    }

    /// Whether a change has to wait for one that the store refused, or takes its place.
    mutating func joinsRefused(_ change: MQTTStoreChange) -> Bool {
        if self.refusals.delayed.isEmpty { return false }
        switch change {
        case .remove(let sequence):
            self.refusals.delayed.removeAll { if case .advance(sequence, _) = $0 { true } else { false } }
        case .advance(let sequence, .published):
            // It was in the queue, and goes on now: to wait would have those behind it overtake it ([MQTT-4.6.0-1]).
            self.refusals.delayed.removeAll { if case .advance(sequence, .queued) = $0 { true } else { false } }
        case .forget(let id):
            self.refusals.delayed.removeAll {
                if case .insert(let stored) = $0 { stored.stage == .received(id) } else { false }
            }
        case .insert, .advance, .removeAll: break
        }
        guard self.refusals.delayed.contains(where: { $0.subject == change.subject }) else { return false }
        self.refusals.delayed.append(change)
        return true
    }
}

extension MQTTStoreChange {
    /// The message that a change is about.
    package enum Subject: Hashable, Sendable {
        case outbound(UInt64)
        case inbound(PacketID)
        case everything
    }

    package var subject: Subject {
        switch self {
        case .insert(let stored):
            if case .received(let id) = stored.stage { .inbound(id) } else { .outbound(stored.sequence) }
        case .advance(let sequence, _), .remove(let sequence): .outbound(sequence)
        case .forget(let id): .inbound(id)
        case .removeAll: .everything
        }
    }
}
