import Ledger
import TestSupport

/// A random plan of a run: who publishes and who subscribes what, and what the network and the server do.
struct ProofPlan: Sendable {
    /// What a message reaches: a client's session, or a share group.
    enum Target: Hashable, Sendable {
        case client(Int)
        case share(Int)

        /// A place in an order of all targets.
        var place: Int {
            switch self {
            case .client(let client): client
            case .share(let share): -1 - share
            }
        }
    }

    struct Filter: Hashable, Sendable {
        /// The topics that match.
        var topics: Set<Int>
        var qos: UInt8
        var noLocal = false
    }

    struct Stream: Hashable, Sendable {
        var topics: [Int]
        var qos: UInt8
        var isRetained = false
        var expires = false
    }

    struct Group: Sendable {
        var clients: Range<Int>
        var streams: [Stream] = []
        /// Plain filters; a group has these, or a share group, or neither.
        var filters: [Filter] = []
        var share: Int?
        /// Sessions outlive connections, unless they expire: after so many steps.
        var keepsSessions = false
        var expiry = Int.max
        /// The server sends a copy per matching filter (MQTT 5.0 §3.3.4).
        var copiesPerFilter = false
        /// The highest QoS that the server grants.
        var grant: UInt8 = 2
        /// SUBACK has a code of 0x80 or above.
        var isRefused = false
        /// Retain As Published, with Retain Handling 2.
        var retainsAsPublished = false
        /// Publishers send messages without an acknowledgement again, even without a session.
        var resends = false
        var leaves = 0.0
    }

    /// The messages under way when the run ends.
    enum Ending: CaseIterable {
        case nothing
        /// Some receivers' connections hang, with messages for them.
        case deliveries
        /// Some publishers' connections hang, with messages of theirs, or without their answers.
        case publishes
        /// The drain is too short for anything.
        case anything
    }

    /// Matching filters of one target.
    struct Reach: Hashable, Sendable {
        var target: Target
        var filters: [Filter]
    }

    /// What distinguishes the targets of topics for the ledger: topics with the same are one audience.
    struct Signature: Hashable, Sendable {
        var target: Target
        var copies: Int
        var noLocal: Int
        var qos: UInt8
        var ownQoS: UInt8

        init(_ reach: Reach) {
            let open = reach.filters.filter { !$0.noLocal }
            self.target = reach.target
            self.copies = reach.filters.count
            self.noLocal = reach.filters.count - open.count
            self.qos = reach.filters.map(\.qos).max() ?? 0
            self.ownQoS = open.map(\.qos).max() ?? 0
        }
    }

    let seed: UInt64
    var groups: [Group] = []
    /// By client: its group.
    var groupOf: [Int] = []
    var shares: [Filter] = []
    var topics = 0
    var steps = 0
    /// Steps in which a route to a new subscription spreads; 0 without a cluster.
    var clusterDelay = 0
    /// The server loses sessions of clients that are away.
    var losesSessions = 0.0
    /// It keeps QoS 0 for clients that are away.
    var queuesAll = false
    /// It sends queued messages first, and then those that it had sent before.
    var redeliversLast = false
    /// Messages of a member that leaves go to another one.
    var redistributes = false
    var loops = 1
    var ending = Ending.nothing
    /// By topic.
    private(set) var reach: [[Reach]] = []
    private(set) var signatures: [[Signature]] = []

