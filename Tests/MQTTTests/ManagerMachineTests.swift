import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("The session manager's machine")
struct ManagerMachineTests {
    static let lost = MQTTClientError.connectionLost(.closedByServer)
    static let configured = ServerReference(host: "a", port: 1)
    static let refused = MQTTClientError.refused(MQTTRefusal(code: 5, version: .v311))

    func machine(
        cleanStart: Bool = true,
        usualPort: UInt16? = nil,
        _ change: (inout MQTTReconnectPolicy) -> Void = { _ in }
    ) -> ManagerMachine {
        var policy = MQTTReconnectPolicy()
        policy.hasJitter = false
        change(&policy)
        let generator = SeededGenerator(seed: 1)
        return ManagerMachine(
            policy,
            setup: ManagerMachine.Setup(server: Self.configured, cleanStart: cleanStart, usualPort: usualPort),
            generator: generator
        )
    }

    private func connected() -> ManagerMachine {
        var machine = self.machine()
        _ = machine.connect()
        _ = machine.connected(sessionPresent: false)
        return machine
    }

    func redirection(_ code: ReasonCode, _ server: String) -> MQTTClientError {
        var properties = Properties()
        properties.serverReference = server
        return .refused(MQTTRefusal(code: code.rawValue, version: .v5, properties: properties))
    }

