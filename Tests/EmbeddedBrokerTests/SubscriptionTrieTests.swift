import EmbeddedBroker
import FaultInjection
import MQTTCodec
import NIOCore
import Testing

@Suite("The tree of filters")
struct SubscriptionTrieTests {
    /// All texts of up to three of these levels.
    static func texts(_ levels: [String]) -> [String] {
        var texts = levels
        for first in levels {
            for second in levels {
                texts.append("\(first)/\(second)")
                for third in levels { texts.append("\(first)/\(second)/\(third)") }
            }
        }
        return texts
    }

    @Test("finds for each topic the filters that match it one by one, before and after half of them are gone")
    func bruteForce() throws {
        let filters = Self.texts(["a", "b", "", "$SYS", "+", "#"]).compactMap { try? TopicFilter(validating: $0) }
        let topics = Self.texts(["a", "b", "", "$SYS", "c"]).filter { !$0.isEmpty }
        #expect(filters.count > 100)
        var trie = SubscriptionTrie()
        for (index, filter) in filters.enumerated() { trie.insert(Int32(index), under: Array(filter.filter.utf8)) }
        Self.check(trie, filters, topics) { _ in true }
        for (index, filter) in filters.enumerated() where index % 2 == 1 {
            trie.remove(Int32(index), under: Array(filter.filter.utf8))
        }
        Self.check(trie, filters, topics) { $0 % 2 == 0 }
        for (index, filter) in filters.enumerated() where index % 2 == 0 {
            trie.remove(Int32(index), under: Array(filter.filter.utf8))
        }
        #expect(trie.isEmpty)
    }

    private static func check(
        _ trie: SubscriptionTrie,
        _ filters: [TopicFilter],
        _ topics: [String],
        isThere: (Int) -> Bool
    ) {
        for topic in topics {
            var found: [Int] = []
            trie.match(Array(topic.utf8)) { found.append(Int($0)) }
            let expected = filters.indices.filter { isThere($0) && filters[$0].matches(topic: topic) }
            #expect(found.sorted() == expected, "\(topic)")
        }
    }
}

@Suite("The gate of max-rate")
struct RateGateTests {
    @Test("lets a rate through over time, whatever the steps", arguments: [1, 3, 20] as [Int64])
    func rate(_ stepMilliseconds: Int64) {
        var now = NIODeadline.uptimeNanoseconds(5_000_000_000)
        var gate = RateGate(rate: 400, now: now)
        gate.take(gate.available(now: now))
        var passed = 0
        for _ in 0..<(10_000 / stepMilliseconds) {
            now = now + .milliseconds(stepMilliseconds)
            let available = gate.available(now: now)
            gate.take(available)
            passed += available
        }
        // A pause is not made up for: of the 8 that 20 ms are worth, no more gather than 5 ms are worth, and one.
        let expected = stepMilliseconds == 20 ? 1_500 : 4_000
        #expect(abs(passed - expected) <= 12)
    }

    @Test("cuts a stream in front of the PUBLISH that may not pass, however it comes in", arguments: 1...9)
    func scanner(_ chunk: Int) {
        var stream = ByteBuffer()
        Packet.pingReq.encode(as: .v5, into: &stream)
        for number in 0..<3 {
            let publish = Publish(topic: "t", payload: ByteBuffer(repeating: 0x33, count: number * 100))
            publish.encode(as: .v5, into: &stream)
            PubAck(1).encode(as: .v5, into: &stream)
        }
        let bytes = Array(stream.readableBytesView)
        var ends: [Int] = []
        var scanner = PublishScanner()
        var offset = 0
        for _ in 0..<4 {
            var budget = 1
            while offset < bytes.count {
                let end = min(offset + chunk, bytes.count)
                let taken = bytes[offset..<end].withUnsafeBytes { scanner.prefix(of: $0, budget: &budget) }
                offset += taken
                if taken < end - (offset - taken) { break }
            }
            ends.append(offset)
        }
        // PINGREQ 2, PUBLISH 6 and PUBACK 4, 106 and 4 in each round: t, no properties, length of one byte; then two.
        #expect(ends == [2 + 6 + 4, 12 + 106 + 4, 122 + 207 + 4, 333])
    }
}
