import LoadEngine
import LoopContext
import Ledger
import Measurement
import NIOCore

package enum ClientStage: UInt8, Sendable {
    case idle
    case connecting
    /// XMPP: logged in and joining its group.
    case joining
    case up
    /// Between two connections.
    case waiting
    /// Leaving by plan; its connection is still open.
    case leaving
    /// Left by plan, until its return begins.
    case away
    /// MQTT: all messages were sent. The subscriber awaits the answer to a PING sent after the server's queued
    /// messages.
    case flushing
    case finishing
    case finished
}

/// A row of the slab: one client of any protocol.
package struct SimulatedClient<Link: ClientLink, Own> {
    /// The channel owns the link; the row drops its reference before the channel does.
    unowned(unsafe) var connection: Link?
    var stage = ClientStage.idle
    /// Counted among the live clients.
    var isLive = false
    /// The layers below the protocol are up on this connection.
    var hasLink = false
    /// The login of the present connect, or of the last one, has ended well.
    var isLoggedIn = false
    /// Targets behind its own, with fail-over.
    var targetTurn: UInt8 = 0
    /// Waits before a connect since it was last up.
    var waits: UInt8 = 0
    var timer = TimerID(rawValue: -1)
    var timerAt = NIODeadline.distantFuture
    /// Retries of the first connect; `.max` after the client has given up.
    var attempts: Int32 = 0
    var reconnects: Int32 = 0
    /// Start of the connect; for a leaving client, start of the departure.
    var begun = NIODeadline.distantPast
    /// When the client lost the connection that it has not made again, for the downtime.
    var lostAt: NIODeadline?
    /// Sequence number of the next message.
    var sequence: UInt64 = 0
    /// First sequence number of this connection.
    var connectionFirst: UInt64 = 0
    /// Messages in the channel of which the kernel has not taken the first byte.
    var unsent: Int32 = 0
    var lastSize: Int32 = 0
    /// The last messages of a connection that closed before they were sent.
    var lost: Int32 = 0
    /// The lane of the load in which its last message was due, and the time.
    var lane: UInt16 = 0
    var lastDue = NIODeadline.distantPast
    /// Sequence numbers of messages with unknown fate; empty for most clients.
    var unknown = SequenceRanges()
    /// State that only this protocol's clients have.
    var own: Own
}

/// The clients of one event loop and the state that they share, at fixed addresses.
///
/// Confined to its loop. Rows and tallies are raw memory: the exclusivity check of an array in a class costs as much as
/// a message.
package final class ClientSlab<Link: ClientLink, Own> {
    let clients: UnsafeMutableBufferPointer<SimulatedClient<Link, Own>>
    let tallies: UnsafeMutableBufferPointer<ClientTally>
    let meter: LoopMeter
    var unsentSizes = UnsentSizes()
    /// The room of the current client before its read was processed.
    var roomBeforeRead = 0
    /// The phases of the load as of the start of the last read.
    var times = LoadTimes(measured: .distantFuture..<(.distantFuture))
    /// Connections that are up.
    ///
    /// The shard counts them too, and both must agree.
    var live = 0
    /// Copies one client's reads for the timing of its decoder.
    var probe: DecodeProbe
    var sampler: LoopSampler
    var sweep = OldestSweep()

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
