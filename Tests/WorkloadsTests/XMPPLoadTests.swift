import LoadEngine
import NIOCore
import Testing
import Workloads

@Suite("Addresses and actions of XMPP clients")
struct XMPPLoadTests {
    private func load(
        _ clients: Int,
        _ pairing: XMPPLoad.Pairing = .neighbour,
        segment: PlanSegment = .whole,
        jid: (String, String, String) = ("user%i", "example.org", "clamor")
    ) -> XMPPLoad {
        XMPPLoad(
            .message,
            clients: clients,
            local: Template(parsing: jid.0),
            domain: jid.1,
            resource: Template(parsing: jid.2),
            password: Template(parsing: "p%i"),
            pairing: pairing,
            segment: segment,
            run: 1,
            seed: 42,
            realtimeOffset: 0
        )
    }

    @Test("a client's JID and password come from the pattern, from -n on")
    func users() {
        var load = self.load(2)
        load.firstNumber = 11
        #expect(load.user(1) == XMPPUser(local: "user12", domain: "example.org", resource: "clamor", password: "p12"))
        #expect(load.user(0).full == "user11@example.org/clamor")
    }

    @Test(
        "who writes to a client is who has it for a peer",
        arguments: XMPPLoad.Pairing.allCases,
        [1, 2, 3, 8, 101]
    )
    func writers(_ pairing: XMPPLoad.Pairing, _ clients: Int) {
        let load = self.load(clients, pairing)
        for number in 0..<clients {
            let writers = (0..<clients).filter { load.peer(of: $0) == number }
            #expect(Array(load.writers(to: number)) == writers)
        }
    }

    @Test("neighbours write to each other, and the last of an odd number to itself")
    func neighbours() {
        let load = self.load(5)
        #expect((0..<5).map { load.peer(of: $0) } == [1, 0, 3, 2, 4])
    }

    @Test("a random ring is one ring, and the seed's")
    func ring() {
        let load = self.load(100, .random)
        var seen: [Int] = [0]
        while seen.count < 100 { seen.append(load.peer(of: seen[seen.count - 1])) }
        #expect(Set(seen).count == 100)
        #expect(load.peer(of: seen[99]) == 0)
        #expect((0..<100).map { load.peer(of: $0) } == (0..<100).map { self.load(100, .random).peer(of: $0) })
    }

    @Test(
        "clients write to clients of their own segment, and each has one writer",
        arguments: [XMPPLoad.Pairing.neighbour, .random],
        [(8, 4), (8, 2), (7, 3), (101, 5), (3, 1)]
    )
    func segments(_ pairing: XMPPLoad.Pairing, _ division: (clients: Int, segments: Int)) {
        var readers: [Int] = []
        for index in 0..<division.segments {
            let segment = PlanSegment(index: index, of: division.segments)
            let load = self.load(division.clients, pairing, segment: segment)
            let own = (0..<division.clients).filter(segment.contains)
            for number in own {
                let peer = load.peer(of: number)
                #expect(own.contains(peer))
                #expect(load.writers(to: peer) == number..<number + 1)
                readers.append(peer)
            }
            let others = (0..<division.clients).filter { !segment.contains($0) }
            #expect(others.allSatisfy { load.writers(to: $0).isEmpty })
        }
        #expect(readers.sorted() == Array(0..<division.clients))
    }

    @Test("an invalid or duplicate JID is reported before anything is sent")
    func problems() throws {
        #expect(self.load(3).problem() == nil)
        let twice = try #require(self.load(2, jid: ("user", "example.org", "clamor")).problem())
        #expect(twice.hasPrefix("two clients would be user@example.org/clamor"))
        let none = try #require(self.load(1, jid: ("a b", "example.org", "clamor")).problem())
        #expect(none.hasPrefix("'a b@example.org/clamor' is no JID: "))
    }
}
