import LoadEngine
import LoopContext
import Ledger
import Measurement
import NIOCore

/// Where a client is in its life.
package enum ClientStage: UInt8, Sendable {
    case idle
    case connecting
    /// XMPP: logged in, and on its way into its group.
    case joining
    case up
    /// Between two connections.
    case waiting
    /// Leaves by plan; its connection is not closed yet.
    case leaving
    /// Left by plan, until its way back begins.
    case away
    /// MQTT: all messages were sent; the subscriber waits for the answer to a PING behind what the server has queued.
    case flushing
    case finishing
    case finished
}

/// A row of the slab: one client, whatever it speaks.
package struct SimulatedClient<Link: ClientLink, Own> {
    /// The channel owns it; the row forgets it before the channel does.
    unowned(unsafe) var connection: Link?
    var stage = ClientStage.idle
    /// Counted among the live ones.
    var isLive = false
    /// The layers below the protocol are up, on this connection.
    var hasLink = false
    var timer = TimerID(rawValue: -1)
    var timerAt = NIODeadline.distantFuture
    /// Retries of the first connect; `.max`: the client has given up.
    var attempts: Int32 = 0
    var reconnects: Int32 = 0
    /// When the connect was begun; when leaving, when the client began to leave.
    var begun = NIODeadline.distantPast
    /// The next message's sequence.
    var sequence: UInt64 = 0
    /// The first sequence of this connection.
    var connectionFirst: UInt64 = 0
    /// Messages in the channel of which the kernel has not taken the first byte, and their size.
    var unsent: Int32 = 0
    var lastSize: Int32 = 0
    /// The last messages of a connection that closed before they were sent.
    var lost: Int32 = 0
    /// Sequences of unknown fate; most clients have none.
    var unknown = SequenceRanges()
    /// What only this protocol's clients have.
    var own: Own
}

/// The clients of one event loop, in memory that does not move, and what their life shares.
///
/// Confined to its loop. Rows and tallies are raw memory, since the exclusivity check of a class's array costs as much as
/// a message.
package final class ClientSlab<Link: ClientLink, Own> {
    let clients: UnsafeMutableBufferPointer<SimulatedClient<Link, Own>>
    let tallies: UnsafeMutableBufferPointer<ClientTally>
    let meter: LoopMeter
    var unsentSizes = UnsentSizes()
    /// The room of the client whose read is being taken in, before it.
    var roomBeforeRead = 0
    /// The parts of the load, as they were when the last read began.
    var times = LoadTimes(measured: .distantFuture..<(.distantFuture))
    /// Connections that are up, counted here; the shard counts too, and they have to agree.
    var live = 0
    /// Copies one client's reads for the timing of its decoder.
    var probe: DecodeProbe
    var sampler: LoopSampler

    init(
        _ places: ShardClients,
        catalog: MetricCatalog,
        decoding subject: DecodeSubject,
        now: NIODeadline,
        own: (_ place: Int) -> Own
    ) {
        let count = places.count
        self.clients = .allocate(capacity: count)
        for place in 0..<count { self.clients.initializeElement(at: place, to: SimulatedClient(own: own(place))) }
        self.tallies = .allocate(capacity: count)
        self.tallies.initialize(repeating: ClientTally())
        self.meter = LoopMeter(catalog: catalog, loop: places.loop)
        self.probe = DecodeProbe(clients: count, of: subject)
        self.sampler = LoopSampler(loop: places.loop, now: now)
    }

    deinit {
        self.clients.deinitialize()
        self.clients.deallocate()
        self.tallies.deallocate()
    }
}
