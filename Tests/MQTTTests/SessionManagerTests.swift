import EmbeddedBroker
import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("The session manager", .timeLimit(.minutes(10)))
struct SessionManagerTests {
    private static let noMethod =
        "a client authenticates again as it did in its CONNECT: set authentication, in MQTT 5 (§4.12.1)"

    @Test("[SPEC A12] a server that is not there is tried again after 1, 2 and 4 s, and found when it is")
    func comesBack() async throws {
        let reserved = try ReservedPort()
        let waits = Waits()
        let manager = MQTTSessionManager(MQTTClientConfiguration(port: reserved.port), waits)
        #expect(manager.state == .starting)
        #expect(!manager.state.requiresTearDown)
        manager.connect()
        var begun = waits.begun.makeAsyncIterator()
        for seconds in [1, 2, 4] {
            let wait = await begun.next()
            #expect(wait == .seconds(seconds))
            #expect(manager.state == .waiting)
            guard case .noConnection(let failure) = manager.lastError else {
                Issue.record("\(manager.lastError as Any)")
                return
            }
            #expect(failure.kind == "refused")
            if seconds == 4 { break }
            waits.end()
        }
        reserved.release()
        try await withBroker(BrokerConfiguration(port: reserved.port)) { _ in
            waits.end()
            await manager.until(.connected)
            #expect(manager.lastError == nil)
            #expect(manager.state.requiresTearDown)
            await manager.disconnect()
            #expect(manager.state == .closed)
        }
        #expect(waits.count == 3)
    }

