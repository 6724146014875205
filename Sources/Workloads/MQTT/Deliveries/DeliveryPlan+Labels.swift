package import Ledger
import MQTT
import MQTTCodec
import Measurement

// The rows of the ledger, and their labels.
extension DeliveryPlan {
    /// A row of the ledger for one group's receivers: a stream of the run, and a QoS of its publishers.
    struct RowKey: Hashable {
        var stream: Int
        var qos: UInt8
    }

    /// The streams that a group's receivers may hear, by their places.
    func streams(heardBy group: Int) -> [(place: Int, group: Int, stream: Int)] {
        guard self.receives(group) else { return [] }
        var place = 0
        var heard: [(Int, Int, Int)] = []
        for (number, other) in self.groups.enumerated() where other.load.publishes {
            for stream in other.load.streams.indices {
                if other.domain == self.groups[group].domain, self.mayHear(group, number, other.load.streams[stream]) {
                    heard.append((place, number, stream))
                }
                place += 1
            }
        }
        return heard
    }

    /// Whether receivers of a group may hear a publisher of the run.
    package func hears(_ group: Int) -> Bool { !self.streams(heardBy: group).isEmpty }

    /// Whether a filter of a group may match a stream of another, or of its own.
    func mayHear(_ group: Int, _ other: Int, _ stream: MQTTLoad.Stream) -> Bool {
        let load = self.groups[group].load
        if load.topology == .request { return group == other }
        if let p2p = stream.p2p { return p2p.groups.contains(group) }
        return self.patterns(of: load).contains { MQTTLoad.overlap($0, stream.topic.filterOfAllClients) }
    }

    /// Filters that cover those of all clients of a load.
    func patterns(of load: MQTTLoad) -> [String] {
        guard load.filters.isEmpty else { return load.filters.map(\.pattern) }
        guard let first = load.subscribingClients.first else { return [] }
        return load.topology.readsOnePublisher
            ? [load.topic.filterOfAllClients] : load.subscriptions(of: first).map(\.filter)
    }

    func receives(_ group: Int) -> Bool {
        self.groups[group].load.subscribes || self.hasP2P && !self.numbers[group].clients.isEmpty
    }

    /// Whether a receiver may hear a publisher of another group.
    package var hasFrom: Bool {
        self.groups.indices.contains { group in
            self.streams(heardBy: group).contains { $0.group != group }
        }
    }

    /// The rows of a group's receivers, with their labels; a group that hears only elsewhere has one for each QoS.
    ///
    /// Messages without a header are not followed, and have none.
    func rows(heardBy group: Int) -> [(labels: Labels, key: RowKey)] {
        guard self.receives(group) else { return [] }
        let hasFrom = self.hasFrom
        let heard = self.streams(heardBy: group)
        guard !heard.isEmpty else {
            return QoS.allCases.map { (["qos": "\($0.rawValue)"], RowKey(stream: 0, qos: $0.rawValue)) }
        }
        return heard.flatMap { place, other, stream in
            let load = self.groups[other].load
            guard load.hasLedger, load.streams[stream].hasHeader else { return [(labels: Labels, key: RowKey)]() }
            return Set(load.streams[stream].qualities).sorted().map { qos in
                var labels: Labels = ["qos": "\(qos.rawValue)"]
                if hasFrom { labels = labels.adding("from", self.groups[other].name) }
                if load.hasStreams { labels = labels.adding("stream", load.streams[stream].name) }
                return (labels, RowKey(stream: place, qos: qos.rawValue))
            }
        }
    }

    /// The QoS levels at which messages come to a group's receivers.
    func levels(heardBy group: Int) -> (received: Set<QoS>, published: Set<QoS>) {
        guard self.receives(group) else { return ([], []) }
        let load = self.groups[group].load
        let heard = self.streams(heardBy: group)
        let published = Set(heard.flatMap { self.groups[$0.group].load.streams[$0.stream].qualities })
        let asked =
            load.filters.isEmpty
            ? load.subscriberQualities
            : load.filters.flatMap { filter in
                filter.qos.map { [$0] } ?? load.subscriberQualities
            }
        if load.topology == .request { return (Set([.atMostOnce]).union(published), published) }
        let highest = self.hasP2P ? max(asked.max() ?? .atMostOnce, .atLeastOnce) : asked.max() ?? .atMostOnce
        guard self.hasPublishers, !heard.isEmpty else {
            return (Set(QoS.allCases.map { min($0, highest) }), Set(QoS.allCases))
        }
        // A message is delivered at the lower of the publisher's and the subscriber's level.
        let lows = Set(asked + (self.hasP2P ? [.atLeastOnce] : []))
        return (Set(published.flatMap { level in lows.map { min(level, $0) } }), published)
    }

