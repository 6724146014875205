import EmbeddedBroker
import MQTT
import MQTTCodec
import Synchronization
import TestSupport
import Testing

@Suite("A client that authenticates, and once more (MQTT 5 §4.12)", .timeLimit(.minutes(10)))
struct ClientReauthenticationTests {
    /// Records AUTH packets seen by the client's hooks, and can drop those of the server.
    private final class Wire: Sendable {
        private struct State {
            var begun = 0
            var losesAnswers = false
        }

        private let state = Mutex(State())
        /// Each AUTH of the server that got lost.
        let lost: AsyncStream<Void>
        private let lose: AsyncStream<Void>.Continuation

        init() { (self.lost, self.lose) = AsyncStream.makeStream() }

        /// Re-authentications that this side has begun.
        var begun: Int { self.state.withLock { $0.begun } }

        func loseAnswers(_ loses: Bool = true) { self.state.withLock { $0.losesAnswers = loses } }

        func watch(_ hooks: inout MQTTClientHooks) {
            hooks.sending = { [self] packet in
                // AUTH with 0x19.
                if packet.type == .auth, packet.bytes.dropFirst(2).first == 0x19 {
                    self.state.withLock { $0.begun += 1 }
                }
            }
            hooks.ignore = { [self] packet in
                guard packet.type == .auth, self.state.withLock({ $0.losesAnswers }) else { return false }
                self.lose.yield()
                return true
            }
        }

        func untilLost() async { for await _ in self.lost { break } }
    }

    private static func broker(iterations: Int = 4_096) -> BrokerConfiguration {
        var configuration = BrokerConfiguration(port: 0)
        configuration.access = BrokerAccess(users: ["user": .init(password: Array("secret".utf8))])
        configuration.access.iterations = iterations
        return configuration
    }

    private static func client(_ port: Int, _ wire: Wire, acknowledgement: Duration) -> MQTTClient {
        MQTTClient(
            MQTTClientConfiguration(port: port) {
                $0.authentication = .scramSHA256(user: "user", password: "secret")
                $0.timeouts.acknowledgement = acknowledgement
                wire.watch(&$0.hooks)
            }
        )
    }

    /// Runs `body` with a client that has authenticated.
    private static func withClient(
        acknowledgement: Duration = .seconds(60),
        _ body: (MQTTClient, Wire) async throws -> Void
    ) async throws {
        try await withBroker(Self.broker()) { broker in
            let wire = Wire()
            let client = Self.client(broker.port, wire, acknowledgement: acknowledgement)
            try await client.connect()
            try await body(client, wire)
            await client.shutDown()
        }
    }

    @Test("re-authenticates while messages go on, as often as it likes (§4.12.1)")
    func again() async throws {
        try await Self.withClient { client, wire in
            try await client.subscribe([Subscription(filter: "t", qos: .atLeastOnce)])
            async let first: Void = client.reauthenticate()
            try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
            try await first
            try await client.reauthenticate()
            #expect(wire.begun == 2)
            #expect(await client.take(1).count == 1)
        }
    }

    @Test("a call during another one waits for the same end, and disconnect ends both")
    func together() async throws {
        try await Self.withClient { client, wire in
            wire.loseAnswers()
            async let first = failure { try await client.reauthenticate() }
            await wire.untilLost()
            let second = Task { () async in await failure { try await client.reauthenticate() } }
            // Behind the second call, which is on the event loop by then, or finds the client closed.
            _ = try await client.ping()
            await client.disconnect()
            #expect(await first == .disconnected)
            let error = await second.value
            #expect(error == .disconnected || error == .notConnected)
            #expect(wire.begun == 1)
        }
    }

    @Test("a server that does not answer in time fails the call, not the connection")
    func timesOut() async throws {
        try await Self.withClient(acknowledgement: .milliseconds(200)) { client, wire in
            wire.loseAnswers()
            for _ in 0..<2 {
                #expect(await failure { try await client.reauthenticate() } == .timedOut(.authentication))
            }
            // The second call waits for the answer to the first one's AUTH: another one would break §4.12.1.
            #expect(wire.begun == 1)
            #expect(client.state == .connected)
            _ = try await client.ping()
        }
    }

    @Test("a cancelled task does not wait")
    func cancelled() async throws {
        try await Self.withClient { client, wire in
            wire.loseAnswers()
            let task = Task { () async in await failure { try await client.reauthenticate() } }
            await wire.untilLost()
            task.cancel()
            #expect(await task.value == .cancelled)
            _ = try await client.ping()
        }
    }

    @Test("who joins waits as long as who came first, though that one has left")
    func joins() async throws {
        let patience = Duration.seconds(1)
        try await Self.withClient(acknowledgement: patience) { client, wire in
            wire.loseAnswers()
            let first = Task { () async in await failure { try await client.reauthenticate() } }
            await wire.untilLost()
            first.cancel()
            // On a busy host its time may be over before it is cancelled, which changes nothing for the second.
            #expect([.cancelled, .timedOut(.authentication)].contains(await first.value))
            // The case itself: most of the first one's time is over when the second one's begins, which would end too early
            // if it had what is left of the first one's.
            try await Task.sleep(for: .milliseconds(700))
            let began = ContinuousClock.now
            #expect(await failure { try await client.reauthenticate() } == .timedOut(.authentication))
            #expect(ContinuousClock.now - began >= patience)
            #expect(wire.begun == 1)
        }
    }

