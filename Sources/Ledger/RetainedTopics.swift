/// The topics in which a run retains values, each as far as the server has acknowledged it, and who reads it.
///
/// The server stores a value, or clears the topic, before it acknowledges the PUBLISH (MQTT 5.0 §3.3.1.3). So a
/// subscription is owed what was acknowledged before its SUBSCRIBE was written, or something newer.
package struct RetainedTopics: Sendable {
    /// A message by its publisher in the ledger and its number there.
    package struct Value: Hashable, Sendable {
        package var publisher: UInt32
        package var sequence: UInt64

        package init(publisher: UInt32, sequence: UInt64) {
            self.publisher = publisher
            self.sequence = sequence
        }
    }

    /// A topic at one moment.
    package struct Topic: Hashable, Sendable {
        fileprivate enum State { case unknown, set, cleared }

        fileprivate var state = State.unknown
        /// The last acknowledged value, also where it was cleared since.
        fileprivate var value: Value?
        /// Messages so far that clear it, and those of them without an end.
        fileprivate var clears: UInt32 = 0
        fileprivate var clearing: UInt32 = 0
        /// The last writer: messages of one connection at one QoS are acknowledged in the order of their writes.
        fileprivate var sender: UInt64?
        fileprivate var hasSenders = false

        /// Whether a value is there whatever is in flight; of several senders nothing tells the order.
        package var isOwed: Bool { self.state == .set && self.clearing == 0 && !(self.hasSenders && self.clears > 0) }
    }

    /// A topic on one of several servers.
    private struct Key: Hashable {
        var server: Int
        var name: [UInt8]
    }

    /// A client that reads topics, or all clients of a group, by a number that the caller gives.
    package typealias Reader = UInt64

    /// Further topics are not followed.
    package static let most = 65_536

    fileprivate var topics: [Topic] = []
    private var numbers: [Key: UInt32] = [:]
    /// The topics of each reader in rising order: twice the number, plus 1 for a subscription with Retain Handling 1.
    private var lists: [Reader: [UInt32]] = [:]

    package init() {}

    /// The number of a topic; `nil` of one that is not followed.
    package func number(_ name: [UInt8], server: Int) -> Int? {
        self.numbers[Key(server: server, name: name)].map { Int($0) }
    }

    /// The same, with a new number for a new topic; `readers`: with whether only a new subscription gets a copy.
    package mutating func add(_ name: [UInt8], server: Int, readers: [Reader: Bool]) -> Int? {
        if let known = self.number(name, server: server) { return known }
        guard self.topics.count < Self.most else { return nil }
        let number = UInt32(self.topics.count)
        self.numbers[Key(server: server, name: name)] = number
        self.topics.append(Topic())
        for (reader, isOnlyForNew) in readers {
            self.lists[reader, default: []].append(number << 1 | (isOnlyForNew ? 1 : 0))
        }
        return Int(number)
    }

    /// A message was written, by a client at a QoS; `isClear`: without payload, `isAwaited`: it is acknowledged.
    package mutating func wrote(_ number: Int, by sender: UInt64, isClear: Bool, isAwaited: Bool = true) {
        if self.topics[number].sender ?? sender != sender { self.topics[number].hasSenders = true }
        self.topics[number].sender = sender
        guard isClear else { return }
        self.topics[number].clears += 1
        if isAwaited { self.topics[number].clearing += 1 } else { self.topics[number].state = .unknown }
    }

    /// A message has come to its end; without `isAcknowledged` it was refused, or its fate is unknown.
    package mutating func ended(_ number: Int, _ value: Value, isClear: Bool, isAcknowledged: Bool = true) {
        let known = self.topics[number].value
        if isClear {
            self.topics[number].clearing -= min(1, self.topics[number].clearing)
            self.topics[number].state = isAcknowledged ? .cleared : .unknown
        } else if isAcknowledged {
            self.topics[number].state = .set
            if known?.publisher != value.publisher || known?.sequence ?? 0 < value.sequence {
                self.topics[number].value = value
            }
        }
    }

    /// The debt to a client whose SUBSCRIBE is written now; `isNew`: the server keeps no subscription of it.
    package func visit(of reader: Reader, isNew: Bool) -> RetainedVisit {
        let list = (self.lists[reader] ?? []).filter { isNew || $0 & 1 == 0 }
        return RetainedVisit(list.map { RetainedVisit.Entry(number: $0 >> 1, topic: self.topics[Int($0 >> 1)]) })
    }
}

