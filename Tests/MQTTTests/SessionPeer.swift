import MQTT
import MQTTCodec
import Synchronization
import TestSupport

/// A scripted peer and a client whose session outlives its connections.
struct SessionPeer {
    let peer: ScriptedPeer
    let version: ProtocolVersion
    let id: String

    init(_ peer: ScriptedPeer, _ version: ProtocolVersion = .v311, id: String = "c") {
        (self.peer, self.version, self.id) = (peer, version, id)
    }

    func configuration(
        clean: Bool = false,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClientConfiguration {
        MQTTClientConfiguration(port: self.peer.port, self.version, id: self.id) {
            $0.cleanStart = clean
            $0.acknowledgement = .onReceipt
            change(&$0)
        }
    }

    /// Bytes of the CONNECT that a configuration leads to.
    func connectSize(_ client: MQTTClient, id: String? = nil) -> Int {
        var configuration = client.configuration
        if let id { configuration.clientID = id }
        var connect = connectBytes(configuration).count
        // Property 0x21 and its two bytes.
        if configuration.version == .v5, configuration.receiveMaximum != nil { connect += 3 }
        return connect
    }

    /// Connects, with what the CONNACK says, and goes on with `steps`.
    func connect(
        _ client: MQTTClient,
        number: Int,
        present: Bool,
        properties: Properties = Properties(),
        id: String? = nil,
        then steps: [ScriptedPeer.Step] = []
    ) async throws {
        async let connected = client.connect()
        try await self.peer.untilConnections(number + 1)
        let connack = ConnAck(sessionPresent: present, properties: properties)
        let answer: [ScriptedPeer.Step] = [
            .expectCount(self.connectSize(client, id: id)), .send(wire(.connAck(connack), version: self.version)),
        ]
        try await self.peer.perform(answer + steps, on: number)
        _ = try await connected
    }

    /// The bytes received on a connection after CONNECT, so far.
    func received(_ client: MQTTClient, number: Int, id: String? = nil) async throws -> [UInt8] {
        Array(try await self.peer.received(number).dropFirst(self.connectSize(client, id: id)))
    }
}

/// Refuses the configured changes with the configured error, and passes the others on.
final class RefusingStore: MQTTMessageStore {
    typealias Rule = @Sendable (MQTTStoreChange) -> MQTTStoreError?

    private struct State {
        var rule: Rule = { _ in nil }
        /// Of commits with a single change: what was refused for good.
        var refusals = 0
    }

    let inner: any MQTTMessageStore
    private let state = Mutex(State())

    init(_ inner: any MQTTMessageStore = MQTTMemoryStore()) { self.inner = inner }

    var refusals: Int { self.state.withLock { $0.refusals } }

    func refuse(_ rule: @escaping Rule) { self.state.withLock { $0.rule = rule } }

    func allow() { self.refuse { _ in nil } }

    /// Returns when so many have been refused; the test's own limit ends a wait in vain.
    func untilRefused(_ count: Int) async {
        while self.refusals < count { await Task.yield() }
    }

    func load(client: String) async -> [MQTTStoredMessage] { (try? await self.inner.load(client: client)) ?? [] }

    func commit(_ changes: [MQTTStoreChange], client: String) async throws {
        let error = self.state.withLock { state in
            let error = changes.lazy.compactMap(state.rule).first
            if error != nil, changes.count == 1 { state.refusals += 1 }
            return error
        }
        if let error { throw error }
        try await self.inner.commit(changes, client: client)
    }
}

/// Answers a load only when released.
final class SlowStore: MQTTMessageStore {
    let inner = MQTTMemoryStore()
    let asked: AsyncStream<Void>
    let answer: AsyncStream<Void>.Continuation
    private let ask: AsyncStream<Void>.Continuation
    private let answered: AsyncStream<Void>

    init() {
        (self.asked, self.ask) = AsyncStream.makeStream()
        (self.answered, self.answer) = AsyncStream.makeStream()
    }

    func load(client: String) async -> [MQTTStoredMessage] {
        self.ask.yield()
        for await _ in self.answered {}
        return await self.inner.load(client: client)
    }

    func commit(_ changes: [MQTTStoreChange], client: String) async {
        await self.inner.commit(changes, client: client)
    }
}

extension MQTTMessageStore {
    /// Returns when the store holds that many messages: a call can end before the store is updated.
    func untilCount(_ count: Int, client: String = "c") async {
        while (try? await self.load(client: client).count) != count { await Task.yield() }
    }
}

extension MQTTStoreError {
    /// The error of a store that is full.
    static let noRoom = MQTTStoreError.full(limit: 1)
}

extension AsyncStream {
    /// The next element; later ones stay for the next call.
    func one() async -> Element? {
        for await element in self { return element }
        return nil
    }
}
