import LoadEngine
import Workloads

// Loads that can be divided into segments.
extension MQTTOptions {
    /// Streams that the ledgers of all segments may have together, which a merge holds at once: some 100 bytes each.
    private static let mostStreams = 4_194_304

    /// Why the load cannot be divided into segments; empty if it can.
    ///
    /// Each segment has clients, and publishers with their subscribers.
    ///
    /// `server`: what names it.
    package func segmentProblems(server: AnyOptionKey = \OptionTable.host) -> [OptionWords] {
        guard let count = self.common.segmentCount else { return [] }
        if self.reply.topic != nil {
            return ["\(\.replyTopic): one process follows replies in this build; leave the segments out"]
        }
        if self.spansSegments || self.answersSegments { return self.spanningProblems(count, server) }
        var problems: [OptionWords] = []
        if self.publishers > 0, self.publishers < count {
            problems.append(
                "\(count) segments of \(\.count) \(self.publishers) would not have a client each; ask for fewer"
            )
        }
        if self.subscribers > 0, self.subscribers < count {
            let name: OptionWords = self.kind == .pubsub ? "\(\.subscribers)" : "\(\.count)"
            problems.append(
                "\(count) segments of \(name) \(self.subscribers) would not have a client each; ask for fewer"
            )
        }
        return problems
    }

    /// Where messages of one segment are heard in others.
    private func spanningProblems(_ count: Int, _ server: AnyOptionKey) -> [OptionWords] {
        if max(self.publishers, self.subscribers) < count {
            return [
                "\(count) segments of \(\.count) \(self.publishers) and \(\.subscribers) \(self.subscribers) would not have a client each; ask for fewer"
            ]
        }
        if self.answersSegments, self.segment.part != nil, !self.segment.isLed {
            return [
                "with \(\.topology, "request") segments answer each other's requests, and have to end together; start them with \(\.processes), or join a coordinator with \(\.coordinator)"
            ]
        }
        var problems = self.common.sharingProblems(server: server)
        if self.limit != nil, self.duration == nil, self.publishers < count {
            problems.append(
                "segments without a publisher would not know when \(\.limit) is spent; give \(\.duration) as well"
            )
        }
        // An answer comes back to its own client: no ledger crosses segments.
        guard !self.answersSegments else { return problems }
        let subscriptions = self.topology == .shared ? count : self.subscribers
        let (streams, isTooMany) = self.publishers.multipliedReportingOverflow(by: subscriptions)
        if self.hasLedger, isTooMany || streams > Self.mostStreams {
            problems.append(
                "\(self.publishers) publishers that \(subscriptions) subscriptions hear are over \(Self.mostStreams) streams, which is all that a merge follows; ask for fewer, or take \(\.size) \(self.headerSize - 1) or less, without a ledger"
            )
        }
        return problems
    }
}

extension XMPPOptions {
    package var segmentProblems: [OptionWords] {
        guard let count = self.common.segmentCount else { return [] }
        var problems: [OptionWords] = []
        if self.kind == .message, self.pairing == .hotspot {
            problems.append(
                "with \(\.pairing, "hotspot") clients of all segments would write to one, where in this build no ledger follows them; take another pairing, or one process"
            )
        }
        if self.registers || self.kind == .register {
            problems.append(
                "accounts are made by one process in this build; create them first, with \(\.keepsAccounts)"
            )
        }
        // Whole rooms and circles, and clients with a peer.
        let size = self.kind == .message ? 2 : self.hasGroups ? max(1, self.groupSize) : 1
        if self.operators / size < count {
            let what: OptionWords =
                self.hasGroups ? "\(self.operators / size) groups" : "\(\.count) \(self.operators)"
            let parts = size == 2 && !self.hasGroups ? "two clients" : "clients"
            problems.append("\(count) segments of \(what) would not have \(parts) each; ask for fewer")
        }
        return problems
    }
}

extension MQTTOptions {
    /// Whether publishers and those who hear them are in different segments.
    ///
    /// Client k of each kind is in segment k mod N, so a pair is together, unless several subscribers share a publisher
    /// or all hear all.
    package var spansSegments: Bool {
        guard self.kind == .pubsub, let count = self.common.segmentCount, count > 1 else { return false }
        switch self.topology {
        case .fanIn, .fanOut, .shared: return true
        // See ``answersSegments``.
        case .request: return false
        case .pair:
            let hasOwnTopics =
                self.publishers < 2
                || self.topics.allSatisfy {
                    Template(parsing: $0).hasClientNumber || $0.replacing("%%", with: "").contains("%c")
                }
            return !hasOwnTopics || self.subscribers > self.publishers && self.publishers % count != 0
        }
    }

    /// Whether its clients answer requests of other segments.
    package var answersSegments: Bool {
        self.kind == .pubsub && self.topology == .request && self.common.segmentCount ?? 1 > 1
    }
}

extension ScenarioOptions {
    package var hasFollowedMessages: Bool { self.groups.contains(where: \.isFollowed) }

    /// Whether messages of one segment may be expected by clients of others.
    package var spansSegments: Bool {
        self.common.segmentCount ?? 1 > 1 && self.hasFollowedMessages && self.groups.contains(where: \.spansSegments)
    }
}

extension ScenarioGroup {
    /// Whether other groups may be expected to receive its messages.
    fileprivate var isFollowed: Bool {
        if case .mqtt(let options) = self.work { options.operates && options.hasLedger } else { false }
    }

    /// Whether clients of other segments may receive its messages, or it theirs.
    fileprivate var spansSegments: Bool {
        if case .mqtt(let options) = self.work { options.spansSegments || options.hearsGroups } else { false }
    }
}

extension LoadOptions {
    /// Why messages of one segment cannot be followed into another; empty if they can.
    ///
    /// `server`: what names it.
    package func sharingProblems(server: AnyOptionKey) -> [OptionWords] {
        guard let count = self.segmentCount, count > 1 else { return [] }
        var problems: [OptionWords] = []
        if self.isEmbedded {
            problems.append(
                "each segment would have an embedded broker of its own, where its subscribers hear no other segment; start one with clamor broker, and name it with \(server)"
            )
        }
        if self.segment.part != nil, !self.segment.isLed, self.segment.startAt == nil, self.segment.run.isEmpty {
            problems.append(
                "needs \(\.startAt, "TIME"), the same for all segments, or CLAMOR_RUN in the environment, so that they know the messages of their run"
            )
        }
        return problems
    }

    var segmentCount: Int? { self.segment.count }
}