    /// The names of share groups that a group shares with others, where it is the first of them.
    func sharedNames(_ group: Int) -> [String] {
        let name = self.groups[group].name
        return Array(Set(self.places.receivers.map(\.group).filter { $0.hasPrefix(name + "+") })).sorted()
    }

    /// The group that records deliveries to a share group.
    package func home(ofReceivers place: Int) -> Int {
        let name = self.places.receivers[place].group.split(separator: "+").first.map(String.init) ?? ""
        return self.groups.firstIndex { $0.name == name } ?? 0
    }

    /// Whether the audience of every publisher of a group stays the same, whatever its topic is.
    package func hasFixedAudiences(group: Int) -> Bool {
        let load = self.groups[group].load
        if load.hasStreams || load.stream.p2p != nil { return false }
        guard load.stream.topicVaries else { return true }
        // Of a filter that overlaps, the levels that vary are wildcards.
        let topic = load.topic.filterOfAllClients
        return self.groups.filter { $0.domain == self.groups[group].domain && $0.load.subscribes }.allSatisfy { other in
            // A level that differs per client is no wildcard.
            let own = other.load.subscribingClients.first.map { other.load.subscriptions(of: $0).map(\.filter) } ?? []
            return zip(self.patterns(of: other.load), own).allSatisfy { pattern, filter in
                !MQTTLoad.overlap(pattern, topic) || load.topic.varyingLevels.allSatisfy { Self.isWild(filter, at: $0) }
            }
        }
    }

    static func isWild(_ filter: String, at level: Int) -> Bool {
        let levels = self.plain(filter).split(separator: "/", omittingEmptySubsequences: false)
        if let last = levels.last, last == "#", level >= levels.count - 1 { return true }
        return level < levels.count && levels[level] == "+"
    }

    // MARK: - Facts about receivers that decide about an expectation

    /// Whether the run follows messages one by one.
    package var isFollowed: Bool {
        let publishing = self.groups.filter(\.load.publishes)
        guard !self.places.receivers.isEmpty else { return false }
        return publishing.isEmpty
            ? self.groups.contains { $0.load.hasLedger }
            : publishing.contains { $0.load.hasLedger && $0.load.streams.contains(where: \.hasHeader) }
    }

    /// Whether a server knows that a publisher's messages may be too large for a receiver (MQTT 5.0 §3.1.2.11.4).
    package func isTooLarge(_ publisher: UInt32, _ receiver: UInt32) -> Bool {
        guard let own = self.load(ofReceiver: receiver), own.version == .v5,
            let most = own.subscriberSession.maximumPacketSize,
            let place = self.places.stream(of: publisher)
        else { return false }
        let named = self.places.streams[place]
        let load = self.groups.first { $0.name == named.group && $0.load.publishes }?.load
        let stream = load?.streams.first { $0.name == named.name } ?? load?.stream
        return (stream?.payload.largest ?? 0) + Self.largestHead > most
    }

    /// Bytes of a packet before its payload: topic and properties, at most for what is checked here.
    private static let largestHead = 1_024

    /// The load of the group that a receiver belongs to.
    func load(ofReceiver receiver: UInt32) -> MQTTLoad? {
        let place = self.numbers.firstIndex { own in
            own.receiver..<own.receiver + UInt32(own.clients.count) ~= receiver
        }
        return place.map { self.groups[$0].load }
    }

    /// The client id of a receiver, or the filter of a share group.
    package func name(ofReceiver receiver: UInt32) -> String {
        if let share = self.shares.first(where: { $0.value == receiver }) { return share.key.filter }
        guard let load = self.load(ofReceiver: receiver),
            let own = self.numbers.first(where: { $0.receiver..<$0.receiver + UInt32($0.clients.count) ~= receiver })
        else { return "subscriber \(receiver)" }
        let client = own.clients.lowerBound + Int(receiver - own.receiver)
        return String(decoding: load.values(of: client).clientID, as: UTF8.self)
    }

    /// Whether a client of a group has no other subscriptions than those of its share groups.
    func isOnlyMember(_ receiver: UInt32, of group: Int) -> Bool {
        let load = self.groups[group].load
        let own = self.numbers[group]
        guard own.receiver..<own.receiver + UInt32(own.clients.count) ~= receiver, !self.hasP2P else { return false }
        let patterns = self.patterns(of: load)
        return load.topology != .request && !patterns.isEmpty && patterns.allSatisfy { $0.hasPrefix("$share/") }
    }

