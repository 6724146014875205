import Ledger
import MQTT
import MQTTCodec
import Measurement
import TestSupport
import Testing
import Workloads

/// The debt to a SUBSCRIBE, against a model that keeps every message and asks every possible server.
@Suite("Stored copies that a SUBSCRIBE is owed")
struct RetainedTopicsTests {
    /// The messages to one topic in their order, of one sender.
    private struct History {
        /// Whether each clears the topic.
        var clears: [Bool] = []
        var acknowledged = 0

        /// A server has taken at least what it has acknowledged, and at most all.
        var isOwed: Bool {
            (self.acknowledged...self.clears.count).allSatisfy { $0 > 0 && !self.clears[$0 - 1] }
        }
    }

    private struct Visit {
        var visit: RetainedVisit
        var before: [History]
        var topics: [Int]
        var came: Set<Int> = []
        /// Topics of which something newer came.
        var newer: Set<Int> = []
        var stale = 0
        var counted = 0
    }

    private static let topics = ["s/1/a", "s/1/b", "s/2/a", "s/2/b", "s/3/c/d", "other"]
    private static let patterns = ["#", "s/#", "s/+/a", "s/1/+", "s/%i/#", "+/+/b", "$share/g/s/#", "s/2/b", "none/#"]

    private static func matches(_ filter: String, _ topic: String) -> Bool {
        guard !filter.hasPrefix("$share/") else { return false }
        let (filter, topic) = (filter.split(separator: "/"), topic.split(separator: "/"))
        for (place, level) in filter.enumerated() {
            if level == "#" { return true }
            guard place < topic.count, level == "+" || level == topic[place] else { return false }
        }
        return filter.count == topic.count
    }

    private static func load(_ filters: [MQTTLoad.FilterTemplate]) -> MQTTLoad {
        var load = MQTTLoad.small(.fanIn, publishers: 0, subscribers: 3, qualities: [])
        load.subscriberQualities = [.atLeastOnce]
        load.filters = filters
        return load
    }

    @Test("of 500 random plans, agree with a model that keeps all", arguments: 0..<500)
    func random(_ seed: Int) {
        var dice = SplitMix64(seed: UInt64(seed))
        let filters = (0..<Int.random(in: 1...3, using: &dice)).map { _ in
            var options = MQTTLoad.SubscriptionOptions()
            options.retainHandling = Subscription.RetainHandling.allCases.randomElement(using: &dice) ?? .send
            let pattern = Self.patterns.randomElement(using: &dice) ?? "#"
            return MQTTLoad.FilterTemplate(Template(parsing: pattern), options: options)
        }
        let load = Self.load(filters)
        let plan = DeliveryPlan([DeliveryPlan.Group(load: load)])
        let isPerClient = filters.contains { $0.template.variesPerClient }

        var (board, histories) = (RetainedTopics(), Array(repeating: History(), count: Self.topics.count))
        var numbers: [Int] = []
        for topic in Self.topics {
            let readers = plan.readers(ofRetained: Array(topic.utf8)[...], group: 0)
            numbers.append(board.add(Array(topic.utf8), server: 0, readers: readers) ?? -1)
        }
        #expect(numbers == Array(Self.topics.indices))
        var visits: [Int: Visit] = [:]

        func end(_ client: Int) {
            guard let open = visits.removeValue(forKey: client) else { return }
            let owed = open.topics.filter { open.before[$0].isOwed }
            let missing = owed.filter { topic in
                let later = histories[topic].clears.dropFirst(open.before[topic].clears.count)
                return !open.came.contains(topic) && !open.newer.contains(topic) && !later.contains(true)
            }
            #expect(open.visit.expected == owed.count)
            #expect(open.visit.received == open.came.intersection(owed).count)
            #expect(open.visit.awaited == Set(owed).subtracting(open.came).subtracting(open.newer).count)
            #expect(open.visit.missing(board) == missing.count)
            #expect(open.counted == open.stale)
        }

        for _ in 0..<120 {
            let topic = Int.random(in: 0..<histories.count, using: &dice)
            let client = Int.random(in: 0..<3, using: &dice)
            switch Int.random(in: 0..<10, using: &dice) {
            case 0..<3:
                let isClear = Int.random(in: 0..<4, using: &dice) == 0
                histories[topic].clears.append(isClear)
                board.wrote(topic, by: 1, isClear: isClear)
            case 3..<6:
                let next = histories[topic].acknowledged
                guard next < histories[topic].clears.count else { continue }
                histories[topic].acknowledged += 1
                let value = RetainedTopics.Value(publisher: UInt32(topic), sequence: UInt64(next))
                board.ended(topic, value, isClear: histories[topic].clears[next])
            case 6:
                end(client)
                let isNew = Bool.random(using: &dice)
                let reader = DeliveryPlan.reader(group: 0, client: isPerClient ? UInt32(client) : .max)
                let asked = load.subscriptions(of: client).filter {
                    $0.retainHandling == .send || $0.retainHandling == .sendIfNew && isNew
                }
                let heard = Self.topics.indices.filter { topic in
                    asked.contains { Self.matches($0.filter, Self.topics[topic]) }
                }
                let visit = board.visit(of: reader, isNew: isNew)
                visits[client] = Visit(visit: visit, before: histories, topics: heard)
            default:
                // A message of any age, stored or live; a live one is not older than the subscription.
                guard var open = visits[client], open.topics.contains(topic), !histories[topic].clears.isEmpty else {
                    continue
                }
                let isCopy = Bool.random(using: &dice)
                let known = open.before[topic].acknowledged
                let from = isCopy ? max(0, known - 3) : known
                guard from < histories[topic].clears.count else { continue }
                let message = Int.random(in: from..<histories[topic].clears.count, using: &dice)
                guard !histories[topic].clears[message] else { continue }
                let isStale = message + 1 < known
                if isCopy, isStale { open.stale += 1 }
                if isCopy { open.came.insert(topic) } else if !isStale { open.newer.insert(topic) }
                let value = RetainedTopics.Value(publisher: UInt32(topic), sequence: UInt64(message))
                if open.visit.arrived(topic, value, isCopy: isCopy).contains(.stale) { open.counted += 1 }
                visits[client] = open
            }
        }
        for client in 0..<3 { end(client) }
    }
}
