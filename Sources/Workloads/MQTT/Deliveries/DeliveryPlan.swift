package import Ledger
import MQTTCodec
import Measurement

/// The publishers and the receivers of all MQTT groups of a run, and the receivers that each message reaches.
///
/// It follows from the plan alone, so every event loop, process and segment of a run has the same.
package final class DeliveryPlan: Sendable {
    package struct Group: Sendable {
        /// The name that metrics carry; empty in a run of one command.
        package var name: String
        package var load: MQTTLoad
        /// Groups with the same number hear each other: their servers are one.
        package var domain: Int

        package init(name: String = "", load: MQTTLoad, domain: Int = 0) {
            self.name = name
            self.load = load
            self.domain = domain
        }
    }

    struct Numbers {
        /// The publisher of client 0 in each stream.
        var publishers: [UInt32] = []
        /// Clients that receive, and the receiver of the first.
        var clients = 0..<0
        var receiver: UInt32 = 0
    }

    /// A share group is its name and filter, on one server (MQTT 5.0 §4.8.2).
    struct ShareKey: Hashable {
        var domain: Int
        var server: Int
        var filter: String
    }

    package let groups: [Group]
    package let places: LedgerPlaces
    /// The first problem of the plan; `nil` if there is none.
    package let problem: String?
    let numbers: [Numbers]
    let shares: [ShareKey: UInt32]
    let index: FilterIndex
    /// Roots of topics that name a client.
    let roots: [[UInt8]]

    /// `findsReceivers`: ``members(group:client:topic:)`` will be asked.
    package init(_ groups: [Group], findsReceivers: Bool = true) {
        self.groups = groups
        let roots = groups.flatMap { $0.load.streams.compactMap { $0.p2p?.root } }
        self.roots = roots.reduce(into: [[UInt8]]()) { if !$0.contains($1) { $0.append($1) } }
        var places = LedgerPlaces()
        var numbers: [Numbers] = []
        var publisher: UInt64 = 0
        var receiver: UInt64 = 0
        for group in groups {
            var own = Numbers()
            own.clients = group.load.receivingClients(hasP2P: !roots.isEmpty)
            own.receiver = UInt32(truncatingIfNeeded: receiver)
            let end = receiver + UInt64(own.clients.count)
            if !own.clients.isEmpty { places.receivers.append(Self.receivers(receiver..<end, group.name)) }
            let isNamed = group.load.streams.count > 1
            for stream in group.load.streams where group.load.publishes {
                own.publishers.append(UInt32(truncatingIfNeeded: publisher))
                let next = publisher + UInt64(group.load.publishers)
                places.streams.append(
                    LedgerPlaces.Stream(
                        publishers: UInt32(truncatingIfNeeded: publisher)..<UInt32(truncatingIfNeeded: next),
                        own: own.clients.lowerBound == 0 && !own.clients.isEmpty ? own.receiver : nil,
                        group: group.name,
                        name: isNamed ? stream.name : ""
                    )
                )
                publisher = next
            }
            receiver = end
            numbers.append(own)
        }
        // Share groups follow the clients.
        var index = FilterIndex()
        var shares: [ShareKey: UInt32] = [:]
        var members: [(number: UInt64, names: [String])] = []
        for (number, group) in groups.enumerated() {
            if findsReceivers {
                Self.enter(group.load, number, roots: self.roots, numbers[number].clients, into: &index)
            }
            for (key, _) in Self.shareFilters(of: group) {
                if let known = shares[key] {
                    let place = Int(UInt64(known) - receiver)
                    if !members[place].names.contains(group.name) { members[place].names.append(group.name) }
                } else {
                    shares[key] = UInt32(truncatingIfNeeded: receiver + UInt64(members.count))
                    members.append((receiver + UInt64(members.count), [group.name]))
                }
            }
        }
        for member in members {
            let name = member.names.joined(separator: "+")
            if let last = places.receivers.last, last.group == name,
                UInt64(last.numbers.upperBound) == member.number, members.first?.number ?? 0 < member.number
            {
                places.receivers[places.receivers.count - 1].numbers =
                    last.numbers.lowerBound..<UInt32(truncatingIfNeeded: member.number + 1)
            } else {
                places.receivers.append(Self.receivers(member.number..<member.number + 1, name))
            }
        }
        places.stages = groups.first?.load.stages.map { .init(name: $0.name, isMeasured: $0.measured) } ?? []
        self.places = places
        self.numbers = numbers
        self.shares = shares
        self.index = index
        self.hasRequests = groups.contains { $0.load.topology == .request }
        self.hasNoLocal = groups.contains { group in
            group.load.subscribeOptions.noLocal || group.load.filters.contains { $0.options.noLocal }
        }
        let most = UInt64(StreamKey.publisherLimit)
        self.problem =
            publisher >= most || receiver + UInt64(members.count) >= most
            ? "the ledger follows \(most) publishers and as many subscribers at most; use fewer clients or streams"
            : Self.problem(of: groups)
    }

    private static func receivers(_ numbers: Range<UInt64>, _ name: String) -> LedgerPlaces.Receivers {
        LedgerPlaces.Receivers(
            numbers: UInt32(truncatingIfNeeded: numbers.lowerBound)..<UInt32(truncatingIfNeeded: numbers.upperBound),
            group: name
        )
    }

    private static func enter(
        _ load: MQTTLoad,
        _ group: Int,
        roots: [[UInt8]],
        _ clients: Range<Int>,
        into index: inout FilterIndex
    ) {
        func enter(_ client: Int, as number: UInt32) {
            for (place, subscription) in load.subscriptions(of: client).enumerated() {
                index.insert(
                    Self.plain(subscription.filter),
                    FilterIndex.Entry(group: UInt16(group), filter: UInt16(place), client: number)
                )
            }
        }
        let subscribers = load.subscribingClients
        if load.filtersVary {
            for client in subscribers { enter(client, as: UInt32(client)) }
        } else if let first = subscribers.first {
            enter(first, as: FilterIndex.Entry.everyClient)
        }
        for (place, root) in roots.enumerated() {
            for client in clients {
                let topic = P2PTopic.topic(root: root, clientID: load.values(of: client).clientID)
                let entry = FilterIndex.Entry(
                    group: UInt16(group),
                    filter: UInt16.max - UInt16(place),
                    client: UInt32(client)
                )
                index.insert(String(decoding: topic, as: UTF8.self), entry)
            }
        }
    }

    /// The filter behind `$share/NAME/`.
    static func plain(_ filter: String) -> String {
        guard filter.hasPrefix("$share/") else { return filter }
        let parts = filter.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        return parts.count == 3 ? String(parts[2]) : filter
    }

    /// The share groups of a group's clients; of clients with the same filters only the first of each server counts.
    private static func shareFilters(of group: Group) -> [(ShareKey, client: Int)] {
        let load = group.load
        let clients = load.subscribingClients
        let tried = load.filtersVary || load.servers > 1 ? clients : clients.prefix(1)
        return tried.flatMap { client in
            load.subscriptions(of: client).filter { $0.filter.hasPrefix("$share/") }.map {
                (ShareKey(domain: group.domain, server: load.server(of: client), filter: $0.filter), client)
            }
        }
    }

    // MARK: - Numbers

    /// The ledger's number of a client's stream.
    package func publisher(group: Int, stream: Int, client: Int) -> UInt32 {
        guard stream < self.numbers[group].publishers.count else { return 0 }
        return self.numbers[group].publishers[stream] + UInt32(client)
    }

    /// The client that a publisher's number is of, and the place of its group.
    func sender(_ publisher: UInt32) -> (group: Int, client: Int)? {
        for (group, own) in self.numbers.enumerated() {
            let clients = UInt32(truncatingIfNeeded: self.groups[group].load.publishers)
            for first in own.publishers where publisher >= first && publisher - first < clients {
                return (group, Int(publisher - first))
            }
        }
        return nil
    }

    /// The receiver of a client's ordinary subscriptions; `nil` for a client that has none.
    package func receiver(group: Int, client: Int) -> UInt32? {
        let own = self.numbers[group]
        guard own.clients.contains(client) else { return nil }
        return own.receiver + UInt32(client - own.clients.lowerBound)
    }

    /// The share groups that a client is a member of, in the order of its filters.
    package func shareGroups(group: Int, client: Int) -> [UInt32] {
        let load = self.groups[group].load
        guard load.subscribingClients.contains(client) else { return [] }
        return load.subscriptions(of: client).compactMap { subscription in
            guard subscription.filter.hasPrefix("$share/") else { return nil }
            let key = ShareKey(
                domain: self.groups[group].domain,
                server: load.server(of: client),
                filter: subscription.filter
            )
            return self.shares[key]
        }
    }

    /// Whether a group has a share group's members.
    package func hasShares(group: Int) -> Bool { !Self.shareFilters(of: self.groups[group]).isEmpty }

    /// Publishers of the whole run.
    package var publishers: Int { self.places.streams.reduce(0) { $0 + $1.publishers.count } }
    package var hasPublishers: Bool { !self.places.streams.isEmpty }
    package var hasP2P: Bool { !self.roots.isEmpty }
    /// Whether a client may subscribe to its own topics and not receive them (MQTT 5.0 §3.8.3.1).
    let hasNoLocal: Bool
    /// Whether answers are under way, which carry the headers of their requests.
    let hasRequests: Bool

    /// Whether any receiver hears a publisher of the run.
    package var hasLedger: Bool { self.hasPublishers && !self.places.receivers.isEmpty }

    /// The place of a publisher's stream in the run; 0 in a run with one stream, or none.
    func stream(of publisher: UInt32) -> Int {
        self.places.streams.count < 2 ? 0 : self.places.stream(of: publisher) ?? 0
    }

    // MARK: - Audiences

    /// The receivers of a message that a client of a group publishes to a topic.
    ///
    /// `byProperty`: its header is in a user property, which receivers before MQTT 5 do not get.
    package func members(
        group: Int,
        client: Int,
        topic: ArraySlice<UInt8>,
        byProperty: Bool = false
    ) -> [AudienceMember] {
        let load = self.groups[group].load
        var members: [UInt32: AudienceMember] = [:]
        if load.topology == .request, let own = self.receiver(group: group, client: client) {
            // The answer comes back, at QoS 0.
            members[own] = AudienceMember(receiver: own, qos: 0)
        }
        let (domain, server) = (self.groups[group].domain, load.server(of: client))
        // A message to one client reaches no other, whatever the others subscribe to.
        let isP2P = self.roots.contains { topic.starts(with: P2PTopic.topic(root: $0, clientID: [])) }
        self.index.candidates(of: topic) { entry in
            guard isP2P == entry.isP2P else { return }
            if byProperty, self.groups[Int(entry.group)].load.version != .v5 { return }
            self.add(entry, topic, domain: domain, server: server, to: &members)
        }
        return Array(members.values)
    }

    private func add(
        _ entry: FilterIndex.Entry,
        _ topic: ArraySlice<UInt8>,
        domain: Int,
        server: Int,
        to members: inout [UInt32: AudienceMember]
    ) {
        let group = Int(entry.group)
        let load = self.groups[group].load
        // Responders answer, and requesters take only answers.
        guard self.groups[group].domain == domain, load.topology != .request else { return }
        if entry.isP2P { return self.addP2P(entry, topic, to: &members) }
        let clients = load.subscribingClients
        let isEvery = entry.client == FilterIndex.Entry.everyClient
        guard let first = isEvery ? clients.first : Int(entry.client) else { return }
        let subscription = load.subscriptions(of: first)[Int(entry.filter)]
        guard Self.matches(subscription.filter, topic) else { return }
        if subscription.filter.hasPrefix("$share/") {
            let key = ShareKey(domain: domain, server: server, filter: subscription.filter)
            guard let number = self.shares[key] else { return }
            guard isEvery || load.server(of: first) == server else { return }
            let qos = max(members[number]?.qos ?? 0, subscription.qos.rawValue)
            members[number] = AudienceMember(receiver: number, qos: qos, isShared: true)
            return
        }
        for client in isEvery ? clients : first..<first + 1 where load.server(of: client) == server {
            guard let number = self.receiver(group: group, client: client) else { continue }
            // Clients of a group may ask for different levels.
            let qos = isEvery ? load.requestedQoS(of: client, filter: Int(entry.filter)) : subscription.qos
            var member = members[number] ?? AudienceMember(receiver: number, copies: 0, qos: 0)
            member.copies += 1
            if subscription.noLocal {
                member.noLocal += 1
            } else {
                member.ownQoS = max(member.ownQoS, qos.rawValue)
            }
            member.qos = max(member.qos, qos.rawValue)
            members[number] = member
        }
    }

    private func addP2P(
        _ entry: FilterIndex.Entry,
        _ topic: ArraySlice<UInt8>,
        to members: inout [UInt32: AudienceMember]
    ) {
        let (group, client) = (Int(entry.group), Int(entry.client))
        let root = self.roots[Int(UInt16.max - entry.filter)]
        let own = P2PTopic.topic(root: root, clientID: self.groups[group].load.values(of: client).clientID)
        guard own.elementsEqual(topic), let number = self.receiver(group: group, client: client) else { return }
        var member = members[number] ?? AudienceMember(receiver: number, copies: 0, qos: 0)
        member.copies += 1
        member.qos = max(member.qos, 1)
        member.ownQoS = max(member.ownQoS, 1)
        members[number] = member
    }

    static func matches(_ filter: String, _ topic: ArraySlice<UInt8>) -> Bool {
        guard let filter = try? TopicFilter(validating: self.plain(filter)) else { return false }
        return topic.withUnsafeBytes { filter.matches(topic: $0) }
    }

    /// The client at a place among the clients that a stream's P2P messages go to.
    func target(_ place: Int, of p2p: MQTTLoad.P2PTarget) -> [UInt8] {
        var place = place
        for group in p2p.groups {
            let count = self.groups[group].load.clients
            if place < count { return self.groups[group].load.values(of: place).clientID }
            place -= count
        }
        return []
    }

    func targets(of p2p: MQTTLoad.P2PTarget) -> Int { p2p.groups.reduce(0) { $0 + self.groups[$1].load.clients } }
}

/// Topics of messages to one client: `ROOT/p2p/CLIENTID`.
enum P2PTopic {
    static func topic(root: [UInt8], clientID: [UInt8]) -> [UInt8] { root + Array("/p2p/".utf8) + clientID }
}
