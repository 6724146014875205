import NIOCore
import NIOEmbedded
import TestSupport
import Testing
import XMPP

@Suite("Resumption under random cuts")
struct ResumptionProofTests {
    /// The client's side, over connections, and the bytes under way in both directions.
    private final class World {
        let server = VirtualServer()
        var dice: SeededDice
        var rig: ConnectionRig
        /// Bytes that the client has written and the server has not read.
        var up: [UInt8] = []
        /// Messages of the client, numbered.
        var said = 0
        /// Numbers of the server's messages, as the client got them.
        var received: [Int] = []
        /// Cuts by the state that they found.
        var cuts: [XMPPState: Int] = [:]
        var cutsWithUnacknowledged = 0
        var readiness: [RecordingObserver.Call] = []

        init(seed: UInt64) throws {
            self.dice = SeededDice(seed: seed)
            let every = Int.random(in: 0...4, using: &self.dice)
            let options = ConnectionRig.options {
                $0.management = .resume
                $0.acknowledgesEvery = every
                $0.keepAlive = .zero
            }
            self.rig = try ConnectionRig(options, account: ConnectionRig.account)
            self.rig.start()
        }

        func say() {
            guard self.rig.connection.isWritable else { return }
            let number = self.said
            let isTaken = self.rig.connection.send {
                $0.writeString("<message id='\(number)' to='romeo@example.net'><body>no. \(number)</body></message>")
            }
            if isTaken { self.said += 1 }
        }

        func carryUp(_ most: Int) throws {
            while let buffer = try self.rig.channel.readOutbound(as: ByteBuffer.self) {
                self.up += Array(buffer.readableBytesView)
            }
            let count = min(most, self.up.count)
            self.server.receive(self.up.prefix(count))
            self.up.removeFirst(count)
        }

        func carryDown(_ most: Int) throws {
            let count = min(most, self.server.out.count)
            try self.rig.receive(Array(self.server.out.prefix(count)))
            self.server.out.removeFirst(count)
            self.note()
        }

        /// Moves what the client's owner was told to where it is compared.
        private func note() {
            for call in self.rig.observer.calls {
                switch call {
                case .received(let stanza):
                    if let number = stanza["id"].flatMap({ Int($0) }) { self.received.append(number) }
                case .ready: self.readiness.append(call)
                default: break
                }
            }
            self.rig.observer.calls.removeAll { if case .ended = $0 { false } else { true } }
        }

        func carryAll() throws {
            repeat {
                try self.carryUp(.max)
                try self.carryDown(.max)
                try self.carryUp(.max)
            } while !self.up.isEmpty || !self.server.out.isEmpty
        }

        func step() throws {
            switch Int.random(in: 0..<8, using: &self.dice) {
            case 0, 1: self.say()
            case 2, 3: self.server.send()
            case 4: self.server.ask()
            case 5: self.rig.connection.requestAcknowledgement()
            case 6: try self.carryUp(Int.random(in: 1...400, using: &self.dice))
            default: try self.carryDown(Int.random(in: 1...400, using: &self.dice))
            }
        }

        /// Bytes under way are lost, and the client connects again.
        func cut() throws {
            self.cuts[self.rig.stream.pointee.state, default: 0] += 1
            if self.rig.unacknowledged > 0 { self.cutsWithUnacknowledged += 1 }
            self.rig.channel.close(promise: nil)
            self.note()
            self.up = []
            self.server.connect()
            self.rig = try self.rig.again()
            self.rig.start()
        }
    }

    @Test(
        "[XEP-0198 §5] after a thousand cuts at random bytes nothing is lost, nothing comes twice, all is in order",
        arguments: [1, 2, 3, 4] as [UInt64]
    )
    func cuts(_ seed: UInt64) throws {
        let world = try World(seed: seed)
        // A session that both sides know is where resumptions begin.
        try world.carryAll()
        #expect(world.server.isOn)
        for _ in 0..<250 {
            // Many of the cuts find a stream that is ready; the others find a login under way.
            if world.dice.hits(0.6) { try world.carryAll() }
            for _ in 0..<Int.random(in: 0...60, using: &world.dice) { try world.step() }
            try world.cut()
        }
        try world.carryAll()
        world.say()
        world.server.send()
        world.server.ask()
        world.rig.connection.requestAcknowledgement()
        try world.carryAll()

        #expect(world.server.received == Array(0..<world.said))
        #expect(world.received == Array(0..<world.server.sent))
        #expect(world.server.unexpected == [])
        #expect(world.rig.unacknowledged == 0)
        let resumed = world.readiness.dropFirst().allSatisfy { call in
            if case .ready(_, true, _, 0) = call { true } else { false }
        }
        #expect(resumed)
        // The cuts came where they can do harm: in the login, in the resumption, and with stanzas under way.
        #expect(world.said > 100)
        #expect(world.server.sent > 100)
        #expect(world.server.resumptions > 50)
        #expect(world.cutsWithUnacknowledged > 50)
        for state in [XMPPState.opening, .auth, .managing, .connected] {
            #expect(world.cuts[state] ?? 0 > 0, "\(state): \(world.cuts)")
        }
    }
}
