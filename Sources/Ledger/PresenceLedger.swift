/// A publisher's or a receiver's record of the moment when a receiver went away or came back.
package struct PresenceMark: Hashable, Sendable {
    package enum Event: UInt8, Hashable, Sendable {
        /// The receiver's connection ended. The sequence is one past the highest that the receiver has seen.
        ///
        /// Whether its session ended too is known when it comes back. A share group leaves with its last member, in the
        /// same moment as that is `closed`; the sequence is the publisher's next.
        case left
        /// The receiver is back in the session that it left. The sequence is the publisher's next.
        case resumed
        /// The receiver's subscription came into effect in a new session. The sequence is the publisher's next.
        case began
        /// The same, and the server had lost a session that it owed the receiver (MQTT 5.0 §3.2.2.1.1).
        case beganWithoutSession
        /// A member of a share group is gone for the server, or the run ended without the receiver. The sequence is the
        /// publisher's next.
        case closed
        /// The grace after a subscription in a cluster is over. The sequence is the publisher's next.
        case settled
    }

    /// Visits of members of share groups are numbered from here on, each member's apart from the others'.
    package static let memberVisits: UInt64 = 1 << 32

    package var key: StreamKey
    /// Connections of the receiver, or of the member of a share group, from 0: an absence ends with the next one.
    ///
    /// The visits of a share group itself are the times when it has members.
    package var visit: UInt64
    package var event: Event
    package var sequence: UInt64

    package init(_ key: StreamKey, visit: UInt64, _ event: Event, at sequence: UInt64) {
        self.key = key
        self.visit = visit
        self.event = event
        self.sequence = sequence
    }
}

