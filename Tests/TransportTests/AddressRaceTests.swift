import NIOCore
import Testing
import Transport

@Suite("The order and the times of a name's addresses")
struct AddressRaceTests {
    static func addresses(_ texts: [String]) throws -> [SocketAddress] {
        try texts.map { try SocketAddress(ipAddress: $0, port: 0) }
    }

    private static let mixed = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8::2"]

    @Test(
        "[RFC 8305 §4] the families alternate, beginning with the preferred one",
        arguments: [
            (.ipv6First, ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]),
            (.ipv4First, ["192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2", "192.0.2.3"]),
            (.ipv4Only, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
            (.ipv6Only, ["2001:db8::1", "2001:db8::2"]),
        ] as [(AddressPreference, [String])]
    )
    func order(_ preference: AddressPreference, _ expected: [String]) throws {
        let order = preference.order(try Self.addresses(Self.mixed))
        #expect(order.map(\.ipAddress) == expected)
    }

    @Test(
        "[RFC 8305 §5] the delay between two attempts is 250 ms, at least 10 ms and at most 2 s",
        arguments: [(nil, 250), (1, 10), (10, 10), (300, 300), (2_000, 2_000), (2_001, 2_000)] as [(Int64?, Int64)]
    )
    func delay(_ given: Int64?, _ used: Int64) {
        let racing = given.map { AddressRacing(delay: .milliseconds($0)) } ?? AddressRacing()
        #expect(racing.delay == .milliseconds(used))
    }

    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    /// A race, and times in milliseconds after its start.
    private final class Race {
        private var race: AddressRace

        init(_ count: Int, isComplete: Bool = true) throws {
            let addresses = try AddressRaceTests.addresses(Array(AddressRaceTests.mixed.prefix(count)))
            let start = AddressRaceTests.start
            self.race = AddressRace(addresses, delay: .milliseconds(250), now: start, isComplete: isComplete)
        }

        private func time(_ milliseconds: Int64) -> NIODeadline { AddressRaceTests.start + .milliseconds(milliseconds) }

        var deadline: Int64? { self.race.deadline.map { ($0 - AddressRaceTests.start).nanoseconds / 1_000_000 } }
        func isLost(_ now: Int64) -> Bool { self.race.isLost(now: self.time(now)) }

        @discardableResult
        func next(_ now: Int64) -> String? { self.race.next(now: self.time(now))?.ipAddress }
        func failed(_ now: Int64) { self.race.failed(now: self.time(now)) }
        func asksAgain(_ now: Int64) -> Bool { self.race.asksAgain(now: self.time(now)) }
        func add(_ texts: [String]) throws { self.race.add(try AddressRaceTests.addresses(texts)) }
        func stop() { self.race.stop() }
    }

    @Test("attempts without an answer start 250 ms after each other")
    func silence() throws {
        let race = try Race(3)
        #expect(race.next(0) == "192.0.2.1")
        #expect(race.next(0) == nil)
        #expect(race.deadline == 250)
        #expect(race.next(249) == nil)
        #expect(race.next(250) == "192.0.2.2")
        #expect(race.next(600) == "192.0.2.3")
        #expect(race.deadline == nil && !race.isLost(600))
    }

    @Test("a failure starts the next attempt at once, and the delay runs from that start")
    func failures() throws {
        let race = try Race(3)
        race.next(0)
        race.failed(20)
        #expect(race.next(20) == "192.0.2.2")
        #expect(race.next(20) == nil)
        #expect(race.deadline == 270)
        #expect(race.next(270) == "192.0.2.3")
        race.failed(280)
        #expect(!race.isLost(280))
        race.failed(290)
        #expect(race.isLost(290))
    }

    @Test("[RFC 8305 §3] the resolver is asked once more when its first answer is used up, and new addresses follow")
    func lateAnswer() throws {
        let race = try Race(1, isComplete: false)
        #expect(!race.asksAgain(0))
        race.next(0)
        #expect(race.deadline == 250)
        #expect(!race.asksAgain(249))
        #expect(race.asksAgain(250))
        #expect(!race.asksAgain(251))
        race.failed(260)
        #expect(!race.isLost(260), "an answer is on its way")
        try race.add(["192.0.2.1", "2001:db8::1"])
        #expect(race.next(300) == "2001:db8::1")
        race.failed(310)
        #expect(race.isLost(310))
    }

    @Test(
        "[RFC 8305 §3] a race without attempts waits 50 ms for the second answer, and one with an attempt takes it later"
    )
    func noAnswer() throws {
        let refused = try Race(1, isComplete: false)
        refused.next(0)
        refused.failed(10)
        #expect(refused.asksAgain(10))
        #expect(refused.deadline == 60)
        #expect(!refused.isLost(59) && refused.isLost(60))

        let silent = try Race(1, isComplete: false)
        silent.next(0)
        #expect(silent.asksAgain(250))
        #expect(silent.deadline == nil && !silent.isLost(400))
        try silent.add(["2001:db8::1"])
        #expect(silent.next(400) == "2001:db8::1")

        let late = try Race(1, isComplete: false)
        late.next(0)
        #expect(late.asksAgain(250))
        late.failed(400)
        #expect(late.isLost(400), "no second wait")
    }

    @Test("a race that is stopped starts no further attempt, and waits for those under way")
    func stopped() throws {
        let race = try Race(3, isComplete: false)
        race.next(0)
        race.next(250)
        race.stop()
        race.failed(260)
        #expect(race.next(600) == nil && !race.asksAgain(600) && !race.isLost(600))
        race.failed(610)
        #expect(race.isLost(610))
    }
}
