import Ledger
import LoadEngine
import NIOCore

/// The groups of one event loop: rooms and their occupants, or circles of contacts.
///
/// All members of a group are on one loop (``LoadPlan/row``), so the first and the last receiver of a message are known
/// without other loops. A client costs about 100 bytes, plus 32 per group member and 8 per message in flight (128 at
/// least). A circle adds 1 per contact and about 100 for the client's address. A client that joins after others have
/// sent costs 16 more per member, and 40 per member whose messages it missed.
final class XMPPGroups {
    /// A client's progress on the way into its group.
    enum Step: UInt8 {
        case out
        /// Another client is opening the room.
        case waiting
        /// The client has sent its presence to the room.
        case asked
        /// The room still holds the client's nick, perhaps for its previous connection. The client retries.
        case held
        /// The client is in a new room, which must be unlocked (XEP-0045 §10.1.2).
        case opening
        /// The client has requested its roster.
        case listing
        /// The client and the contacts that were there before it are being subscribed to each other.
        case subscribing
        case within
    }

    struct Member {
        var step = Step.out
        var wasWithin = false
        /// The obstacle may be temporary.
        var mayRetry = true
        /// Time when the client gives up.
        var deadline = NIODeadline.distantFuture
        /// Time when the client asked to enter.
        var asked = NIODeadline.distantPast
        /// Time of the next retry for a nick that is held; the distant future without a retry.
        var again = NIODeadline.distantFuture
        var flights = FanOutFlights()
        /// Time of the client's last send.
        var sentAt = NIODeadline.distantPast
        /// Contacts that the client waits for, plus one for the server itself.
        var waits: Int32 = 0
        /// Position in the order in which the server got the presences; 0 before.
        var order: UInt32 = 0
        /// The server has the client's presence.
        var isKnown = false
        /// The first message of each member that the client must get, or that it may miss while it is out; 0 if empty.
        var from: [UInt64] = []
        /// The messages of each member sent while the client was not in the group; empty for none.
        var missed: [SequenceRanges] = []

        /// The contacts are known, and roster pushes change them.
        var hasRoster: Bool { self.step == .subscribing || self.step == .within }
    }

    struct Group {
        /// Members in the group.
        var within: Int32 = 0
        /// The client that opens the room; -1 for none.
        var opener: Int32 = -1
        /// The room exists and clients may enter.
        var isOpen = false
        var waiting: [Int32] = []
    }

    let size: Int
    /// Number of groups on this loop.
    let count: Int
    private let places: ShardClients
    private let clients: Int
    private let total: Int
    let members: UnsafeMutableBufferPointer<Member>
    let groups: UnsafeMutableBufferPointer<Group>
    let ledger: UnsafeMutablePointer<GroupLedger>
    /// A byte per contact of each client; only for circles.
    let contacts: UnsafeMutableBufferPointer<UInt8>
    /// Places by bare JID; only for circles.
    var addresses: [String: Int32] = [:]
    var lastOrder: UInt32 = 0
    /// Stanzas whose last arrival will never be known.
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
        self.ledger = .make(GroupLedger(clients: load.hasLedger ? places.count : 0, size: load.groupSize))
        self.contacts = .allocate(capacity: load.work == .presence ? places.count * load.groupSize : 0)
        self.contacts.initialize(repeating: 0)
    }

    deinit {
        for place in 0..<self.clients { self.members[place].flights.close() }
        self.members.deinitialize()
        self.members.deallocate()
        self.groups.deinitialize()
        self.groups.deallocate()
        self.ledger.destroy()
        self.contacts.deallocate()
    }

    // MARK: - Places of clients

    /// A client's group on this loop, and its number among the members.
    @inline(__always)
    func membership(_ place: Int) -> (group: Int, member: Int) {
        let (member, group) = place.quotientAndRemainder(dividingBy: self.count)
        return (group, member)
    }

    func place(group: Int, member: Int) -> Int { member * self.count + group }

    /// The group's number in the whole run.
    func number(ofGroup group: Int) -> Int { group * self.places.shards + self.places.index }

    /// The client's id in headers and ledger; members of a group have consecutive ids.
    func id(group: Int, member: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: self.number(ofGroup: group) * self.size + member)
    }

    /// The sender of a message that arrived in this group: `nil` if it is not a member.
    func sender(_ id: UInt32, heardBy group: Int) -> Int? {
        let (number, member) = Int(id).quotientAndRemainder(dividingBy: self.size)
        return number == self.number(ofGroup: group) ? member : nil
    }

    /// Whether a client's messages have no receiver.
    func isAlone(_ place: Int, _ work: XMPPLoad.Work) -> Bool {
        work == .presence && self.groups[self.membership(place).group].within < 2
    }

    /// Records a member's messages that a client did not get and need not get.
    func addMissed(_ place: Int, _ member: Int, _ range: Range<UInt64>) {
        if self.members[place].missed.isEmpty {
            self.members[place].missed = Array(repeating: SequenceRanges(), count: self.size)
        }
        self.members[place].missed[member].insert(range)
    }

    func exists(_ id: UInt32) -> Bool { Int(id) < self.total }
}