    @Test("[SPEC A12] comes back after 1, 2, 4 s ... and after 1 s again once it was connected")
    func backoff() {
        var machine = self.machine()
        #expect(machine.state == .starting)
        #expect(machine.connect() == [.connect(attempt: 1, nil)])
        var number = 1
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            #expect(machine.state == .connecting)
            #expect(machine.ended(Self.lost) == [.wait(.seconds(seconds), number: number + 1)])
            #expect(machine.state == .waiting)
            #expect(machine.waited(number + 1) == [.connect(attempt: number + 2, nil)])
            number += 2
        }
        #expect(machine.connected(sessionPresent: false) == [])
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: number + 1)])
    }

    @Test("[SPEC A3, #203] the error is known when the state is, and gone with the next connection")
    func lastError() {
        var machine = self.connected()
        #expect(machine.lastError == nil)
        _ = machine.ended(Self.lost)
        #expect(machine.lastError == Self.lost)
        _ = machine.connect()
        #expect(machine.lastError == Self.lost)
        _ = machine.connected(sessionPresent: false)
        #expect(machine.lastError == nil)
    }

    @Test("[SPEC A12] a permanent refusal is final until the next call of connect")
    func final() {
        var machine = self.machine()
        _ = machine.connect()
        #expect(machine.ended(Self.refused) == [])
        #expect(machine.state == .failed)
        #expect(machine.lastError == Self.refused)
        #expect(machine.wantsToSend() == [])
        #expect(machine.resume() == [])
        #expect(machine.connect() == [.connect(attempt: 2, nil)])
    }

    @Test("a refused login is tried again where the policy says so")
    func retriedLogin() {
        var machine = self.machine { $0.retriesRefusedLogin = true }
        for code: UInt8 in [4, 5] {
            _ = machine.connect()
            _ = machine.ended(.refused(MQTTRefusal(code: code, version: .v311)))
            #expect(machine.state == .waiting)
        }
        for code: UInt8 in [0x86, 0x87] {
            _ = machine.connect()
            _ = machine.ended(.refused(MQTTRefusal(code: code, version: .v5)))
            #expect(machine.state == .waiting)
        }
        _ = machine.connect()
        _ = machine.ended(.refused(MQTTRefusal(code: 0x85, version: .v5)))
        #expect(machine.state == .failed)
    }

    @Test("[SPEC A12] connectToLast does nothing when connected, and cuts a wait short with the back-off anew")
    func connectToLast() {
        var machine = self.connected()
        #expect(machine.connect() == [])
        _ = machine.ended(Self.lost)
        _ = machine.waited(2)
        #expect(machine.ended(Self.lost) == [.wait(.seconds(2), number: 4)])
        #expect(machine.connect() == [.cancelWait, .connect(attempt: 5, nil)])
        #expect(machine.connect() == [])
        // 1 s again, not 4.
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 6)])
    }

    @Test("[SPEC A12] a wait that was replaced does not fire")
    func oldWait() {
        var machine = self.connected()
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 2)])
        _ = machine.connect()
        #expect(machine.waited(2) == [])
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 4)])
        #expect(machine.waited(2) == [])
        #expect(machine.waited(4) == [.connect(attempt: 5, nil)])
        #expect(machine.waited(4) == [])
    }

    @Test("[SPEC A12] whatever the server does while the user disconnects, nothing is connected again")
    func disconnectRace() {
        for arrives in [Self.lost, Self.refused, self.redirection(.serverMoved, "b")] {
            var machine = self.connected()
            #expect(machine.disconnect() == [.disconnect(keepsQueue: false)])
            #expect(machine.state == .closing)
            #expect(machine.ended(arrives) == [])
            #expect(machine.connected(sessionPresent: false) == [])
            #expect(machine.state == .closing)
            #expect(machine.disconnected() == [])
            #expect(machine.state == .closed)
            #expect(machine.ended(arrives) == [])
            #expect(machine.lastError == nil)
        }
    }

    @Test("[SPEC A12] disconnect stops the wait, and an attempt under way")
    func disconnectEverywhere() {
        var waiting = self.connected()
        #expect(waiting.ended(Self.lost) == [.wait(.seconds(1), number: 2)])
        #expect(waiting.disconnect() == [.cancelWait, .disconnect(keepsQueue: false)])
        #expect(waiting.waited(2) == [])
        #expect(waiting.disconnected() == [])
        #expect(waiting.state == .closed)

        var connecting = self.machine()
        _ = connecting.connect()
        #expect(connecting.disconnect() == [.disconnect(keepsQueue: false)])
        #expect(connecting.disconnect() == [])
        #expect(connecting.disconnected() == [])
        #expect(connecting.state == .closed)
        #expect(connecting.disconnect() == [])
        #expect(connecting.state == .closed)

        var starting = self.machine()
        #expect(starting.disconnect() == [])
        #expect(starting.state == .closed)
    }

    @Test("a connection requested during a disconnect begins after it")
    func connectWhileClosing() {
        var machine = self.connected()
        _ = machine.disconnect()
        #expect(machine.connect() == [])
        #expect(machine.state == .closing)
        #expect(machine.disconnected() == [.connect(attempt: 2, nil)])
    }

    @Test("[SPEC A12] suspend closes and keeps what waits; resume connects, and only then")
    func suspends() {
        for connectedFirst in [true, false] {
            var machine = self.machine()
            _ = machine.connect()
            if connectedFirst { _ = machine.connected(sessionPresent: false) }
            #expect(machine.suspend() == [.disconnect(keepsQueue: true)])
            #expect(machine.disconnected() == [])
            #expect(machine.state == .suspended)
            #expect(machine.wantsToSend() == [])
            #expect(machine.ended(Self.lost) == [])
            #expect(machine.resume() == [.connect(attempt: 2, nil)])
            #expect(machine.resume() == [])
        }
        var waiting = self.connected()
        _ = waiting.ended(Self.lost)
        #expect(waiting.suspend() == [.cancelWait, .disconnect(keepsQueue: true)])
        #expect(waiting.resume() == [])
        // Resumed while it was closing.
        #expect(waiting.disconnected() == [.connect(attempt: 3, nil)])
    }

    @Test("[SPEC A12] suspend and resume do not bring back what the user has closed, or never opened")
    func suspendsNothing() {
        var machine = self.machine()
        #expect(machine.suspend() == [])
        #expect(machine.resume() == [])
        #expect(machine.state == .starting)
        _ = machine.connect()
        _ = machine.disconnect()
        #expect(machine.suspend() == [])
        #expect(machine.resume() == [])
        _ = machine.disconnected()
        #expect(machine.state == .closed)
        #expect(machine.suspend() == [])
        #expect(machine.resume() == [])
    }

    @Test("[SPEC A12] a message asks for a connection where there is none to come, and hurries none")
    func wantsToSend() {
        var machine = self.machine()
        #expect(machine.wantsToSend() == [.connect(attempt: 1, nil)])
        #expect(machine.wantsToSend() == [])
        _ = machine.ended(Self.lost)
        #expect(machine.wantsToSend() == [])
        _ = machine.disconnect()
        // The request is kept until the disconnect is complete.
        #expect(machine.wantsToSend() == [])
        #expect(machine.disconnected() == [.connect(attempt: 3, nil)])
        _ = machine.disconnect()
        _ = machine.disconnected()
        #expect(machine.wantsToSend() == [.connect(attempt: 4, nil)])
    }

    @Test("an attempt that the client refuses to begin is final; the end of an attempt is reported by its event alone")
    func attemptRefused() {
        var machine = self.machine()
        _ = machine.connect()
        #expect(machine.attemptRefused(1, Self.lost) == [])
        #expect(machine.attemptRefused(1, .cancelled) == [])
        #expect(machine.attemptRefused(1, .alreadyConnected) == [])
        #expect(machine.attemptRefused(2, .invalid("x")) == [])
        #expect(machine.state == .connecting)
        #expect(machine.attemptRefused(1, .invalid("x")) == [])
        #expect(machine.state == .failed)
        #expect(machine.lastError == .invalid("x"))
    }

    @Test("subscriptions are asked for with the connection, and late answers to an older one are not heard")
    func rounds() {
        let a = Subscription(filter: "a")
        var machine = self.machine()
        #expect(machine.declare([a]) == [])
        _ = machine.connect()
        #expect(machine.connected(sessionPresent: false) == [.subscribe(.init(subscribe: [a]), number: 2)])
        _ = machine.ended(Self.lost)
        _ = machine.connect()
        #expect(machine.connected(sessionPresent: false) == [.subscribe(.init(subscribe: [a]), number: 5)])
        #expect(machine.roundEnded(2, unsubscribed: nil, subscribed: [.grantedQoS1]) == [])
        #expect(machine.subscriptions.effective == [])
        #expect(machine.roundEnded(5, unsubscribed: nil, subscribed: [.success]) == [])
        #expect(machine.subscriptions.effective == [MQTTSubscribeResult(filter: "a", reason: .success)])
        #expect(machine.declare([]) == [.subscribe(.init(unsubscribe: ["a"]), number: 6)])
    }

    @Test("a connection of an attempt before, heard late, does not hide the one that stands")
    func staleConnection() {
        let a = Subscription(filter: "a")
        var machine = self.machine()
        _ = machine.declare([a])
        _ = machine.connect()
        #expect(machine.connected(sessionPresent: false) == [.subscribe(.init(subscribe: [a]), number: 2)])
        #expect(machine.connected(sessionPresent: false) == [.subscribe(.init(subscribe: [a]), number: 3)])
        #expect(machine.roundEnded(2, unsubscribed: nil, subscribed: nil) == [])
        #expect(machine.roundEnded(3, unsubscribed: nil, subscribed: [.success]) == [])
        #expect(machine.state == .connected)
        #expect(machine.subscriptions.effective == [MQTTSubscribeResult(filter: "a", reason: .success)])
    }

    @Test("every order of events leaves it in a state that fits what the user said last", arguments: UInt64(0)..<200)
    func anyOrder(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var machine = self.machine()
        var isWanted = false
        for _ in 0..<200 {
            var actions: [ManagerMachine.Action] = []
            switch Int.random(in: 0..<13, using: &generator) {
            case 0: (actions, isWanted) = (machine.connect(), true)
            case 1: (actions, isWanted) = (machine.disconnect(), false)
            case 2: actions = machine.connected(sessionPresent: Bool.random(using: &generator))
            case 3: actions = machine.ended(Self.lost)
            case 4: actions = machine.disconnected()
            case 5: actions = machine.waited(Int.random(in: 0..<50, using: &generator))
            case 6: actions = machine.declare([Subscription(filter: "a")])
            case 7: actions = machine.ended(.cancelled)
            case 8: (actions, isWanted) = (machine.connect(to: ServerReference(host: "c", port: 3)), true)
            case 9: (actions, isWanted) = (machine.connect(to: nil), true)
            case 10: (actions, isWanted) = (machine.connect(to: nil, .settings), true)
            case 11: (actions, isWanted) = (machine.connect(to: nil, .client), true)
            default: actions = machine.ended(self.redirection(.useAnotherServer, "b"))
            }
            let connects = actions.contains { if case .connect = $0 { true } else { false } }
            if !isWanted {
                #expect(!connects)
                #expect([.starting, .closing, .closed].contains(machine.state))
            } else {
                #expect([.connecting, .connected, .waiting, .closing].contains(machine.state))
            }
        }
    }
}
