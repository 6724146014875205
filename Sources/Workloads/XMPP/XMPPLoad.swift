package import LoadEngine
package import Measurement
package import NIOCore
package import Transport
import XMPPCodec

/// The JID and password of one XMPP client.
package struct XMPPUser: Hashable, Sendable {
    package var local: String
    package var domain: String
    package var resource: String
    package var password: String

    package init(local: String, domain: String, resource: String, password: String) {
        self.local = local
        self.domain = domain
        self.resource = resource
        self.password = password
    }

    package var bare: String { "\(self.local)@\(self.domain)" }
    package var full: String { "\(self.bare)/\(self.resource)" }
}

/// The settings and behaviour of a run's XMPP clients, as plain values shared by all shards.
package struct XMPPLoad: Sendable {
    package enum Work: String, CaseIterable, Sendable {
        /// Clients log in and stay.
        case login
        /// Chat messages, each to the client's peer.
        case message
        /// IQ pings to the server (XEP-0199).
        case ping
        /// Messages in rooms, each to all occupants (XEP-0045).
        case muc
        /// Changes of presence, each to all contacts (RFC 6121 §4.4).
        case presence
        /// Accounts are registered (XEP-0077), each on a connection of its own that then ends.
        case register
        /// Accounts are removed, by clients that can log in to them.
        case unregister

        /// Whether each client connects once and then ends.
        package var isOfAccounts: Bool { self == .register || self == .unregister }
    }

    /// The peer that a client sends to.
    package enum Pairing: String, CaseIterable, Sendable {
        /// Clients 1 and 2 send to each other, as do 3 and 4, and so on. With an odd number the last one sends to
        /// itself. A segment counts its own clients.
        case neighbour
        /// A ring over all clients in an order drawn from the seed: each client has one sender and one receiver. A
        /// segment has a ring of its own.
        case random
        /// Every client sends to the first one, which sends to the second.
        case hotspot
    }

    /// When a stream uses TLS.
    package enum TLSPolicy: String, CaseIterable, Sendable {
        /// STARTTLS if the server requires it.
        case allowed
        /// STARTTLS if the server offers it.
        case preferred
        /// STARTTLS; without it the client does not log in.
        case required
        /// TLS from the first byte (XEP-0368).
        case direct
        case off
    }

    package var work: Work
    package var clients: Int
    /// The parts of `user%i@domain/resource`.
    package var local: Template
    package var domain: String
    package var resource: Template
    package var password: Template
    /// Replaces those four, by the client's number.
    package var users: [XMPPUser] = []
    /// `%i` of the first client.
    package var firstNumber = 1

    package var tls = TLSPolicy.preferred
    /// The only mechanism allowed; `nil`: the strongest one that the server offers.
    package var mechanism: String?
    /// PLAIN is allowed on a stream without TLS.
    package var allowsPlainWithoutTLS = false
    package var streamManagement = false
    /// Accounts that could not be registered before the run, and the reason, by bare JID.
    package var unregistered: [String: AccountRefusal] = [:]

    package var payload = LoadPayload.generated(size: 256)
    /// Occupants per room, or a client and its contacts; a divisor of ``clients``.
    package var groupSize = 1
    /// The local part of a room's JID; `%r` is its number.
    package var room = "clamor%r"
    /// The address of the rooms' service.
    package var service = ""
    package var nick = Template(parsing: "clamor%i")
    package private(set) var pairing: Pairing
    /// The segment whose clients send to each other: no message leaves it.
    private let segment: PlanSegment
    /// The order of a random ring, and each client's position in it, by the numbers in the segment.
    private let ring: [Int32]
    private let placeInRing: [Int32]
    /// Operations in flight per client in closed loop.
    package var window = 16
    package var isOpenLoop = false
    /// Timeout of an answer.
    package var ackTimeout = TimeAmount.seconds(30)

    /// The run's number, in the header of each of its messages.
    package var run: UInt32
    package var connectTimeout = TimeAmount.seconds(10)
    package var connectRetries = 0
    package var reconnects = 0
    package var backoff = Backoff()
    package var failsOver = false
    /// The reasons for which clients leave by plan.
    package var departures: Set<DeparturePlan.Cause> = []
    package var dueWhileAway: Cycle.Due?
    /// The layers between TCP and the stream.
    package var layers: Set<ConnectError.Phase> = []
    package var seed: UInt64
    /// The run's stages; empty in a run without stages.
    package var stages: [MetricStage] = []
    /// CLOCK_REALTIME minus the monotonic clock, read once.
    ///
    /// Headers hold the former, the run counts in the latter.
    package var realtimeOffset: Int64

    package init(
        _ work: Work,
        clients: Int,
        local: Template,
        domain: String,
        resource: Template,
        password: Template,
        pairing: Pairing = .neighbour,
        segment: PlanSegment = .whole,
        run: UInt32,
        seed: UInt64,
        realtimeOffset: Int64
    ) {
        self.work = work
        self.clients = clients
        self.local = local
        self.domain = domain
        self.resource = resource
        self.password = password
        self.pairing = pairing
        self.segment = segment
        self.run = run
        self.seed = seed
        self.realtimeOffset = realtimeOffset
        guard pairing == .random, work == .message else {
            self.ring = []
            self.placeInRing = []
            return
        }
        var random = SplitMix64(seed: seed)
        let ring = (0..<Int32(segment.share(of: clients))).shuffled(using: &random)
        var places = [Int32](repeating: 0, count: ring.count)
        for (place, client) in ring.enumerated() { places[Int(client)] = Int32(place) }
        self.ring = ring
        self.placeInRing = places
    }

    /// The domain in the form that servers compare: lower case, U-labels.
    ///
    /// An invalid domain is returned unchanged.
    package static func prepared(domain: String) -> String { (try? JID(domain: domain))?.domain ?? domain }

    /// The reason why a client has no account to log in to.
    func refusal(of number: Int) -> AccountRefusal? {
        self.unregistered.isEmpty ? nil : self.unregistered[self.user(number).bare]
    }

    /// Whether clients connect more than once.
    package var comesBack: Bool { self.reconnects > 0 || !self.departures.isEmpty }

    /// Whether messages carry the header that the ledger reads.
    package var hasLedger: Bool {
        guard self.stanza != nil else { return false }
        return self.payload.template?.hasLedger ?? (self.payload.sizes.lowerBound >= XMPPBody.headerSize)
    }

    /// The values of a client's placeholders, by its number in the run.
    package func values(of number: Int) -> PlaceholderValues {
        PlaceholderValues(clientNumber: self.firstNumber + number)
    }

    /// Every call returns the same user.
    package func user(_ number: Int) -> XMPPUser {
        guard self.users.isEmpty else { return self.users[number] }
        var random = SplitMix64(seed: self.seed &+ UInt64(number) &* 0xD134_2543_DE82_EF95)
        let values = self.values(of: number)
        func text(_ template: Template) -> String {
            String(decoding: template.rendered(values, random: &random), as: UTF8.self)
        }
        return XMPPUser(
            local: text(self.local),
            domain: self.domain,
            resource: text(self.resource),
            password: text(self.password)
        )
    }

    /// The number of the client's peer.
    package func peer(of number: Int) -> Int {
        let (own, count) = (number / self.segment.count, self.segment.share(of: self.clients))
        let peer =
            switch self.pairing {
            case .neighbour: own ^ 1 < count ? own ^ 1 : own
            case .random: Int(self.ring[(Int(self.placeInRing[own]) + 1) % count])
            case .hotspot: own == 0 ? min(1, count - 1) : 0
            }
        return peer * self.segment.count + self.segment.index
    }

    /// The numbers of the senders to a client; none for a client of another segment.
    package func writers(to number: Int) -> Range<Int> {
        guard self.segment.contains(number) else { return 0..<0 }
        switch self.pairing {
        case .neighbour:
            let writer = self.peer(of: number)
            return writer..<writer + 1
        case .random:
            let count = self.ring.count
            let own = Int(self.ring[(Int(self.placeInRing[number / self.segment.count]) + count - 1) % count])
            let writer = own * self.segment.count + self.segment.index
            return writer..<writer + 1
        case .hotspot:
            precondition(self.segment == .whole, "the senders to one client are in all segments")
            switch number {
            case 0: return self.clients == 1 ? 0..<1 : 1..<self.clients
            case 1: return 0..<1
            default: return 0..<0
            }
        }
    }
}
