import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore
import NIOPosix
import TestSupport
import Testing

@Suite("A session manager whose client identifier changes", .timeLimit(.minutes(5)))
struct ManagerIdentityTests {
    private static func manager(
        _ configuration: MQTTClientConfiguration,
        _ store: any MQTTMessageStore = MQTTMemoryStore(),
        _ waits: Waits = Waits()
    ) -> MQTTSessionManager {
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        let client = MQTTClient(configuration, store: store, eventLoop: eventLoop)
        return MQTTSessionManager(client, policy: MQTTReconnectPolicy(), sleep: waits.sleep)
    }

    private static func message(_ payload: UInt8, _ qos: QoS = .atLeastOnce) -> MQTTMessage {
        MQTTMessage(topic: "t", payload: [payload], qos: qos)
    }

    private static func watcher(of broker: BrokerServer) async throws -> MQTTClient {
        let watcher = MQTTClient(MQTTClientConfiguration(port: broker.port))
        try await watcher.connect()
        try await watcher.subscribe([Subscription(filter: "t", qos: .atLeastOnce)])
        return watcher
    }

    /// Another client, on another port.
    private static func other(
        _ manager: MQTTSessionManager,
        port: Int,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClientConfiguration {
        var configuration = manager.configuration
        configuration.port = UInt16(port)
        configuration.clientID = "new"
        change(&configuration)
        return configuration
    }

    @Test(
        "[SPEC A5] a message that is published after the change goes to the new server, connected to the old one or not",
        arguments: [true, false],
        [true, false]
    )
    func publishesAsNew(_ isConnected: Bool, _ cleanStart: Bool) async throws {
        try await withBroker { old in
            try await withBroker { new in
                let reserved = try ReservedPort()
                defer { reserved.release() }
                let (oldWatcher, newWatcher) = (try await Self.watcher(of: old), try await Self.watcher(of: new))
                let waits = Waits()
                let port = isConnected ? old.port : reserved.port
                let manager = Self.manager(
                    MQTTClientConfiguration(port: port, id: "old") { $0.cleanStart = cleanStart },
                    MQTTMemoryStore(),
                    waits
                )
                manager.connect()
                if isConnected {
                    await manager.until(.connected)
                } else {
                    for await _ in waits.begun { break }
                }
                manager.connect(Self.other(manager, port: new.port))
                try await manager.publish(Self.message(1))
                #expect(await newWatcher.take(1).map(\.payload) == [[1]])
                // A message that went to the old server would come before this one.
                try await oldWatcher.publish(Self.message(2))
                #expect(await oldWatcher.take(1).map(\.payload) == [[2]])
                await manager.shutDown()
                await oldWatcher.shutDown()
                await newWatcher.shutDown()
            }
        }
    }

    @Test(
        "the store forgets an old client whose session no longer persists, with a message in flight of an earlier one"
    )
    func forgetsOld() async throws {
        try await withScriptedPeer { peer in
            try await withBroker { broker in
                let reserved = try ReservedPort()
                defer { reserved.release() }
                let (store, waits) = (GatedStore(), Waits())
                store.open.finish()
                let first = MQTTClientConfiguration(port: peer.port, id: "c") { $0.cleanStart = false }
                let manager = Self.manager(first, store, waits)
                manager.connect()
                try await peer.untilConnections(1)
                try await peer.perform([
                    .expect(connectBytes(first)), .send(wire(.connAck(ConnAck()))),
                    .expect([0x32, 7, 0, 1, 0x74, 0, 1, 0, 1]), .close,
                ])
                let waiting = Task { await failure { try await manager.publish(Self.message(1)) } }
                var begun = waits.begun.makeAsyncIterator()
                _ = await begun.next()
                #expect(await store.inner.load(client: "c").count == 1)
                // The clean start that would end the old session does not come about.
                var clean = first
                clean.port = UInt16(reserved.port)
                clean.cleanStart = true
                manager.connect(clean)
                _ = await begun.next()
                #expect(await store.inner.load(client: "c").count == 1)
                manager.connect(Self.other(manager, port: broker.port))
                #expect(await waiting.value == .disconnected)
                try await manager.publish(Self.message(2))
                #expect(await store.inner.load(client: "c").isEmpty)
                await manager.shutDown()
            }
        }
    }

    /// A manager whose store does not end a commit of the old client, which holds up the new one.
    private static func withHeldUp(
        _ change: (inout MQTTClientConfiguration) -> Void,
        _ body: (MQTTSessionManager, GatedStore, MQTTClient) async throws -> Void
    ) async throws {
        try await withBroker { broker in
            let watcher = try await Self.watcher(of: broker)
            let store = GatedStore()
            let manager = Self.manager(
                MQTTClientConfiguration(port: broker.port, id: "old") { $0.cleanStart = false },
                store
            )
            manager.connect()
            await manager.until(.connected)
            let waiting = Task { await failure { try await manager.publish(Self.message(9)) } }
            for await _ in store.begun { break }
            manager.connect(Self.other(manager, port: broker.port, change))
            #expect(await waiting.value == .disconnected)
            try await body(manager, store, watcher)
            store.open.finish()
            await manager.shutDown()
            await watcher.shutDown()
        }
    }

    @Test("messages that wait for the new client are bounded by its limits, and do not hold up the change")
    func bounded() async throws {
        try await Self.withHeldUp {
            $0.limits.messages = 2
        } _: { manager, store, watcher in
            try await withThrowingTaskGroup { group in
                for payload in UInt8(1)...3 {
                    group.addTask { await failure { try await manager.publish(Self.message(payload)) } }
                }
                #expect(try await group.next() == .some(.storeFull))
                #expect(await failure { try await manager.publish(Self.message(0, .atMostOnce)) } == .notConnected)
                // The one commit that the old client has begun.
                store.open.yield(true)
                await manager.until(.connected)
                store.open.finish()
                for try await error in group { #expect(error == nil) }
            }
            #expect(await watcher.take(2).count == 2)
            #expect(await store.inner.load(client: "old").map(\.message.payload) == [[9]])
        }
    }

    @Test("a disconnect, or the change to a third client, ends the messages that wait for the second one")
    func ended() async throws {
        for isThird in [true, false] {
            try await Self.withHeldUp {
                $0.limits.messages = 1
            } _: { manager, store, watcher in
                let errors = await withTaskGroup { group in
                    for payload in UInt8(1)...2 {
                        group.addTask { await failure { try await manager.publish(Self.message(payload)) } }
                    }
                    let first = await group.next() ?? nil
                    if isThird {
                        var configuration = manager.configuration
                        configuration.clientID = "third"
                        manager.connect(configuration)
                    } else {
                        await manager.disconnect()
                    }
                    return [first, await group.next() ?? nil]
                }
                #expect(errors == [.storeFull, .disconnected])
                store.open.finish()
                // A message after it is sent, as the client that was chosen last.
                try await manager.publish(Self.message(7))
                #expect(await watcher.take(1).map(\.payload) == [[7]])
                #expect(manager.configuration.clientID == (isThird ? "third" : "new"))
            }
        }
    }
}