    /// The targets of a receiver's clients; a share group may have several.
    func targets(of receiver: UInt32) -> Set<Int> {
        guard let load = self.groups.first?.load, let own = self.numbers.first else { return [] }
        let client = own.clients.lowerBound + Int(receiver) - Int(own.receiver)
        if own.clients.contains(client) { return [client % load.targets] }
        return Set(load.subscribingClients.map { $0 % load.targets })
    }

    // MARK: - Plans whose messages a ledger could not tell apart

    static func problem(of groups: [Group]) -> String? {
        for group in groups where group.load.subscribes {
            let prefix = group.name.isEmpty ? "" : "\(group.name): "
            let heard = groups.filter { $0.load.publishes && $0.domain == group.domain }
            let problem =
                self.overlapProblem(of: group.load, heard) ?? self.retainProblem(of: group.load, heard)
                ?? self.answerProblem(of: group.load, heard)
            if let problem { return prefix + problem }
        }
        return nil
    }

    /// Filters by which the clients of a load receive, apart from requests and their answers.
    private static func filters(of load: MQTTLoad) -> [String] {
        guard load.topology != .request, let first = load.subscribingClients.first else { return [] }
        return load.filters.isEmpty ? load.subscriptions(of: first).map(\.filter) : load.filters.map(\.pattern)
    }

    /// Without properties an answer looks like its request (MQTT 5.0 §3.3.2.3.6).
    private static func answerProblem(of load: MQTTLoad, _ heard: [Group]) -> String? {
        guard load.subscriberSession.version != .v5 else { return nil }
        for case let topic? in heard.filter({ $0.load.topology == .request }).flatMap(\.load.streams)
            .map({ $0.responseTopic?.filterOfAllClients })
        {
            guard let filter = self.filters(of: load).first(where: { MQTTLoad.overlap($0, topic) }) else { continue }
            return "'\(filter)' matches the answers '\(topic)', and MQTT 3.1.1 does not tell them from their requests; "
                + "use version 5"
        }
        return nil
    }

    /// Copies for a `$share` filter and for another filter of the same client look alike.
    private static func overlapProblem(of load: MQTTLoad, _ heard: [Group]) -> String? {
        let filters = self.filters(of: load)
        let shared = filters.filter { $0.hasPrefix("$share/") }
        for share in shared {
            for other in filters where other != share && MQTTLoad.overlap(share, other) {
                for stream in heard.flatMap(\.load.streams) {
                    let topic = stream.topic.filterOfAllClients
                    guard MQTTLoad.overlap(share, topic), MQTTLoad.overlap(other, topic) else { continue }
                    return "'\(share)' and '\(other)' of one client match '\(topic)', and their copies cannot be told "
                        + "apart; give them to two groups"
                }
            }
        }
        return nil
    }

    /// With Retain As Published a stored copy looks like a new message (MQTT 5.0 §3.8.3.1).
    private static func retainProblem(of load: MQTTLoad, _ heard: [Group]) -> String? {
        guard heard.contains(where: { $0.load.streams.contains(where: \.retain) }) else { return nil }
        let options = load.filters.isEmpty ? [load.subscribeOptions] : load.filters.map(\.options)
        guard options.contains(where: { $0.retainAsPublished && $0.retainHandling != .doNotSend }) else { return nil }
        return "retain as published beside a publisher that retains: stored copies look like new messages; set retain "
            + "handling 2, or leave one of the two out"
    }
}

extension PayloadHeader {
    /// The flags of a message that was due in this lane of the load.
    ///
    /// A load without stages has one lane, the measured phase.
    package static func flags(qos: UInt8, lane: Int, audience: UInt32 = 0) -> UInt32 {
        Self.flags(qos: qos, stage: lane == MetricLane.unmeasured ? 0 : max(1, lane &- 1), audience: audience)
    }

    /// The lane that records the publisher's stage, in a run with this many stages.
    ///
    /// A stage that the run does not have is not recorded.
    package func lane(stages: Int) -> Int {
        let stage = self.stage
        guard stage > 0 else { return MetricLane.unmeasured }
        if stages == 0 { return stage == 1 ? MetricLane.measured : MetricLane.unmeasured }
        return stage <= stages ? MetricLane.stage(stage - 1) : MetricLane.unmeasured
    }
}