/// The messages that the absences of receivers excuse, by stream.
///
/// Receivers and publishers report the two ends of an absence from different event loops, each side in its own order.
/// An absence in which nothing was published leaves no trace, so the memory grows with missing messages and not with
/// time.
package struct PresenceLedger: Sendable {
    /// The messages of one stream whose receiver was away.
    package struct Absences: Hashable, Sendable {
        /// The session ended: excused at any QoS.
        package var ended = SequenceRanges()
        /// The server had lost the session: lost, for one reason.
        package var sessionLost = SequenceRanges()
        /// Connections that broke, with the time between them: excused at QoS 0.
        package var broken = SequenceRanges()
        /// The messages within the grace after a subscription in a cluster.
        package var fresh = SequenceRanges()

        package init() {}

        package var isEmpty: Bool {
            self.ended.isEmpty && self.sessionLost.isEmpty && self.broken.isEmpty && self.fresh.isEmpty
        }
    }

    /// The ends of absences that have only one end so far.
    private struct Open {
        /// Where each visit ended.
        var ends: [UInt64: UInt64] = [:]
        /// Where each visit began, and how.
        var begins: [UInt64: (next: UInt64, event: PresenceMark.Event)] = [:]
        /// Where the publisher was when the server let a share group's member go, by visit.
        var closes: [UInt64: UInt64] = [:]
        /// Where the connections since the last one began.
        var since: UInt64 = 0
        /// The latest subscription: its grace may end after members of a share group came back.
        var began = (visit: UInt64(0), next: UInt64(0))

        var isEmpty: Bool {
            self.ends.isEmpty && self.begins.isEmpty && self.closes.isEmpty && self.since == 0 && self.began.visit == 0
        }
    }

    private var absences: [StreamKey: Absences] = [:]
    private var open: [StreamKey: Open] = [:]

    package init() {}

    package mutating func add(_ mark: PresenceMark) {
        var open = self.open[mark.key] ?? Open()
        switch mark.event {
        case .left: open.ends[mark.visit] = mark.sequence
        case .began where mark.visit == 0:
            self.excuse(mark.key, 0..<mark.sequence, broken: 0..<mark.sequence)
            open.since = max(open.since, mark.sequence)
            open.began.next = max(open.began.next, mark.sequence)
        case .resumed, .began, .beganWithoutSession:
            open.begins[mark.visit] = (mark.sequence, mark.event)
            if mark.event != .resumed, mark.visit < PresenceMark.memberVisits {
                open.began = (mark.visit, mark.sequence)
            }
        case .closed: open.closes[mark.visit] = mark.sequence
        case .settled:
            // A publisher that had sent nothing when the subscription began has no mark of that.
            let begin = mark.visit > open.began.visit ? 0 : open.began.next
            if mark.visit >= open.began.visit, begin < mark.sequence {
                self.absences[mark.key, default: Absences()].fresh.insert(begin..<mark.sequence)
            }
            return
        }
        self.match(mark.key, &open)
        self.open[mark.key] = open.isEmpty ? nil : open
    }

    /// Turns absences that have both ends into ranges.
    private mutating func match(_ key: StreamKey, _ open: inout Open) {
        for (visit, close) in open.closes {
            guard let end = open.ends[visit] else { continue }
            open.closes[visit] = nil
            open.ends[visit] = nil
            self.excuse(key, end..<max(end, close), broken: open.since..<max(open.since, close))
        }
        for (visit, begin) in open.begins where visit > 0 {
            guard let end = open.ends[visit - 1] else { continue }
            open.ends[visit - 1] = nil
            open.begins[visit] = nil
            self.settle(key, end, begin, since: open.since)
            open.since = max(open.since, begin.next)
        }
    }

    private mutating func settle(
        _ key: StreamKey,
        _ end: UInt64,
        _ begin: (next: UInt64, event: PresenceMark.Event),
        since: UInt64
    ) {
        let away = end..<max(end, begin.next)
        var absences = self.absences[key] ?? Absences()
        switch begin.event {
        case .beganWithoutSession: absences.sessionLost.insert(away)
        case .began: absences.ended.insert(away)
        default: break
        }
        absences.broken.insert(since..<max(since, begin.next))
        if !absences.isEmpty { self.absences[key] = absences }
    }

    private mutating func excuse(_ key: StreamKey, _ ended: Range<UInt64>, broken: Range<UInt64>) {
        var absences = self.absences[key] ?? Absences()
        absences.ended.insert(ended)
        absences.broken.insert(broken)
        if !absences.isEmpty { self.absences[key] = absences }
    }

    /// The number of messages that absences may excuse, at most; `nil` if it has no bound.
    package var mostExcused: UInt64? {
        var sum = self.absences.values.reduce(UInt64(0)) { $0 + $1.broken.count + $1.ended.count }
        for open in self.open.values {
            guard open.ends.isEmpty else { return nil }
            sum += open.begins.values.reduce(0) { $0 + $1.next } + open.closes.values.reduce(0, +)
        }
        return sum
    }

    /// Ends the absences of receivers that are away when all publishers have ended.
    ///
    /// Nothing has to be expected of a stream that had not reached them before, and of which their side has no mark.
    ///
    /// - Parameters:
    ///   - absent: by receiver, its last visit; of a share group, the last visits of members that are away, or its own
    ///     if it has no member.
    ///   - published: the fates of all messages.
    package mutating func close(_ absent: [UInt32: [UInt64]], _ published: [PublishedExport]) {
        for export in published {
            for fate in export.fates {
                for member in export.members(of: fate) {
                    for visit in absent[member.receiver] ?? [] {
                        self.add(PresenceMark(fate.key(member.receiver), visit: visit, .closed, at: fate.assigned))
                    }
                }
            }
        }
    }

    /// All absences at the end of a run: those that did not end reach to its end.
    package func export() -> [StreamKey: Absences] {
        var all = self.absences
        for (key, open) in self.open {
            var absences = all[key] ?? Absences()
            for (_, begin) in open.begins {
                // No message of the stream had reached the receiver before, so its side has no mark.
                switch begin.event {
                case .beganWithoutSession: absences.sessionLost.insert(0..<begin.next)
                case .began: absences.ended.insert(0..<begin.next)
                default: break
                }
                absences.broken.insert(0..<begin.next)
            }
            for (_, close) in open.closes {
                absences.ended.insert(0..<close)
                absences.broken.insert(0..<close)
            }
            for (_, end) in open.ends {
                absences.ended.insert(end..<StreamLedger.sequenceLimit)
                absences.broken.insert(min(open.since, end)..<StreamLedger.sequenceLimit)
            }
            if !absences.isEmpty { all[key] = absences }
        }
        return all
    }
}
