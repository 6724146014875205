import MQTT
import MQTTCodec
import Testing

extension ManagerMachineTests {
    @Test(
        "[SPEC A5] an equal configuration changes nothing where there is a connection, and connects where there is none"
    )
    func equalConfiguration() {
        var machine = self.machine()
        #expect(machine.connect(to: nil, .none) == [.connect(attempt: 1, nil)])
        #expect(machine.connect(to: nil, .none) == [])
        _ = machine.connected(sessionPresent: false)
        #expect(machine.connect(to: nil, .none) == [])
        #expect(machine.state == .connected)
        _ = machine.ended(Self.lost)
        #expect(machine.connect(to: nil, .none) == [.cancelWait, .connect(attempt: 3, nil)])
    }

    @Test(
        "[SPEC A5] another configuration ends the connection or attempt first, and what waits then is for the next one",
        arguments: [MQTTConfigurationChange.settings, .client],
        [true, false]
    )
    func otherConfiguration(_ change: MQTTConfigurationChange, _ isConnected: Bool) {
        var machine = self.machine()
        _ = machine.connect()
        if isConnected { _ = machine.connected(sessionPresent: false) }
        #expect(machine.connect(to: nil, change) == [.disconnect(keepsQueue: true)])
        #expect(machine.state == .closing)
        #expect(machine.disconnected() == [.connect(attempt: 2, nil)])
        #expect(machine.state == .connecting)
    }

    @Test("without a connection another configuration connects at once, and drops nothing that waits for it")
    func otherConfigurationBetween() {
        func waiting() -> ManagerMachine {
            var machine = self.machine()
            _ = machine.connect()
            _ = machine.ended(Self.lost)
            return machine
        }
        for change in [MQTTConfigurationChange.settings, .client] {
            var machine = waiting()
            #expect(machine.connect(to: nil, change) == [.cancelWait, .connect(attempt: 3, nil)])
            var suspended = waiting()
            _ = suspended.suspend()
            #expect(suspended.connect(to: nil, change) == [])
            #expect(suspended.disconnected() == [.connect(attempt: 3, nil)])
            // Of the same client the disconnect ends what waits; of another one it does not mean the new messages.
            var disconnected = waiting()
            _ = disconnected.suspend()
            _ = disconnected.disconnect()
            #expect(disconnected.connect(to: nil, change) == [])
            let drop: [ManagerMachine.Action] = change == .settings ? [.disconnect(keepsQueue: false)] : []
            if !drop.isEmpty { #expect(disconnected.disconnected() == drop) }
            #expect(disconnected.disconnected() == [.connect(attempt: 3, nil)])
        }
        var fresh = self.machine()
        #expect(fresh.connect(to: nil, .client) == [.connect(attempt: 1, nil)])
    }

    @Test("other settings keep the session, another server begins one, and another identifier has none to end")
    func sessions() {
        let other = ServerReference(host: "b", port: 2)
        func connected() -> ManagerMachine {
            var machine = self.machine(cleanStart: false)
            _ = machine.connect()
            _ = machine.connected(sessionPresent: false)
            return machine
        }
        var settings = connected()
        _ = settings.connect(to: nil, .settings)
        #expect(settings.disconnected() == [.connect(attempt: 2, nil)])
        var server = connected()
        _ = server.connect(to: other, .settings)
        #expect(server.disconnected() == [.connect(attempt: 2, nil, begins: true)])
        var client = connected()
        _ = client.connect(to: other, .client)
        #expect(client.disconnected() == [.connect(attempt: 2, nil)])
    }

    @Test("another identifier subscribes to everything, even in a session that the server kept")
    func otherClientSubscribes() {
        let wanted = [Subscription(filter: "a", qos: .atLeastOnce)]
        for change in [MQTTConfigurationChange.settings, .client] {
            var machine = self.machine(cleanStart: false)
            _ = machine.declare(wanted)
            _ = machine.connect()
            _ = machine.connected(sessionPresent: false)
            _ = machine.roundEnded(2, unsubscribed: nil, subscribed: [.grantedQoS1])
            _ = machine.connect(to: nil, change)
            _ = machine.disconnected()
            let round = ManagerMachine.Action.subscribe(.init(subscribe: wanted), number: 4)
            #expect(machine.connected(sessionPresent: true) == (change == .client ? [round] : []))
        }
    }
}
