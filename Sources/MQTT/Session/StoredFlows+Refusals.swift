package import MQTTCodec
package import NIOCore

/// Changes that a store rejected.
struct StoreRefusals {
    /// The store gets no commit before this time.
    var retryAt = NIODeadline.distantFuture
    /// This many changes are committed one by one, because the store rejected one of them.
    var singleCommits = 0
    /// Changes that the store must make later, with later changes to the same messages.
    var delayed: [MQTTStoreChange] = []
    var delayedUntil = NIODeadline.distantFuture
}

// A packet that depends on a change waits until the store has made the change.
extension StoredFlows {
    /// The consequence of a failed commit.
    package enum Failure: Hashable, Sendable {
        /// All changes are retried after one second.
        case retried
        /// Changes are tried one by one: a change that the store never takes must not block one that makes room.
        case split
        /// The store has the server's message already: packets that wait for the change may be sent.
        case known
        /// This message of ours is not sent: its flow ends.
        case ended(UInt64)
        /// The change is made later: PUBREC, PUBREL and PUBCOMP wait, and finished messages are removed later.
        ///
        /// A message whose identifier the store did not take returns it, and is the next to get another one.
        case delayed
        /// The change is out of date.
        case dropped
    }

    static var patience: TimeAmount { .seconds(1) }

    /// Whether changes can be committed now.
    package var mayCommit: Bool { !self.changes.isEmpty && !self.waitsToRetry }

    /// The store failed, and gets no commit for a while.
    package var waitsToRetry: Bool { self.refusals.retryAt != .distantFuture }

    /// The number of changes that the next commit may have.
    package var commitLimit: Int { self.refusals.singleCommits > 0 ? 1 : .max }

    /// The time of the next call of ``timePassed(now:)``.
    package var deadline: NIODeadline { min(self.refusals.retryAt, self.refusals.delayedUntil) }

    /// - Returns: whether changes can be committed now that could not before.
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

    /// A commit has returned, with or without an error.
    package mutating func commitEnded() { self.refusals.singleCommits = max(0, self.refusals.singleCommits - 1) }

    /// A commit has failed; the store made none of its changes.
    ///
    /// - Parameters:
    ///   - changes: of that commit.
    ///   - refusal: the error if the store rejected one of the changes; `nil` if the store itself failed.
    ///   - session: gets identifiers back.
    ///   - now: when it failed.
    /// - Returns: the consequence of the failure.
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
            // The message is gone, or has reached another stage.
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

    /// Returns the identifiers of all messages that wait for the store, so that none overtakes another.
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
        // Later changes to the same message stay after it.
        let later = self.changes
        self.changes = []
        for change in later where !self.joinsRefused(change) { self.changes.append(change) }
        self.refusals.delayedUntil = min(self.refusals.delayedUntil, now + Self.patience)
    }

    /// Whether a change has to wait for a rejected one, or replaces it.
    mutating func joinsRefused(_ change: MQTTStoreChange) -> Bool {
        if self.refusals.delayed.isEmpty { return false }
        switch change {
        case .remove(let sequence):
            self.refusals.delayed.removeAll { if case .advance(sequence, _) = $0 { true } else { false } }
        case .advance(let sequence, .published):
            // The message was in the queue and continues now: if it waited, later ones would overtake it
            // ([MQTT-4.6.0-1]).
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
