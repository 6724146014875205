import MQTT
import MQTTCodec
import MQTTSQLiteStore
import StoreVictim
import Synchronization
import Testing
import TestSupport

@Suite("A store on disk")
struct MQTTSQLiteStoreTests {
    // MARK: - What is kept

    struct Steps: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let commits: [[MQTTStoreChange]]
        let expected: [MQTTStoredMessage]

        init(_ name: String, _ commits: [[MQTTStoreChange]], _ expected: [MQTTStoredMessage]) {
            self.testDescription = name
            self.commits = commits
            self.expected = expected
        }
    }

    static let lives: [Steps] = [
        Steps("a queued message", [[.insert(.of(1))]], [.of(1)]),
        Steps(
            "a published one",
            [[.insert(.of(1))], [.advance(sequence: 1, to: .published(7))]],
            [.of(1, .published(7))]
        ),
        Steps(
            "a released one",
            [
                [
                    .insert(.of(1)), .advance(sequence: 1, to: .published(65_535)),
                    .advance(sequence: 1, to: .released(65_535)),
                ]
            ],
            [.of(1, .released(65_535))]
        ),
        Steps("back in the queue", [[.insert(.of(1, .published(7))), .advance(sequence: 1, to: .queued)]], [.of(1)]),
        Steps("a removed one", [[.insert(.of(1)), .insert(.of(2))], [.remove(sequence: 1)]], [.of(2)]),
        Steps("a received one", [[.insert(.of(5, .received(9)))]], [.of(5, .received(9))]),
        Steps(
            "a forgotten one",
            [[.insert(.of(5, .received(9))), .insert(.of(6, .received(8)))], [.forget(9)]],
            [.of(6, .received(8))]
        ),
        Steps(
            "the same place in the order, and the same identifier, in both directions",
            [[.insert(.of(5, .received(9))), .insert(.of(5, .published(9)))]],
            [.of(5, .published(9)), .of(5, .received(9))]
        ),
        Steps(
            "removing and forgetting each in their own direction",
            [[.insert(.of(5, .received(9))), .insert(.of(5, .published(9))), .remove(sequence: 9), .forget(5)]],
            [.of(5, .published(9)), .of(5, .received(9))]
        ),
        Steps(
            "nothing of a session that is gone",
            [[.insert(.of(1)), .insert(.of(2, .received(9)))], [.removeAll, .insert(.of(1, .queued, "new"))]],
            [.of(1, .queued, "new")]
        ),
        Steps(
            "an identifier that is used again",
            [[.insert(.of(5, .received(9)))], [.forget(9), .insert(.of(6, .received(9)))]],
            [.of(6, .received(9))]
        ),
        Steps(
            "steps for what is not there are none",
            [[.advance(sequence: 3, to: .published(1)), .remove(sequence: 3), .forget(3), .removeAll], []],
            []
        ),
    ]

    @Test("keeps each step of a message, and still has it when it is opened again", arguments: Self.lives)
    func keeps(_ steps: Steps) async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        for changes in steps.commits { try await store.commit(changes, client: "c") }
        #expect(try await store.load(client: "c") == steps.expected)
        try await store.close()
        #expect(try await MQTTSQLiteStore(path: folder.path("db")).load(client: "c") == steps.expected)
    }

    @Test("keeps all of a message: any bytes, flags, every property of a PUBLISH, in their order")
    func wholeMessage() async throws {
        let properties: Properties = [
            .userProperty("b", "1"), .payloadFormatIndicator(1), .messageExpiryInterval(.max), .contentType("ü"),
            .responseTopic("answer"), .correlationData([0, 255]), .userProperty("a", ""), .userProperty("b", "2"),
            .subscriptionIdentifier(268_435_455), .subscriptionIdentifier(1), .topicAlias(3),
        ]
        let messages = [
            MQTTMessage(topic: "a/ü/\u{0}\u{1F600}", payload: 0...255, qos: .exactlyOnce, retain: true),
            MQTTMessage(topic: "b", payload: [], qos: .atLeastOnce, retain: false, properties: properties),
            MQTTMessage(topic: "c", payload: Array(repeating: 7, count: 1_000_000), qos: .exactlyOnce),
        ]
        let stored = messages.enumerated().map { MQTTStoredMessage(sequence: UInt64($0), stage: .queued, message: $1) }
        let folder = try ScratchFolder()
        let clock: @Sendable () -> Int64 = { 1_000_000 }
        let store = try MQTTSQLiteStore(StoreFile(path: folder.path("db"), now: clock))
        try await store.commit(stored.map { .insert($0) }, client: "c")
        #expect(try await store.load(client: "c") == stored)
        // A step on rewrites the row; the rest of it stays.
        try await store.commit([.advance(sequence: 2, to: .released(1))], client: "c")
        #expect(try await store.load(client: "c").last?.message == messages[2])
    }

    @Test("[MQTT-4.6.0-1] keeps the order over the wrap of packet identifiers, and of all 64 bits of the number")
    func order() async throws {
        let ids: [UInt16] = [65_534, 65_535, 1, 2]
        let sequences: [UInt64] = [1, 2, 1 << 63 - 1, 1 << 63]
        let stored = zip(sequences, ids).map { sequence, id in
            MQTTStoredMessage.of(sequence, .published(PacketID(rawValue: id) ?? 1))
        }
        let last = MQTTStoredMessage.of(.max)
        let theirs = [MQTTStoredMessage.of(1, .received(65_535)), .of(2, .received(1)), .of(3, .received(65_534))]
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        for message in (stored + theirs).reversed() { try await store.commit([.insert(message)], client: "c") }
        try await store.commit([.insert(last)], client: "c")
        #expect(try await store.load(client: "c") == stored + [last] + theirs)
    }

    @Test("keeps clients apart, whose names may be any text")
    func clients() async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        // The last two are equal to Swift, and not to MQTT (§1.5.4): their bytes differ.
        let names = ["", "a", "A", "a\u{0}b", "a\u{0}c", "'; DROP TABLE client; --", "\u{E9}", "e\u{301}"]
        for (number, name) in names.enumerated() {
            try await store.commit([.insert(.of(1, .queued, "\(number)"))], client: name)
        }
        try await store.commit([.removeAll], client: "a")
        for (number, name) in names.enumerated() {
            let expected: [MQTTStoredMessage] = name == "a" ? [] : [.of(1, .queued, "\(number)")]
            #expect(try await store.load(client: name) == expected)
        }
        #expect(try await store.load(client: "nobody") == [])
    }

    @Test(
        "holds what a plain model holds, after any sequence of steps and openings",
        arguments: 1...8 as ClosedRange<UInt64>
    )
    func model(_ seed: UInt64) async throws {
        let folder = try ScratchFolder()
        var store = try MQTTSQLiteStore(path: folder.path("db"))
        var model = StoreModel()
        for (number, changes) in StoreScript(seed: seed).prefix(500).enumerated() {
            try await store.commit(changes, client: "c")
            model.apply(changes)
            guard number % 50 == 49 else { continue }
            try await store.close()
            store = try MQTTSQLiteStore(path: folder.path("db"))
            try #require(try await store.load(client: "c") == model.messages)
        }
    }

    // MARK: - Time

    @Test("[MQTT-3.3.2-6] takes the time in the store off the expiry interval, and never adds to it")
    func expiry() async throws {
        let folder = try ScratchFolder()
        let now = Mutex<Int64>(1_000_000)
        let file = StoreFile(path: folder.path("db")) { now.withLock { $0 } }
        var store = try MQTTSQLiteStore(file)
        var message = MQTTStoredMessage.of(1)
        message.message.properties = [.userProperty("a", "b"), .messageExpiryInterval(60)]
        try await store.commit([.insert(message)], client: "c")
        for (time, left) in [(1_000_000, 60), (1_000_059, 1), (1_000_060, 0), (2_000_000, 0), (1, 60)]
            as [(Int64, UInt32)]
        {
            try await store.close()
            now.withLock { $0 = time }
            store = try MQTTSQLiteStore(file)
            message.message.properties = [.userProperty("a", "b"), .messageExpiryInterval(left)]
            #expect(try await store.load(client: "c") == [message])
        }
    }

    // MARK: - Several at once

    @Test("commits that wait together are all made, and none fails for another")
    func group() async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"), limits: MQTTStoreLimits(maxMessages: 20))
        let refused = await withTaskGroup { tasks in
            for client in 0..<100 {
                tasks.addTask {
                    var refused: [MQTTStoreError] = []
                    for sequence in 1...10 as ClosedRange<UInt64> {
                        do {
                            // Each tenth client asks for a number twice.
                            let wrong = client % 10 == 0 && sequence == 7
                            let changes: [MQTTStoreChange] = [
                                .insert(.of(sequence)), .insert(.of(wrong ? 1 : 100 + sequence)),
                            ]
                            try await store.commit(changes, client: "\(client)")
                        } catch {
                            if let error = error as? MQTTStoreError { refused.append(error) }
                        }
                    }
                    return refused
                }
            }
            return await tasks.reduce(into: []) { $0 += $1 }
        }
        #expect(refused == Array(repeating: .duplicate(1), count: 10))
        for client in 0..<100 {
            let sequences = try await store.load(client: "\(client)").map(\.sequence)
            let whole = (1...10).filter { client % 10 != 0 || $0 != 7 } as [UInt64]
            #expect(sequences == whole + whole.map { $0 + 100 })
        }
    }

    @Test("commits that come while another is written are written together")
    func joining() async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"), limits: MQTTStoreLimits(maxMessages: 30_000))
        try await withThrowingTaskGroup { tasks in
            // Long enough for the others to come.
            tasks.addTask { try await store.commit((1...30_000).map { .insert(.of($0)) }, client: "long") }
            for client in 0..<100 {
                tasks.addTask { try await store.commit([.insert(.of(1))], client: "\(client)") }
            }
            try await tasks.waitForAll()
        }
        #expect(store.groups <= 50)
        for client in 0..<100 { #expect(try await store.load(client: "\(client)") == [.of(1)]) }
    }

    @Test("a commit that fails has changed nothing, neither messages nor their count")
    func allOrNone() async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"), limits: MQTTStoreLimits(maxMessages: 3))
        let before: [MQTTStoredMessage] = [.of(1), .of(2), .of(9, .received(4))]
        try await store.commit(before.map { .insert($0) }, client: "c")
        let failing: [[MQTTStoreChange]] = [
            [.removeAll, .insert(.of(1)), .insert(.of(1))],
            [.remove(sequence: 1), .forget(4), .advance(sequence: 2, to: .published(1)), .insert(.of(2))],
            [.insert(.of(3)), .insert(.of(2))],
        ]
        for changes in failing {
            await #expect(throws: MQTTStoreError.self) { try await store.commit(changes, client: "c") }
            #expect(try await store.load(client: "c") == before)
        }
        try await store.commit([.insert(.of(3))], client: "c")
        await #expect(throws: MQTTStoreError.tooManyMessages(limit: 3)) {
            try await store.commit([.insert(.of(4))], client: "c")
        }
    }

    @Test("a store that is closed has written what waited, and takes nothing more")
    func closing() async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        try await withThrowingTaskGroup { tasks in
            for sequence in 1...100 as ClosedRange<UInt64> {
                tasks.addTask { try await store.commit([.insert(.of(sequence))], client: "c") }
            }
            try await tasks.waitForAll()
        }
        try await store.close()
        await #expect(throws: MQTTStoreError.closed) { try await store.commit([.removeAll], client: "c") }
        await #expect(throws: MQTTStoreError.closed) { try await store.load(client: "c") }
        #expect(folder.entries() == ["db"])
        #expect(try await MQTTSQLiteStore(path: folder.path("db")).load(client: "c").map(\.sequence) == Array(1...100))
    }
}

extension MQTTStoredMessage {
    /// A short one.
    static func of(_ sequence: UInt64, _ stage: Stage = .queued, _ text: String = "text") -> MQTTStoredMessage {
        let message = MQTTMessage(topic: "a/b", payload: text.utf8, qos: .exactlyOnce)
        return MQTTStoredMessage(sequence: sequence, stage: stage, message: message)
    }
}
