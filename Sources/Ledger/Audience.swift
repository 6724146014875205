/// A receiver among those that a message reaches.
package struct AudienceMember: Hashable, Sendable {
    /// The client's session, or the share group, by its number in the run.
    package var receiver: UInt32
    /// The receiver's filters that match, and how many of them are No Local (MQTT 5.0 §3.8.3.1).
    package var copies: UInt16
    package var noLocal: UInt16
    /// The highest QoS that the matching filters request.
    package var qos: UInt8
    /// The highest QoS that those request that are not No Local.
    package var ownQoS: UInt8
    /// The receiver is a share group.
    package var isShared: Bool

    package init(
        receiver: UInt32,
        copies: UInt16 = 1,
        noLocal: UInt16 = 0,
        qos: UInt8,
        ownQoS: UInt8? = nil,
        isShared: Bool = false
    ) {
        self.receiver = receiver
        self.copies = copies
        self.noLocal = noLocal
        self.qos = qos
        self.ownQoS = ownQoS ?? qos
        self.isShared = isShared
    }

    /// The copies that the receiver is due of a publisher whose own client is `own`.
    package func copies(from own: UInt32?) -> Int {
        Int(self.copies) - (own == self.receiver ? Int(self.noLocal) : 0)
    }
}

/// The audiences of one event loop's publishers: each set of receivers once.
///
/// The number of a set goes into the header of each message. 0 is the empty set. A set takes 12 bytes per member, and
/// some 10 bytes.
package struct AudienceTable: Sendable {
    /// The members of all sets, one set after the other, each sorted by receiver.
    private var members: [AudienceMember] = []
    /// The end of the members of each set.
    private var ends: [UInt32] = [0]
    /// Numbers of sets by the hash of their members: open addressing, a power of two, 0 is free.
    private var table: [UInt32] = Array(repeating: 0, count: 16)
    /// Receivers and the sets that they are in, sorted; made when it is asked for.
    private var byReceiver: [(receiver: UInt32, audience: UInt32)] = []
    private var indexed = 1
    /// A set had no number left.
    package private(set) var overflowed = false

    package init() {}

    package var count: Int { self.ends.count }

    /// The receivers of a set.
    package subscript(audience: UInt32) -> ArraySlice<AudienceMember> {
        guard audience > 0 else { return [] }
        return self.members[Int(self.ends[Int(audience) - 1])..<Int(self.ends[Int(audience)])]
    }

    /// The members by the audience's number, as values for the end of a run.
    package var audiences: [[AudienceMember]] { (0..<UInt32(self.count)).map { Array(self[$0]) } }

    /// The number of a set of receivers; the empty set's, once the header has no number left.
    package mutating func number(of members: [AudienceMember]) -> UInt32 {
        guard !members.isEmpty else { return 0 }
        let sorted = members.count > 1 ? members.sorted { $0.receiver < $1.receiver } : members
        var place = self.place(of: sorted[...])
        while self.table[place] > 0 {
            if self[self.table[place]] == sorted[...] { return self.table[place] }
            place = (place + 1) & (self.table.count - 1)
        }
        guard self.count < Int(StreamKey.audienceLimit) else {
            self.overflowed = true
            return 0
        }
        let number = UInt32(self.count)
        self.members += sorted
        self.ends.append(UInt32(self.members.count))
        self.table[place] = number
        if self.count * 4 > self.table.count * 3 { self.grow() }
        return number
    }

    private func place(of members: ArraySlice<AudienceMember>) -> Int {
        var hasher = Hasher()
        for member in members { hasher.combine(member) }
        return hasher.finalize() & (self.table.count - 1)
    }

    private mutating func grow() {
        self.table = Array(repeating: 0, count: self.table.count * 2)
        for number in 1..<UInt32(self.count) {
            var place = self.place(of: self[number])
            while self.table[place] > 0 { place = (place + 1) & (self.table.count - 1) }
            self.table[place] = number
        }
    }

    /// The sets that a receiver is in.
    package mutating func audiences(with receiver: UInt32) -> [UInt32] {
        if self.indexed < self.count {
            for number in UInt32(self.indexed)..<UInt32(self.count) {
                for member in self[number] { self.byReceiver.append((member.receiver, number)) }
            }
            self.indexed = self.count
            self.byReceiver.sort { ($0.receiver, $0.audience) < ($1.receiver, $1.audience) }
        }
        let first = self.byReceiver.partitionPoint { $0.receiver >= receiver }
        return self.byReceiver[first...].prefix { $0.receiver == receiver }.map(\.audience)
    }
}