/// The copies that one SUBSCRIBE of a client is owed, and those that came.
package struct RetainedVisit: Sendable {
    package struct Arrival: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The first copy of a topic that was owed.
        package static let owed = Arrival(rawValue: 1)
        /// A copy of an older value than the last one, or of one that was cleared.
        package static let stale = Arrival(rawValue: 2)
    }

    /// A topic of the client, as it was at the SUBSCRIBE.
    fileprivate struct Entry: Sendable {
        let number: UInt32
        let topic: RetainedTopics.Topic
        var hasCome = false
        /// A newer message of the topic came, so that its copy need not.
        var isSuperseded = false
    }

    private var entries: [Entry]
    package let expected: Int
    package private(set) var received = 0
    /// Copies that have yet to come.
    package private(set) var awaited: Int

    fileprivate init(_ entries: [Entry]) {
        self.entries = entries
        self.expected = entries.count { $0.topic.isOwed }
        self.awaited = self.expected
    }

    /// Whether the client reads any topic that the run retains a value in.
    package var isEmpty: Bool { self.entries.isEmpty }

    /// Whether some topic was cleared, whose copy would be stale.
    package var hasCleared: Bool { self.entries.contains { $0.topic.state == .cleared } }

    /// A message arrived.
    ///
    /// - Parameters:
    ///   - number: its topic.
    ///   - value: `nil` of a message whose header cannot be read.
    ///   - isForeign: it is of another run.
    ///   - isCopy: it has the RETAIN flag.
    /// - Returns: what it was.
    package mutating func arrived(
        _ number: Int,
        _ value: RetainedTopics.Value?,
        isForeign: Bool = false,
        isCopy: Bool
    ) -> Arrival {
        guard let place = self.place(of: number) else { return [] }
        let topic = self.entries[place].topic
        // Of two publishers nothing tells the order.
        let isOlder = topic.value.map { $0.publisher == value?.publisher && $0.sequence > value?.sequence ?? .max }
        let wasCleared = topic.state == .cleared && topic.value == value && !topic.hasSenders
        let isStale = topic.value != nil && (isForeign || isOlder ?? false || wasCleared)
        guard isCopy else {
            if topic.isOwed, !isStale, !self.entries[place].isSuperseded {
                self.entries[place].isSuperseded = true
                if !self.entries[place].hasCome { self.awaited -= 1 }
            }
            return []
        }
        guard topic.isOwed, !self.entries[place].hasCome else { return isStale ? .stale : [] }
        self.entries[place].hasCome = true
        if !self.entries[place].isSuperseded { self.awaited -= 1 }
        self.received += 1
        return isStale ? [.owed, .stale] : .owed
    }

    /// The number of copies that have not come, without topics that were cleared or changed since.
    package func missing(_ now: RetainedTopics) -> Int {
        self.entries.count { entry in
            entry.topic.isOwed && !entry.hasCome && !entry.isSuperseded
                && now.topics[Int(entry.number)].clears == entry.topic.clears
        }
    }

    private func place(of number: Int) -> Int? {
        var (low, high) = (0, self.entries.count)
        while low < high {
            let middle = (low + high) / 2
            if Int(self.entries[middle].number) < number { low = middle + 1 } else { high = middle }
        }
        return low < self.entries.count && Int(self.entries[low].number) == number ? low : nil
    }
}