    init(seed: UInt64) {
        self.seed = seed
        var dice = SeededDice(seed: seed)
        self.steps = .random(in: 24...40, using: &dice)
        self.topics = .random(in: 2...6, using: &dice)
        self.loops = .random(in: 1...3, using: &dice)
        if dice.hits(0.4) { self.clusterDelay = .random(in: 2...5, using: &dice) }
        if dice.hits(0.5) { self.losesSessions = 0.15 }
        self.queuesAll = dice.hits(0.3)
        self.redeliversLast = dice.hits(0.3)
        self.redistributes = dice.hits(0.6)
        self.shares = (0..<Int.random(in: 0...2, using: &dice)).map { _ in self.filter(&dice) }
        let count = Int.random(in: 2...6, using: &dice)
        for index in 0..<count { self.addGroup(isFirst: index == 0, &dice) }
        self.reach = (0..<self.topics).map(self.targets(of:))
        self.signatures = self.reach.map { $0.map(Signature.init) }
        if dice.hits(0.5) { self.ending = Ending.allCases.randomElement(using: &dice) ?? .nothing }
    }

    private func filter(_ dice: inout SeededDice) -> Filter {
        let isWide = dice.hits(0.4)
        return Filter(
            topics: Set((0..<self.topics).filter { _ in isWide || dice.hits(0.5) }),
            qos: .random(in: 0...2, using: &dice),
            noLocal: dice.hits(0.3)
        )
    }

    private mutating func addGroup(isFirst: Bool, _ dice: inout SeededDice) {
        var group = Group(clients: self.groupOf.count..<self.groupOf.count + Int.random(in: 1...3, using: &dice))
        let kind = isFirst ? 0 : Int.random(in: 0...3, using: &dice)
        if kind != 1 {
            for _ in 0..<Int.random(in: 1...2, using: &dice) {
                self.addStream(to: &group, &dice)
            }
        }
        if kind != 0 || isFirst {
            if !self.shares.isEmpty, dice.hits(0.45) {
                group.share = .random(in: self.shares.indices, using: &dice)
            } else {
                group.filters = (0..<Int.random(in: 1...3, using: &dice)).map { _ in self.filter(&dice) }
            }
        }
        group.keepsSessions = dice.hits(0.6)
        if dice.hits(0.5) { group.expiry = .random(in: 2...6, using: &dice) }
        group.copiesPerFilter = dice.hits(0.5)
        group.grant = dice.hits(0.25) ? .random(in: 0...1, using: &dice) : 2
        group.isRefused = group.share == nil && dice.hits(0.05)
        group.retainsAsPublished = dice.hits(0.5)
        group.resends = dice.hits(0.6)
        group.leaves = dice.hits(0.75) ? 0.12 : 0
        self.groupOf += Array(repeating: self.groups.count, count: group.clients.count)
        self.groups.append(group)
    }

    private func addStream(to group: inout Group, _ dice: inout SeededDice) {
        let count = Int.random(in: 1...3, using: &dice)
        group.streams.append(
            Stream(
                topics: (0..<count).map { _ in Int.random(in: 0..<self.topics, using: &dice) },
                qos: .random(in: 0...2, using: &dice),
                isRetained: dice.hits(0.4),
                expires: dice.hits(0.25)
            )
        )
    }

    private func targets(of topic: Int) -> [Reach] {
        var all: [Reach] = []
        for group in self.groups {
            let matching = group.filters.filter { $0.topics.contains(topic) }
            guard !matching.isEmpty else { continue }
            all += group.clients.map { Reach(target: .client($0), filters: matching) }
        }
        for (share, filter) in self.shares.enumerated() {
            guard filter.topics.contains(topic), self.groups.contains(where: { $0.share == share }) else { continue }
            all.append(Reach(target: .share(share), filters: [filter]))
        }
        return all
    }

    func group(of client: Int) -> Group { self.groups[self.groupOf[client]] }

    /// The filters of a target by which it is due of a message of this client.
    func filters(of reach: Reach, from client: Int) -> [Filter] {
        guard reach.target == .client(client) else { return reach.filters }
        return reach.filters.filter { !$0.noLocal }
    }

    /// The highest QoS that every filter of the target was granted at least.
    func grant(of target: Target) -> UInt8 {
        switch target {
        case .client(let client): self.group(of: client).grant
        case .share(let share): self.groups.filter { $0.share == share }.map(\.grant).min() ?? 2
        }
    }
}
