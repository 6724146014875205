import MQTT
import MQTTCodec
import Testing

extension ManagerMachineTests {
    @Test("[MQTT5-4.11] follows a server to another one: for now, until that one fails too")
    func detour() throws {
        let other = try #require(ServerReference("b:2"))
        var machine = self.machine()
        _ = machine.connect()
        #expect(machine.ended(self.redirection(.useAnotherServer, "b:2")) == [.connect(attempt: 2, other)])
        _ = machine.connected(sessionPresent: false)
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 3)])
        #expect(machine.waited(3) == [.connect(attempt: 4, nil)])
    }

    @Test("[MQTT5-4.11] follows a server that has moved, and stays there")
    func moved() throws {
        let other = try #require(ServerReference("b"))
        var machine = self.machine()
        _ = machine.connect()
        #expect(machine.ended(self.redirection(.serverMoved, "b")) == [.connect(attempt: 2, other)])
        #expect(machine.ended(Self.lost) == [.wait(.seconds(1), number: 3)])
        #expect(machine.waited(3) == [.connect(attempt: 4, other)])
    }

    @Test("[MQTT5-4.11] two servers that send a client to each other are not followed for ever")
    func pingPong() {
        var machine = self.machine { $0.maximumRedirects = 2 }
        _ = machine.connect()
        for round in 0..<3 {
            var followed = 0
            while machine.state == .connecting {
                _ = machine.connected(sessionPresent: false)
                _ = machine.ended(self.redirection(.useAnotherServer, "b"))
                followed += 1
            }
            #expect(followed == 3)
            #expect(machine.state == .waiting)
            #expect(round == 2 || machine.connect().count == 2)
        }
        var none = self.machine { $0.maximumRedirects = 0 }
        _ = none.connect()
        _ = none.ended(self.redirection(.serverMoved, "b"))
        #expect(none.state == .waiting)
    }
}