    @Test("[MQTT-4.12.1-2] a server that refuses ends the connection, and the call with its reason")
    func refused() async throws {
        try await Self.withClient { client, wire in
            wire.loseAnswers()
            async let call = failure { try await client.reauthenticate() }
            await wire.untilLost()
            // Instead of the proof, which the client sees as never requested.
            let proof: Properties = [
                .authenticationMethod("SCRAM-SHA-256"), .authenticationData(Array("c=biws,r=x,p=AAAA".utf8)),
            ]
            try await client.sendRaw(MQTTTests.wire(.auth(Auth(reason: .continueAuthentication, properties: proof))))
            let error = await call
            guard case .connectionLost(.disconnected(.notAuthorized, _))? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            await client.until(.closed)
            #expect(await failure { try await client.reauthenticate() } == .notConnected)
            // The next connection begins afresh.
            wire.loseAnswers(false)
            try await client.connect()
            try await client.reauthenticate()
        }
    }

    @Test("a connection that breaks ends the call")
    func lost() async throws {
        let broker = try await BrokerServer.start(Self.broker())
        let wire = Wire()
        let client = Self.client(broker.port, wire, acknowledgement: .seconds(60))
        try await client.connect()
        wire.loseAnswers()
        async let call = failure { try await client.reauthenticate() }
        await wire.untilLost()
        await broker.stop()
        let error = await call
        guard case .connectionLost? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("unexpected AUTH ends the connection ([MQTT-4.12.0-6])")
    func unasked() async throws {
        let auth = Packet.auth(Auth(reason: .continueAuthentication, properties: [.authenticationMethod("X")]))
        try await withScriptedPeer(accepting(then: [.expectCount(2), .send(wire(auth))])) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            try await client.connect()
            let error = await failure { try await client.ping() }
            #expect(
                error
                    == .connectionLost(.protocolError(.protocolError, "AUTH was not asked for ([MQTT-4.12.0-6])"))
            )
        }
    }

    @Test("there is nothing to do again without a method, before MQTT 5, with a raw CONNECT, or unconnected")
    func notPossible() async throws {
        let words = "a client authenticates again as it did in its CONNECT: set authentication, in MQTT 5 (§4.12.1)"
        let method = MQTTAuthentication.scramSHA1(user: "user", password: "secret")
        let configurations: [((inout MQTTClientConfiguration) -> Void, MQTTClientError)] = [
            ({ _ in }, .invalid(words)),
            (
                {
                    $0.authentication = method
                    $0.version = .v311
                }, .invalid(words)
            ),
            (
                {
                    $0.authentication = method
                    $0.rawConnect = []
                }, .invalid(words)
            ),
            ({ $0.authentication = method }, .notConnected),
        ]
        for (change, error) in configurations {
            let client = MQTTClient(MQTTClientConfiguration(port: 1, .v5, id: nil, change))
            #expect(await failure { try await client.reauthenticate() } == error)
        }
    }

    struct Rounds: Sendable, CustomTestStringConvertible {
        var testDescription: String { "\(self.asked) rounds of \(self.allowed.map { "\($0)" } ?? "the usual")" }
        let asked: Int
        let allowed: ClosedRange<Int>?
        let error: MQTTClientError?
    }

    static let rounds = [
        Rounds(asked: 4_096, allowed: nil, error: nil),
        Rounds(
            asked: 4_095,
            allowed: nil,
            error: .notAuthenticated(
                "the server asks for 4095 rounds of the password's hash, and fewer than 4096 are unsafe"
            )
        ),
        Rounds(asked: 10, allowed: 10...10, error: nil),
        Rounds(
            asked: 11,
            allowed: 1...10,
            error: .notAuthenticated(
                "the server asks for 11 rounds of the password's hash, and more than 10 are refused"
            )
        ),
        Rounds(
            asked: 10,
            allowed: 0...10,
            error: .invalid("SCRAM has 1 to 4294967295 rounds, and 0 to 10 are allowed")
        ),
        Rounds(
            asked: 10,
            allowed: 1...Int.max,
            error: .invalid("SCRAM has 1 to 4294967295 rounds, and 1 to \(Int.max) are allowed")
        ),
    ]

    @Test("[SPEC C4] the rounds that a server asks for have a floor and a ceiling", arguments: rounds)
    func iterations(_ rounds: Rounds) async throws {
        try await withBroker(Self.broker(iterations: rounds.asked)) { broker in
            for isLong in [true, false] {
                let allowed = rounds.allowed ?? MQTTAuthentication.usualIterations
                let method =
                    isLong
                    ? MQTTAuthentication.scramSHA256(user: "user", password: "secret", iterations: allowed)
                    : .scramSHA1(user: "user", password: "secret", iterations: allowed)
                let client = MQTTClient(MQTTClientConfiguration(port: broker.port) { $0.authentication = method })
                #expect(await failure { try await client.connect() } == rounds.error)
                await client.shutDown()
            }
        }
    }
}
