import MQTT
import MQTTCodec
import Testing

extension ManagerMachineTests {
    private var other: ServerReference { ServerReference(host: "b", port: 2) }

    @Test("[SPEC A5] another server: the connection to the last one is closed first, and nothing that waits is dropped")
    func changesServer() {
        var machine = self.machine()
        _ = machine.connect()
        _ = machine.connected(sessionPresent: false)
        #expect(machine.connect(to: self.other) == [.disconnect(keepsQueue: true)])
        #expect(machine.state == .closing)
        #expect(machine.disconnected() == [.connect(attempt: 2, nil)])
        #expect(machine.setup.server == self.other)
        #expect(machine.connected(sessionPresent: false) == [])
        // Already there.
        #expect(machine.connect(to: self.other) == [])
        #expect(machine.state == .connected)
        // And it is the last one from now on.
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 3)])
        #expect(machine.waited(3) == [.connect(attempt: 4, nil)])
        _ = machine.disconnect()
        _ = machine.disconnected()
        #expect(machine.connect() == [.connect(attempt: 5, nil)])
        // Back to the configured one, in the middle of the attempt.
        #expect(machine.connect(to: nil) == [.disconnect(keepsQueue: true)])
        #expect(machine.disconnected() == [.connect(attempt: 6, nil)])
    }

    @Test("[SPEC A5] another server where there is no connection: it is the one that is asked")
    func choosesServer() {
        var fresh = self.machine()
        #expect(fresh.connect(to: self.other) == [.connect(attempt: 1, nil)])
        var waiting = self.machine()
        _ = waiting.connect()
        _ = waiting.ended(Self.lost)
        #expect(waiting.connect(to: self.other) == [.cancelWait, .connect(attempt: 3, nil)])
        var failed = self.machine()
        _ = failed.connect()
        _ = failed.ended(Self.refused)
        #expect(failed.connect(to: self.other) == [.connect(attempt: 2, nil)])
        var closing = self.machine()
        _ = closing.connect()
        _ = closing.disconnect()
        #expect(closing.connect(to: self.other) == [])
        #expect(closing.disconnected() == [.connect(attempt: 2, nil)])
    }

    @Test("a server that was gone to by redirection is left for the one that is asked for")
    func leavesDetour() throws {
        var machine = self.machine()
        _ = machine.connect()
        _ = machine.ended(self.redirection(.useAnotherServer, "c"))
        _ = machine.connected(sessionPresent: false)
        #expect(machine.connect(to: nil) == [.disconnect(keepsQueue: true)])
        #expect(machine.disconnected() == [.connect(attempt: 3, nil)])
    }

    @Test("the server of a redirection in use, asked for by name, is the one in use, and stays")
    func keepsDetour() {
        var machine = self.machine(usualPort: 7)
        _ = machine.connect()
        let server = ServerReference(host: "c", port: 7)
        #expect(machine.ended(self.redirection(.useAnotherServer, "c")) == [.connect(attempt: 2, server)])
        _ = machine.connected(sessionPresent: false)
        #expect(machine.connect(to: server) == [])
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 3)])
        #expect(machine.waited(3) == [.connect(attempt: 4, nil)])
        #expect(machine.setup.server == server)
    }

    @Test("a disconnect during a closing that keeps what waits ends that too", arguments: [true, false])
    func disconnectDrops(_ isSuspended: Bool) {
        var machine = self.machine()
        _ = machine.connect()
        _ = machine.connected(sessionPresent: false)
        let begun = isSuspended ? machine.suspend() : machine.connect(to: self.other)
        #expect(begun == [.disconnect(keepsQueue: true)])
        #expect(machine.disconnect() == [])
        #expect(machine.disconnected() == [.disconnect(keepsQueue: false)])
        #expect(machine.state == .closing)
        #expect(machine.disconnected() == [])
        #expect(machine.state == .closed)
        // A connect requested after the end changes nothing.
        _ = machine.connect()
        _ = machine.suspend()
        _ = machine.disconnect()
        _ = machine.connect()
        #expect(machine.disconnected() == [.disconnect(keepsQueue: false)])
        #expect(machine.disconnected().count == 1)
        #expect(machine.state == .connecting)
    }

    @Test("a session is begun with another server that the user chose, until it is, and goes on where a server sent on")
    func begins() {
        var machine = self.machine(cleanStart: false, usualPort: 7)
        // There is no session yet.
        _ = machine.connect()
        #expect(machine.connect(to: self.other) == [.disconnect(keepsQueue: true)])
        #expect(machine.disconnected() == [.connect(attempt: 2, nil)])
        _ = machine.connected(sessionPresent: false)
        _ = machine.connect(to: nil)
        #expect(machine.disconnected() == [.connect(attempt: 3, nil, begins: true)])
        _ = machine.ended(Self.lost)
        #expect(machine.connect() == [.cancelWait, .connect(attempt: 5, nil, begins: true)])
        // Back to where the session is.
        _ = machine.connect(to: self.other)
        #expect(machine.disconnected() == [.connect(attempt: 6, nil)])
        _ = machine.connect(to: nil)
        #expect(machine.disconnected() == [.connect(attempt: 7, nil, begins: true)])
        _ = machine.connected(sessionPresent: true)
        let server = ServerReference(host: "c", port: 7)
        #expect(machine.ended(self.redirection(.useAnotherServer, "c")) == [.connect(attempt: 8, server)])
        _ = machine.connected(sessionPresent: false)
        _ = machine.ended(Self.lost)
        #expect(machine.connect() == [.cancelWait, .connect(attempt: 10, nil)])
        // A clean start begins one anyway.
        var clean = self.machine()
        _ = clean.connect()
        _ = clean.connected(sessionPresent: false)
        _ = clean.connect(to: self.other)
        #expect(clean.disconnected() == [.connect(attempt: 2, nil)])
    }

    @Test("what another server has kept of a session is not taken for what this one had")
    func forgetsSubscriptions() {
        var machine = self.machine(cleanStart: false)
        let wanted = [Subscription(filter: "a", qos: .atLeastOnce)]
        _ = machine.declare(wanted)
        _ = machine.connect()
        let round = SubscriptionReconciler.Round(subscribe: wanted)
        #expect(machine.connected(sessionPresent: false) == [.subscribe(round, number: 2)])
        _ = machine.roundEnded(2, unsubscribed: nil, subscribed: [.grantedQoS1])
        _ = machine.ended(Self.lost)
        _ = machine.connect()
        #expect(machine.connected(sessionPresent: true) == [])
        _ = machine.connect(to: self.other)
        _ = machine.disconnected()
        #expect(machine.connected(sessionPresent: true) == [.subscribe(round, number: 6)])
    }
}

extension ManagerMachine {
    /// Connects with a configuration that has this server, `nil` for the first one, and differs so otherwise.
    mutating func connect(to server: ServerReference?, _ change: MQTTConfigurationChange = .none) -> [Action] {
        var setup = self.setup
        setup.server = server ?? ManagerMachineTests.configured
        return self.connect(with: setup, change: change)
    }
}
