package import MQTTCodec
package import NIOCore

/// Changes that a store refused.
struct StoreRefusals {
    /// No commit before this time.
    var retryAt = NIODeadline.distantFuture
    /// This number of changes is committed one by one, because the store refused one of them.
    var singleCommits = 0
    /// Refused changes that are tried again, and later changes of the same messages.
    var delayed: [MQTTStoreChange] = []
    var delayedUntil = NIODeadline.distantFuture
}

// A packet that waits for a change is not sent before the store has made the change.
extension StoredFlows {
    /// The result of a commit that failed.
    package enum Failure: Hashable, Sendable {
        /// All changes are tried again after a second.
        case retried
        /// The changes are tried one by one: a change that is refused for ever would block removals, which make room.
        case split
        /// The store has the server's message already, so the change counts as made.
        case known
        /// The client's message with this sequence is not sent: its caller gets the error.
        case ended(UInt64)
        /// The change is tried again after a second, and PUBREC, PUBREL or PUBCOMP waits. A message whose identifier is
        /// refused returns it, and is the first to get another.
        case delayed
        /// The change is out of date.
        case dropped
    }

    static var patience: TimeAmount { .seconds(1) }

    /// Whether there is something to commit now.
    package var mayCommit: Bool { !self.changes.isEmpty && !self.waitsToRetry }

    /// The store failed, and the next commit waits.
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

    /// A commit succeeded.
    package mutating func commitEnded() { self.refusals.singleCommits = max(0, self.refusals.singleCommits - 1) }

    /// A commit has failed; none of its changes is made.
    ///
    /// - Parameters:
    ///   - changes: of that commit.
    ///   - refusal: why the store refused one of them; `nil` if the store itself failed.
    ///   - session: takes identifiers back.
    ///   - now: when it failed.
    /// - Returns: what the caller has to do.
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

    /// Returns the identifiers of all messages that wait for the commit of theirs, which keeps the messages in order.
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
        // Later changes of the same message follow it.
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
            // The message leaves the queue now. A wait would let later messages overtake it ([MQTT-4.6.0-1]).
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
