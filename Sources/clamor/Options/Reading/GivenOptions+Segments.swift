import Foundation
import LoadEngine
import Measurement
import Workloads

// The part of the load that is this process's, and loads that can be divided.
extension GivenOptions {
    /// Behind thresholds and seed.
    mutating func readSegments(into options: inout LoadOptions) {
        options.segment.isChild = self[\.isChild] ?? false
        if options.segment.isChild {
            options.segment.realtimeOffset = self.environment["CLAMOR_REALTIME_OFFSET"].flatMap { Int64($0) }
        }
        // So that tests have clocks of several hosts on one.
        options.segment.clockAhead = self.environment["CLAMOR_CLOCK_AHEAD"].flatMap { Int64($0) } ?? 0
        options.segment.clockGain = self.environment["CLAMOR_CLOCK_GAIN"].flatMap { Int64($0) } ?? 0
        if let text = self[\.startAt] { options.segment.startAt = self.startAt(text) }
        if let count = self[\.processes] {
            options.segment.processes = SegmentOptions.Processes(count: count, arguments: self.arguments)
        }
        if let text = self[\.segment] { self.read(segment: text, into: &options) }
        options.segment.expected = self[\.segmentCount]
        self.readCoordinator(into: &options)
        if self.isGiven(\.processes), self.isGiven(\.segment), !self.isGiven(\.coordinator) {
            self.refuse(
                \.processes,
                "starts the segments itself; leave \(\.segment) out, or join a coordinator with \(\.coordinator)"
            )
        }
        guard options.segment.part != nil, !options.segment.isLed else { return }
        for (index, sentence) in options.thresholds.enumerated() where sentence.split(separator: " ").last == "abort" {
            self.refuse(
                \.thresholds,
                "'\(sentence)': abort asks of the whole run what a segment sees in part; leave it out",
                at: index
            )
        }
    }

    private mutating func read(segment text: String, into options: inout LoadOptions) {
        let place = text == "auto" ? self.segmentOfEnvironment : SegmentPlace(text)
        guard let place else {
            if text != "auto" {
                self.refuse(\.segment, "'\(text)' is no segment; write it like 2/4, from 1/4 to 4/4, or auto")
            }
            return
        }
        options.segment.part = PlanSegment(index: place.index - 1, of: place.count)
        options.segment.run = self.environment["CLAMOR_RUN"] ?? place.run
        if options.seed == nil, !self.isGiven(\.coordinator) {
            self.refuse(\.segment, "needs \(\.seed, "N"), the same for all segments, so that they have one plan")
        }
    }

    private var segmentOfEnvironment: SegmentPlace? {
        mutating get {
            do throws(QuantityError) {
                return try SegmentPlace(environment: self.environment)
            } catch {
                self.refuse(\.segment, "auto: \(error.description)")
                return nil
            }
        }
    }

    private mutating func startAt(_ text: String) -> Int64? {
        self.reading(\.startAt) { () throws(QuantityError) in
            try StartText.parse(text, now: Int64(Date().timeIntervalSince1970 * 1e9))
        }
    }

    // MARK: - Loads that can be divided

    /// Refuses a load that cannot be divided.
    mutating func checkSegments(_ options: MQTTOptions) {
        if let words = options.storeProblem { self.refuse(\.store, words) }
        self.refuse(options.segmentProblems())
    }

    mutating func checkSegments(_ options: XMPPOptions) { self.refuse(options.segmentProblems) }

    private mutating func refuse(_ problems: [OptionWords]) {
        for words in problems { self.refuse(self.dividing, words) }
    }

    /// The option that names the server where the load is in a file.
    private static var targetOption: AnyOptionKey { \OptionTable.target }

    private static let mixed: OptionWords =
        "requests are balanced inside a segment, and messages of other groups cross segments; give each kind a run of its own"

    /// The option that divides the load.
    private var dividing: AnyOptionKey {
        if self.command == .coordinate { return \OptionTable.segmentCount }
        return self.isGiven(\.processes) ? \OptionTable.processes : \OptionTable.segment
    }

    /// The same for each group of a scenario.
    mutating func checkSegments(_ scenario: ScenarioOptions, isSeries: Bool) {
        let segment = scenario.common.segment
        guard segment.count != nil else { return }
        let option = self.dividing
        if isSeries, segment.part != nil {
            self.refuse(
                option,
                "a segment does not know the others' runs; divide them with \(\.processes), or leave it out"
            )
        }
        // Those of the command line come first, and are checked already.
        for sentence in scenario.common.thresholds.dropFirst(self[\.thresholds]?.count ?? 0)
        where segment.part != nil && !segment.isLed && sentence.split(separator: " ").last == "abort" {
            self.refuse(
                option,
                "the file's threshold '\(sentence)': abort asks of the whole run what a segment sees in part; leave it out"
            )
        }
        let hasMessages = scenario.hasFollowedMessages
        let spans = scenario.spansSegments
        for group in scenario.groups {
            let problems =
                switch group.work {
                case .mqtt(let options):
                    (options.storeProblem.map { [$0] } ?? []) + options.segmentProblems(server: Self.targetOption)
                        + (spans && options.answersSegments ? [Self.mixed] : [])
                        + (hasMessages && options.hearsGroups
                            ? options.common.sharingProblems(server: Self.targetOption) : [])
                case .xmpp(let options): options.segmentProblems
                }
            for words in problems { self.refuse(option, "\(group.name): \(words)") }
        }
    }
}

extension MQTTOptions {
    /// Streams that the ledgers of all segments may have together, which a merge holds at once: some 100 bytes each.
    private static let mostStreams = 4_194_304

    var storeProblem: OptionWords? {
        self.store == nil || self.segment.processes == nil
            ? nil : "each process needs a file of its own; give the segments theirs with \(\.segment, "I/N")"
    }

    /// Why the load cannot be divided into segments; empty if it can.
    ///
    /// Each segment has clients, and publishers with their subscribers.
    ///
    /// `server`: the option that names it.
    func segmentProblems(server: AnyOptionKey = \OptionTable.host) -> [OptionWords] {
        guard let count = self.common.segmentCount else { return [] }
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
                "\(self.publishers) publishers that \(subscriptions) subscriptions hear are over \(Self.mostStreams) streams, which is all that a merge follows; ask for fewer, or take \(\.size) 31 or less, without a ledger"
            )
        }
        return problems
    }
}

extension XMPPOptions {
    var segmentProblems: [OptionWords] {
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
    var spansSegments: Bool {
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
    var answersSegments: Bool {
        self.kind == .pubsub && self.topology == .request && self.common.segmentCount ?? 1 > 1
    }
}

extension ScenarioOptions {
    fileprivate var hasFollowedMessages: Bool { self.groups.contains(where: \.isFollowed) }

    /// Whether messages of one segment may be expected by clients of others.
    var spansSegments: Bool {
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
    /// `server`: the option that names it.
    fileprivate func sharingProblems(server: AnyOptionKey) -> [OptionWords] {
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
