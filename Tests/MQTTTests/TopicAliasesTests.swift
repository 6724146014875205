import MQTT
import TestSupport
import Testing

@Suite("Topic aliases of this side")
struct TopicAliasesTests {
    @Test("[MQTT-3.2.2-18] none are used before a CONNACK allows them")
    func noneBefore() {
        var aliases = TopicAliases()
        #expect(aliases.choose("a") == .topic)
        aliases.reset(maximum: 0)
        #expect(aliases.choose("a") == .topic)
        #expect(aliases.count == 0)
    }

    @Test("[MQTT-3.3.2-7] a new connection begins with none")
    func reset() {
        var aliases = TopicAliases()
        aliases.reset(maximum: 2)
        #expect([aliases.choose("a"), aliases.choose("a")] == [.define(1), .alias(1)])
        aliases.reset(maximum: 2)
        #expect([aliases.choose("b"), aliases.choose("a")] == [.define(1), .define(2)])
    }

    @Test("[MQTT-3.2.2-17] the server's maximum is kept, first come", arguments: [0, 1, 3] as [UInt16])
    func firstCome(_ wanted: UInt16) {
        var aliases = TopicAliases(wanted: wanted, policy: .firstCome)
        aliases.reset(maximum: 2)
        let most = min(wanted, 2)
        for (number, topic) in ["a", "b", "c", "a", "b", "c"].enumerated() {
            let place = UInt16(number % 3) + 1
            let expected: TopicAliases.Choice = place > most ? .topic : number < 3 ? .define(place) : .alias(place)
            #expect(aliases.choose(topic) == expected)
        }
    }

    @Test("the topic that was not used for the longest time gives its alias")
    func leastRecentlyUsed() {
        var aliases = TopicAliases()
        aliases.reset(maximum: 2)
        let topics = ["a", "b", "a", "c", "b", "c", "a"]
        #expect(
            topics.map { aliases.choose($0) } == [
                .define(1), .define(2), .alias(1), .define(2), .define(1), .alias(2), .define(1),
            ]
        )
        #expect(aliases.count == 2)
    }

    @Test("[MQTT-4.7.3-4] topics that only look the same have aliases of their own")
    func bytes() {
        var aliases = TopicAliases()
        aliases.reset(maximum: 2)
        let topics = ["\u{E9}", "e\u{301}", "\u{E9}"]
        #expect(topics.map { aliases.choose($0) } == [.define(1), .define(2), .alias(1)])
    }

    @Test("a receiver that follows the choices always knows the topic", arguments: 0..<20)
    func model(_ seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var aliases = TopicAliases(policy: seed % 2 == 0 ? .firstCome : .leastRecentlyUsed)
        var known: [UInt16: String] = [:]
        var maximum: UInt16 = 0
        for _ in 0..<2_000 {
            if Int.random(in: 0..<200, using: &generator) == 0 {
                maximum = UInt16.random(in: 0...12, using: &generator)
                aliases.reset(maximum: maximum)
                known = [:]
            }
            let topic = "t/\(Int.random(in: 0..<20, using: &generator))"
            switch aliases.choose(topic) {
            case .topic: #expect(!known.values.contains(topic))
            case .define(let alias):
                #expect((1...max(1, maximum)).contains(alias) && maximum > 0)
                known[alias] = topic
            case .alias(let alias): #expect(known[alias] == topic)
            }
            #expect(aliases.count <= Int(maximum))
        }
    }
}