    @Test(
        "[SPEC A12] a refusal that cannot heal is final, and a busy server is tried again",
        arguments: ProtocolVersion.allCases
    )
    func refusals(_ version: ProtocolVersion) async throws {
        for (code, state) in [(5, .failed), (3, .waiting)] as [(UInt8, MQTTManagerState)] {
            var configuration = BrokerConfiguration(port: 0)
            configuration.faults.refuse = code
            try await withBroker(configuration) { broker in
                let waits = Waits()
                var begun = waits.begun.makeAsyncIterator()
                let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port, version), waits)
                manager.connectToLast()
                await manager.until(state)
                // The state is `waiting` shortly before the wait begins; a disconnect in between would prevent the wait.
                if state == .waiting { #expect(await begun.next() == .seconds(1)) }
                guard case .refused(let refusal) = manager.lastError else {
                    Issue.record("\(manager.lastError as Any)")
                    return
                }
                #expect(refusal.version == version)
                await manager.disconnect()
                #expect(manager.state == .closed)
                #expect(waits.count == (state == .waiting ? 1 : 0))
            }
        }
    }

    @Test("[3.1.1: MQTT-3.1.2-2] a 3.1.1 server that refuses version 5 is not tried again")
    func refusedByVersion3() async throws {
        try await withScriptedPeer([.expectCount(1), .send([0x20, 2, 0, 1])]) { peer in
            let waits = Waits()
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: peer.port), waits)
            manager.connect()
            for await state in manager.states where state == .failed || state == .waiting { break }
            #expect(manager.state == .failed)
            #expect(manager.lastError == .refused(MQTTRefusal(code: 1, version: .v311)))
            #expect(manager.lastError.map { "\($0)" }?.hasSuffix("unacceptable protocol version") == true)
            #expect(waits.count == 0)
            await manager.disconnect()
        }
    }

    @Test("[SPEC A14] a session that another client takes over is not taken back")
    func takenOver() async throws {
        try await withBroker { broker in
            let waits = Waits()
            let first = MQTTSessionManager(MQTTClientConfiguration(port: broker.port, id: "same"), waits)
            first.connect()
            await first.until(.connected)
            let second = MQTTSessionManager(MQTTClientConfiguration(port: broker.port, id: "same"), waits)
            second.connect()
            await second.until(.connected)
            await first.until(.failed)
            guard case .connectionLost(.disconnected(.sessionTakenOver, _)) = first.lastError else {
                Issue.record("\(first.lastError as Any)")
                return
            }
            #expect(waits.count == 0)
            await second.disconnect()
        }
    }

    @Test("[SPEC A12] behind a restart of the server everything is subscribed to, and what waited is sent")
    func restart() async throws {
        let waits = Waits()
        var begun = waits.begun.makeAsyncIterator()
        let broker = try await BrokerServer.start(BrokerConfiguration(port: 0))
        let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port), waits)
        let wanted = [Subscription(filter: "a/#", qos: .exactlyOnce), Subscription(filter: "b", qos: .atLeastOnce)]
        manager.setSubscriptions(wanted)
        #expect(manager.subscriptions == wanted)
        #expect(manager.effectiveSubscriptions == [])
        manager.connect()
        await manager.untilEffective(2)
        #expect(manager.effectiveSubscriptions.map(\.granted) == [.exactlyOnce, .atLeastOnce])
        await broker.stop()
        let wait = await begun.next()
        #expect(wait == .seconds(1))
        #expect(manager.state == .waiting)
        let changes = manager.effectiveSubscriptionChanges

        let waiting = Task { try await manager.publish(MQTTMessage(topic: "a/b", payload: [7], qos: .exactlyOnce)) }
        try await withBroker(BrokerConfiguration(port: broker.port)) { _ in
            waits.end()
            _ = try await waiting.value
            var told: [[QoS?]] = []
            for await effective in changes.prefix(3) { told.append(effective.map(\.granted)) }
            // The last known ones, none with the new connection, then those of its session.
            #expect(told == [[.exactlyOnce, .atLeastOnce], [], [.exactlyOnce, .atLeastOnce]])
            // The first message goes out before or after the subscriptions of the new session.
            try await manager.publish(MQTTMessage(topic: "b", payload: [8], qos: .atLeastOnce))
            for await message in manager.messages where message.topic == "b" {
                #expect(message.message.payload == [8])
                break
            }
            await manager.disconnect()
        }
    }

    @Test("[SPEC A12] subscriptions follow what is declared, changed QoS included")
    func subscriptions() async throws {
        try await withBroker { broker in
            let waits = Waits()
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port), waits)
            manager.connect()
            await manager.until(.connected)
            var changes = manager.effectiveSubscriptionChanges.makeAsyncIterator()
            var next = await changes.next()
            #expect(next == [])
            manager.setSubscriptions([Subscription(filter: "a"), Subscription(filter: "b")])
            next = await changes.next()
            #expect(next?.map(\.reason) == [.success, .success])
            manager.setSubscriptions([Subscription(filter: "b", qos: .exactlyOnce)])
            next = await changes.next()
            #expect(next == [MQTTSubscribeResult(filter: "b", reason: .grantedQoS2)])
            manager.setSubscriptions([])
            next = await changes.next()
            #expect(next == [])
            await manager.shutDown()
            next = await changes.next()
            #expect(next == nil)
        }
    }

    @Test("[SPEC A12] a message opens the connection if there is none, except at QoS 0, where it is refused")
    func sendOffline() async throws {
        let reserved = try ReservedPort()
        try await withBroker { broker in
            let nowhere = MQTTSessionManager(MQTTClientConfiguration(port: reserved.port), Waits())
            let atMostOnce = MQTTMessage(topic: "a")
            #expect(
                await failure { () async throws(MQTTClientError) in try await nowhere.publish(atMostOnce) }
                    == .notConnected
            )
            await nowhere.shutDown()
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port), Waits())
            let result = try await manager.publish(MQTTMessage(topic: "a", qos: .atLeastOnce))
            #expect(!result.reason.isError)
            await manager.until(.connected)
            try await manager.publish(atMostOnce)
            // Closed by the user, and asked for again.
            await manager.disconnect()
            try await manager.publish(MQTTMessage(topic: "a", qos: .exactlyOnce))
            await manager.disconnect()
        }
    }

    @Test(
        "[SPEC A12] suspend lets messages wait, resume sends them, disconnect ends their wait",
        arguments: [true, false]
    )
    func suspends(_ goesOn: Bool) async throws {
        try await withBroker { broker in
            let (queued, watch) = AsyncStream.makeStream(of: Int.self)
            let configuration = MQTTClientConfiguration(port: broker.port) {
                $0.hooks.buffered = { watch.yield($0.queued) }
            }
            let manager = MQTTSessionManager(configuration, Waits())
            manager.connect()
            await manager.until(.connected)
            manager.suspend()
            await manager.until(.suspended)
            let waiting = Task {
                await failure { () async throws(MQTTClientError) in
                    try await manager.publish(MQTTMessage(topic: "a", qos: .atLeastOnce))
                }
            }
            for await count in queued where count == 1 { break }
            #expect(manager.state == .suspended)
            if goesOn {
                manager.resume()
                #expect(await waiting.value == nil)
                await manager.until(.connected)
            }
            await manager.disconnect()
            #expect(manager.state == .closed)
            if !goesOn { #expect(await waiting.value == .disconnected) }
        }
    }

    @Test("[MQTT5-4.11] a server that names another one is left for it")
    func redirect() async throws {
        try await withBroker { broker in
            var properties = Properties()
            properties.serverReference = "127.0.0.1:\(broker.port)"
            let refusal = ConnAck(code: ReasonCode.useAnotherServer.rawValue, properties: properties)
            var configuration = MQTTClientConfiguration(port: 1, id: "abc")
            let peer = try await ScriptedPeer(script: [
                .expectCount(connectBytes(configuration).count), .send(wire(.connAck(refusal), version: .v5)), .close,
            ])
            configuration.port = UInt16(peer.port)
            let waits = Waits()
            let manager = MQTTSessionManager(configuration, waits)
            manager.connect()
            await manager.until(.connected)
            #expect(waits.count == 0)
            await manager.disconnect()
            try await peer.shutdown()
        }
    }

    @Test("[SPEC A5] another server is connected to, and what is declared is subscribed to there")
    func otherServer() async throws {
        try await withBroker { first in
            try await withBroker { second in
                let manager = MQTTSessionManager(MQTTClientConfiguration(port: first.port, id: "same"), Waits())
                manager.setSubscriptions([Subscription(filter: "t", qos: .atLeastOnce)])
                manager.connect()
                await manager.untilEffective(1)
                let watcher = MQTTClient(MQTTClientConfiguration(port: second.port))
                try await watcher.connect()
                var events = manager.events.makeAsyncIterator()
                manager.connect(host: "127.0.0.1", port: UInt16(second.port))
                let ended = await events.next()
                #expect(ended == .closed)
                guard case .connected(let result)? = await events.next() else {
                    Issue.record("not connected")
                    return
                }
                #expect(result.clientID == "same")
                await manager.until(.connected)
                _ = try await manager.ping()
                let error = await failure { try await manager.reauthenticate() }
                #expect(error == .invalid(Self.noMethod))
                await manager.untilEffective(1)
                try await watcher.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
                for await message in manager.messages {
                    #expect(message.topic == "t")
                    break
                }
                // The configured one again, named like the other.
                manager.connect(host: "127.0.0.1", port: UInt16(first.port))
                let endedAgain = await events.next()
                #expect(endedAgain == .closed)
                await manager.until(.connected)
                await manager.disconnect()
                let late = await failure { try await manager.ping() }
                #expect(late == .notConnected)
                await watcher.disconnect()
            }
        }
    }

    @Test("disconnect is never followed by a connection, whenever it comes", arguments: 0..<20)
    func disconnectRaces(_ yields: Int) async throws {
        try await withBroker { broker in
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port), Waits())
            var states = manager.states.makeAsyncIterator()
            manager.connect()
            for _ in 0..<(yields * yields) { await Task.yield() }
            await manager.disconnect()
            #expect(manager.state == .closed)
            await manager.shutDown()
            var seen: [MQTTManagerState] = []
            while let state = await states.next() { seen.append(state) }
            let early: [MQTTManagerState] = [.starting, .connecting, .closing, .closed]
            let late: [MQTTManagerState] = [.starting, .connecting, .connected, .closing, .closed]
            #expect(seen == early || seen == late)
        }
    }

    @Test("a manager that is let go ends its streams and its connection")
    func letGo() async throws {
        try await withBroker { broker in
            var manager: MQTTSessionManager? = MQTTSessionManager(MQTTClientConfiguration(port: broker.port), Waits())
            let states = try #require(manager?.states)
            let messages = try #require(manager?.messages)
            manager?.connect()
            await manager?.until(.connected)
            manager = nil
            var last: MQTTManagerState?
            for await state in states { last = state }
            #expect(last == .connected)
            for await _ in messages {}
        }
    }
}
