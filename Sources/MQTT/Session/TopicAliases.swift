/// The topic aliases that this side uses on one connection: topics to numbers, within the server's maximum.
///
/// Pure. A new connection starts without aliases ([MQTT-3.3.2-7]), so each CONNACK calls `reset`. An alias in use takes
/// about 100 bytes and its topic.
///
/// Spec: MQTT 5.0 §3.3.2.3.4.
package struct TopicAliases: Sendable {
    /// The handling of a new topic when all aliases are in use.
    package enum Policy: Hashable, Sendable {
        /// The topic is sent without an alias.
        case firstCome
        /// The topic takes the alias of the least recently used topic.
        case leastRecentlyUsed
    }

    /// The topic fields of a PUBLISH.
    package enum Choice: Hashable, Sendable {
        /// The topic alone.
        case topic
        /// The topic, and the alias that stands for it from now on.
        case define(UInt16)
        /// The alias, with an empty topic.
        case alias(UInt16)
    }

    /// Topics by their bytes: characters that look equal may have different bytes ([MQTT-4.7.3-4]).
    private typealias Key = [UInt8]

    private struct Entry {
        var topic: Key
        /// Indexes in ``entries``, in order of use.
        var older: Int32
        var newer: Int32
    }

    private static let none: Int32 = -1

    package let policy: Policy
    /// Aliases that this side wants to use.
    private let wanted: UInt16
    /// The smaller of ``wanted`` and the server's maximum; 0 before CONNACK.
    package private(set) var maximum: UInt16 = 0
    /// Alias 1 is at index 0.
    private var entries: [Entry] = []
    private var places: [Key: Int32] = [:]
    private var oldest = Self.none
    private var newest = Self.none

    /// - Parameters:
    ///   - wanted: aliases used at most; the server's maximum may be lower.
    ///   - policy: the handling of topics beyond them.
    package init(wanted: UInt16 = .max, policy: Policy = .leastRecentlyUsed) {
        self.wanted = wanted
        self.policy = policy
    }

    /// Aliases in use.
    package var count: Int { self.entries.count }

    /// Clears the table for a new connection whose CONNACK allows `maximum` ([MQTT-3.2.2-17], [MQTT-3.2.2-18]).
    package mutating func reset(maximum: UInt16) {
        self.maximum = min(self.wanted, maximum)
        self.entries.removeAll()
        self.places.removeAll()
        self.oldest = Self.none
        self.newest = Self.none
    }

    /// Chooses the topic fields of a PUBLISH, which must be sent after all chosen before.
    package mutating func choose(_ topic: String) -> Choice {
        let topic = Key(topic.utf8)
        if let place = self.places[topic] {
            self.touch(place)
            return .alias(Self.alias(place))
        }
        if self.entries.count < Int(self.maximum) {
            let place = Int32(self.entries.count)
            self.entries.append(Entry(topic: topic, older: Self.none, newer: Self.none))
            self.places[topic] = place
            self.link(place)
            return .define(Self.alias(place))
        }
        guard self.policy == .leastRecentlyUsed, self.oldest != Self.none else { return .topic }
        let place = self.oldest
        self.places[self.entries[Int(place)].topic] = nil
        self.entries[Int(place)].topic = topic
        self.places[topic] = place
        self.touch(place)
        return .define(Self.alias(place))
    }

    private static func alias(_ place: Int32) -> UInt16 { UInt16(place + 1) }

    /// Makes it the newest.
    private mutating func touch(_ place: Int32) {
        guard place != self.newest else { return }
        let entry = self.entries[Int(place)]
        if entry.older != Self.none {
            self.entries[Int(entry.older)].newer = entry.newer
        } else {
            self.oldest = entry.newer
        }
        // It is not the newest, so there is a newer one.
        self.entries[Int(entry.newer)].older = entry.older
        self.link(place)
    }

    private mutating func link(_ place: Int32) {
        self.entries[Int(place)].older = self.newest
        self.entries[Int(place)].newer = Self.none
        if self.newest != Self.none { self.entries[Int(self.newest)].newer = place }
        self.newest = place
        if self.oldest == Self.none { self.oldest = place }
    }
}
