import Ledger
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

    /// Whether clients of a group get a stream's headers.
    func reads(_ group: Int, _ stream: MQTTLoad.Stream) -> Bool {
        stream.hasHeader && (stream.carrier != .property || self.groups[group].load.version == .v5)
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
            guard load.hasLedger, self.reads(group, load.streams[stream]) else {
                return [(labels: Labels, key: RowKey)]()
            }
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
}
