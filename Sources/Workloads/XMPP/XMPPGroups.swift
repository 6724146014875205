import Ledger
import LoadEngine
import NIOCore

/// The groups of one event loop: rooms and their occupants, or circles of contacts.
///
/// A group lives whole on one loop (``LoadPlan/row``), so that who received a message first, and who last, is known without
/// asking any other. A client costs some 100 bytes here, 32 for each member of its group, 8 for each message under way (128
/// at least), and in a circle one more for each contact and some 100 for its address. Who comes in when others have spoken
/// costs 16 more for each member, and 40 for each that it missed something of.
final class XMPPGroups {
    /// How far a client is on its way into its group.
    enum Step: UInt8 {
        case out
        /// Somebody else is opening the room.
        case waiting
        /// Its presence is on its way to the room.
        case asked
        /// The room still holds its nick, perhaps for its connection before: it asks again.
        case held
        /// It is in a new room, which has to be unlocked (XEP-0045 §10.1.2).
        case opening
        /// It has asked for its roster.
        case listing
        /// It is about to be subscribed to those contacts that were there before it, and they to it.
        case subscribing
        case within
    }

    struct Member {
        var step = Step.out
        var wasWithin = false
        /// What keeps it out may pass.
        var mayRetry = true
        /// When it gives up.
        var deadline = NIODeadline.distantFuture
        /// When it asked to be let in.
        var asked = NIODeadline.distantPast
        /// When it asks again for a nick that is held; of who need not, and has not, the distant future.
        var again = NIODeadline.distantFuture
        var flights = FanOutFlights()
        /// When it last sent something.
        var sentAt = NIODeadline.distantPast
        /// Of its contacts: those that it waits for, and the server itself.
        var waits: Int32 = 0
        /// Its place in the order of those who came in; 0 for nobody's.
        var order: UInt32 = 0
        /// The server has its presence.
        var isKnown = false
        /// By member, the first sequence that it has to get, or, while it is out, that it may miss; empty for 0.
        var from: [UInt64] = []
        /// By member, what was sent while it was not there; empty for nothing.
        var missed: [SequenceRanges] = []
    }

    struct Group {
        /// Members that are in.
        var within: Int32 = 0
        /// Who opens the room; -1 for nobody.
        var opener: Int32 = -1
        /// The room is there, and anybody may enter.
        var isOpen = false
        var waiting: [Int32] = []
    }

    let size: Int
    /// Groups of this loop.
    let count: Int
    private let places: ShardClients
    private let clients: Int
    private let total: Int
    let members: UnsafeMutableBufferPointer<Member>
    let groups: UnsafeMutableBufferPointer<Group>
    let ledger: UnsafeMutablePointer<GroupLedger>
    /// A byte for each contact of each client; only of circles.
    let contacts: UnsafeMutableBufferPointer<UInt8>
    /// By bare JID; only of circles.
    var addresses: [String: Int32] = [:]
    var lastOrder: UInt32 = 0
    /// Stanzas of which it will never be known when the last receiver had them.
    var givenUp: UInt64 = 0

    init(_ load: XMPPLoad, places: ShardClients) {
        self.size = load.groupSize
        self.count = places.perRow
        self.places = places
        self.clients = places.count
        self.total = load.clients
        self.members = .allocate(capacity: places.count)
        self.members.initialize(repeating: Member())
        self.groups = .allocate(capacity: places.perRow)
        self.groups.initialize(repeating: Group())
        self.ledger = .allocate(capacity: 1)
        self.ledger.initialize(to: GroupLedger(clients: load.hasLedger ? places.count : 0, size: load.groupSize))
        self.contacts = .allocate(capacity: load.work == .presence ? places.count * load.groupSize : 0)
        self.contacts.initialize(repeating: 0)
    }

    deinit {
        for place in 0..<self.clients { self.members[place].flights.close() }
        self.members.deinitialize()
        self.members.deallocate()
        self.groups.deinitialize()
        self.groups.deallocate()
        self.ledger.deinitialize(count: 1)
        self.ledger.deallocate()
        self.contacts.deallocate()
    }

    // MARK: - Who is where

    /// A client's group on this loop, and its number among the members.
    @inline(__always)
    func seat(_ place: Int) -> (group: Int, member: Int) {
        let (member, group) = place.quotientAndRemainder(dividingBy: self.count)
        return (group, member)
    }

    func place(group: Int, member: Int) -> Int { member * self.count + group }

    /// The number of a group in the whole run.
    func number(ofGroup group: Int) -> Int { group * self.places.shards + self.places.index }

    /// What stands for a client in headers and ledger: the members of a group lie side by side.
    func id(group: Int, member: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: self.number(ofGroup: group) * self.size + member)
    }

    /// Who sent a message, as seen from a client: `nil` if nobody of its group.
    func sender(_ id: UInt32, heardBy group: Int) -> Int? {
        let (number, member) = Int(id).quotientAndRemainder(dividingBy: self.size)
        return number == self.number(ofGroup: group) ? member : nil
    }

    /// Whether what a client sends comes to nobody.
    func isAlone(_ place: Int, _ work: XMPPLoad.Work) -> Bool {
        work == .presence && self.groups[self.seat(place).group].within < 2
    }

    /// What a client did not get of a member, and need not.
    func addMissed(_ place: Int, _ member: Int, _ range: Range<UInt64>) {
        if self.members[place].missed.isEmpty {
            self.members[place].missed = Array(repeating: SequenceRanges(), count: self.size)
        }
        self.members[place].missed[member].insert(range)
    }

    /// Whether there is such a client at all.
    func exists(_ id: UInt32) -> Bool { Int(id) < self.total }
}
