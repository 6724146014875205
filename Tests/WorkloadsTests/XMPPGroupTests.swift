import LoadEngine
import NIOCore
import Testing
import Workloads

@Suite("Rooms and circles of contacts")
struct XMPPGroupTests {
    private func load(_ work: XMPPLoad.Work, clients: Int, size: Int, local: String = "user%i") -> XMPPLoad {
        var load = XMPPLoad(
            work,
            clients: clients,
            local: Template(parsing: local),
            domain: "example.org",
            resource: Template(parsing: "clamor%i"),
            password: Template(parsing: "p"),
            run: 1,
            seed: 42,
            realtimeOffset: 0
        )
        load.groupSize = size
        load.service = "conference.example.org"
        return load
    }

    @Test("the members of a group have ledger ids side by side, and every client its own")
    func ids() {
        let load = self.load(.muc, clients: 12, size: 4)
        #expect(load.groups == 3)
        // Clients 0, 3, 6 and 9 are in the first room.
        #expect([0, 3, 6, 9].map { load.ledgerID($0) } == [0, 1, 2, 3])
        #expect(Set((0..<12).map { load.ledgerID($0) }) == Set(0..<12))
    }

    @Test("a room sends to all occupants, a contact to all others of its circle")
    func receivers() {
        let room = self.load(.muc, clients: 12, size: 4)
        #expect(room.publishers(heardBy: 4) == [4..<8])
        let circle = self.load(.presence, clients: 12, size: 4)
        #expect(circle.publishers(heardBy: 4) == [4..<5, 6..<8])
        #expect(circle.publishers(heardBy: 0) == [1..<4])
        let message = self.load(.message, clients: 4, size: 1)
        #expect(message.publishers(heardBy: 2) == [3..<4])
    }

    @Test("rooms and nicks come from their patterns")
    func names() {
        var load = self.load(.muc, clients: 4, size: 2)
        #expect(
            (0..<4).map { load.occupant($0) } == [
                "clamor1@conference.example.org/clamor1", "clamor2@conference.example.org/clamor2",
                "clamor1@conference.example.org/clamor3", "clamor2@conference.example.org/clamor4",
            ]
        )
        load.room = "r%r-%r"
        load.nick = Template(parsing: "n%i")
        load.firstNumber = 11
        #expect(load.occupant(3) == "r2-2@conference.example.org/n14")
    }

    @Test("an invalid room or nick, or a duplicate address, is reported before anything is sent")
    func problems() {
        #expect(self.load(.muc, clients: 4, size: 2).groupProblem() == nil)
        #expect(self.load(.message, clients: 4, size: 1).groupProblem() == nil)
        var load = self.load(.muc, clients: 4, size: 2)
        load.room = "a b"
        #expect(load.groupProblem()?.part == .name)
        load = self.load(.muc, clients: 4, size: 2)
        load.nick = Template(parsing: "n")
        #expect(
            load.groupProblem()?.words
                == "two clients would be clamor1@conference.example.org/n, and the room lets in one of them; put %i into it"
        )
        let same = self.load(.presence, clients: 2, size: 2, local: "u")
        #expect(
            same.groupProblem()?.words
                == "two clients are u@example.org, and a client cannot be its own contact; give each a user of its own"
        )
    }

    @Test("all clients of a group share a loop, however many loops there are", arguments: [1, 2, 3, 7])
    func oneLoop(_ shards: Int) {
        for (clients, size) in [(12, 4), (10, 10), (9, 1), (30, 3)] {
            let load = self.load(.muc, clients: clients, size: size)
            var plan = LoadPlan(operators: clients, pace: .closed, measure: nil)
            plan.row = load.groups
            var loops: [Int: Set<Int>] = [:]
            var seen: Set<Int> = []
            for index in 0..<shards {
                let places = ShardClients(plan, shard: index, of: shards)
                for place in 0..<places.count {
                    let number = places.number(at: place)
                    #expect(seen.insert(number).inserted)
                    loops[number % load.groups, default: []].insert(index)
                }
            }
            #expect(seen == Set(0..<clients))
            #expect(loops.values.allSatisfy { $0.count == 1 })
        }
    }
}
