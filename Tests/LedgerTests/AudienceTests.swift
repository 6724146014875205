import Ledger
import Testing

@Suite("The receivers that a message reaches")
struct AudienceTests {
    private let one = AudienceMember(receiver: 7, copies: 3, noLocal: 2, qos: 2, ownQoS: 1)
    private let two = AudienceMember(receiver: 4, qos: 1)

    @Test("a set has one number, whatever its order, and the empty set has 0")
    func numbers() {
        var table = AudienceTable()
        #expect(table.number(of: []) == 0)
        #expect(table.number(of: [self.one, self.two]) == 1)
        #expect(table.number(of: [self.two, self.one]) == 1)
        #expect(table.number(of: [self.one]) == 2)
        // The same receivers with another QoS are another audience.
        #expect(table.number(of: [AudienceMember(receiver: 7, copies: 3, noLocal: 2, qos: 1)]) == 3)
        #expect(table.audiences[1] == [self.two, self.one])
        #expect(!table.overflowed)
    }

    @Test("a receiver's sets are found", arguments: [(7, [1, 2]), (4, [1]), (5, [])] as [(UInt32, [UInt32])])
    func ofReceiver(_ receiver: UInt32, _ numbers: [UInt32]) {
        var table = AudienceTable()
        for members in [[self.one, self.two], [self.one]] { _ = table.number(of: members) }
        #expect(table.audiences(with: receiver) == numbers)
    }

    @Test("the client that publishes gets no copies for its No Local filters", arguments: [(nil, 3), (4, 3), (7, 1)])
    func copies(_ own: UInt32?, _ copies: Int) {
        #expect(self.one.copies(from: own) == copies)
    }

    @Test("a set too many has the empty set's number, and the table reports it")
    func overflow() {
        var table = AudienceTable()
        for receiver in 1..<StreamKey.audienceLimit {
            _ = table.number(of: [AudienceMember(receiver: receiver, qos: 0)])
        }
        #expect(!table.overflowed)
        #expect(table.number(of: [self.two, self.one]) == 0)
        #expect(table.overflowed)
        // Known sets keep their numbers.
        #expect(table.number(of: [AudienceMember(receiver: 9, qos: 0)]) == 9)
    }
}
