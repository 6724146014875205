import Ledger
package import LoadEngine
import LoopContext
package import Measurement
package import NIOCore
import SASL
package import Transport
import XMPP
import XMPPCodec

/// The XMPP clients of one event loop: they log in, write to each other or to the server, come back when told to, and
/// write down what each of them saw.
///
/// Confined to its loop. A client is a row of the slab here, its stream, its tally of 64 bytes, and its connection while
/// it has one.
package final class XMPPShardWork: LoopWork, XMPPConnectionObserver {
    package typealias Sample = LoadSample

    enum Stage: UInt8 {
        case idle
        case connecting
        /// Logged in, and on its way into its group.
        case joining
        case up
        /// Between two connections.
        case waiting
        /// Told by the plan to leave; its connection is not closed yet.
        case leaving
        /// Left by plan, until its way back begins.
        case away
        case finishing
        case finished
    }

    struct Client {
        /// Its channel owns it; it is let go of before the channel does.
        unowned(unsafe) var connection: XMPPConnection?
        var stage = Stage.idle
        /// Counted among the live ones.
        var isLive = false
        /// The layers below the stream are up.
        var hasStream = false
        var tls = Handshake.none
        var timer: TimerID
        var timerAt = NIODeadline.distantFuture
        var attempts: Int32 = 0
        var reconnects: Int32 = 0
        /// When the connect was begun; of one that leaves: when it began to.
        var begun = NIODeadline.distantPast
        /// The next message's sequence.
        var sequence: UInt64 = 0
        /// The first sequence of this connection: what its end confirms.
        var connectionFirst: UInt64 = 0
        /// Messages in the channel of which the kernel has not taken the first byte, and their size.
        var unsent: Int32 = 0
        var lastSize: Int32 = 0
        /// Those that a closing connection never sent: the last ones.
        var lost: Int32 = 0
        /// In closed loop, messages that it may send: it gets one for each that comes.
        var credit: Int32 = 0
        /// Pings under way, and a place for each that there ever were at once: made when it is needed.
        var pings: Int32 = 0
        var slots: [Ping] = []
        /// Sequences of unknown fate; most clients have none.
        var unknown = SequenceRanges()
        /// With stream management: writes that are not acknowledged, and up to where the stream's count is in them.
        var writes: [Write] = []
        var counted: UInt32 = 0
        /// Of this connection's messages, those that were acknowledged.
        var acknowledged: UInt64 = 0
    }

    /// A handshake of STARTTLS.
    enum Handshake: UInt8 {
        case none
        case underWay
        /// The connection has gone; why, is still to be told.
        case lost
    }

    /// Stanzas that left together.
    struct Write {
        var at: NIODeadline
        var count: Int32
        /// The stream's own answers to what it was asked, which are acknowledged as well.
        var isOwn = false
    }

    /// A ping under way.
    struct Ping {
        var due: NIODeadline
        var written: NIODeadline
        /// The next free one; only of a slot that is free.
        var next: Int32
    }

    let load: XMPPLoad
    let metrics: XMPPMetrics
    let context: LoopContext
    /// Kept alive, by the handle that made it, until its loop has ended.
    unowned(unsafe) let shard: Shard<XMPPShardWork>
    /// Those of the shard.
    let places: ShardClients
    let meter: LoopMeter
    let connector: any ClientConnector
    /// What STARTTLS puts in.
    let tls: TLSLayer?
    /// Whose certificate it wants, where the settings name nobody.
    let identity: Target
    let server: JID?
    /// Of clients that make or remove their account.
    var accounts: [Account] = []
    let pingHead: [UInt8]
    let clients: UnsafeMutableBufferPointer<Client>
    let streams: UnsafeMutablePointer<XMPPStream>
    let tallies: UnsafeMutableBufferPointer<ClientTally>
    // Behind pointers, since exclusivity checks of a class's property cost as much as a message.
    let writer: UnsafeMutablePointer<XMPPMessageWriter>
    let ledger: UnsafeMutablePointer<SubscriberLedger>
    /// By character, for the headers of the ledger.
    let base64: UnsafeMutablePointer<UInt8>
    /// For what reads cut, of whichever client.
    let readerMemory = XMPPReaderMemory()
    /// Only of rooms, and of circles of contacts.
    let groups: XMPPGroups?
    /// Messages of one write at most, by their size.
    let largestBatch: Int
    var unsentSizes = UnsentSizes()
    var books = StanzaBook()
    var received = DeliveryBalance()
    /// Of the client whose read is being taken in.
    var roomBeforeRead = 0
    /// The parts of the load, as they were when the last read began.
    var times = LoadTimes(measured: .distantFuture..<(.distantFuture))
    var timerOwner: TimerOwner?
    /// Connections that are up, counted here; the shard counts too, and they have to agree.
    var live = 0
    /// Copies one client's reads for the timing of its decoder.
    var probe: DecodeProbe
    private var sampler: LoopSampler

    package init(
        _ load: XMPPLoad,
        metrics: XMPPMetrics,
        shard: Shard<XMPPShardWork>,
        connector: any ClientConnector,
        tls: TLSLayer? = nil
    ) {
        self.load = load
        self.metrics = metrics
        self.context = shard.context
        self.shard = shard
        self.places = shard.clients
        self.meter = LoopMeter(catalog: metrics.catalog, loop: shard.clients.loop)
        self.connector = connector
        self.tls = tls
        self.identity = Target(host: load.domain, port: 5_222)
        self.server = try? JID(load.domain)
        self.pingHead = Self.pingHead(to: load.domain, isAlone: load.layers.contains(.webSocket))
        let count = shard.clients.count
        self.clients = .allocate(capacity: count)
        self.streams = .allocate(capacity: max(1, count))
        self.tallies = .allocate(capacity: count)
        self.tallies.initialize(repeating: ClientTally())
        self.writer = .allocate(capacity: 1)
        self.writer.initialize(to: XMPPMessageWriter(load))
        self.ledger = .allocate(capacity: 1)
        self.ledger.initialize(to: SubscriberLedger(publishers: UInt32(load.clients)))
        self.base64 = XMPPBody.makeDecodingTable()
        self.groups = load.hasGroups ? XMPPGroups(load, places: shard.clients) : nil
        if load.work.isOfAccounts { self.accounts = Array(repeating: Account(), count: count) }
        self.largestBatch = max(1, Self.largestWrite / max(1, load.payload.largest))
        self.probe = DecodeProbe(clients: count, of: .xmpp(load.streamOptions.framing))
        self.sampler = LoopSampler(loop: shard.clients.loop, now: shard.context.now)
        let shared = XMPPStreamShared(load.streamOptions, features: FeatureTrees())
        let owner = shard.context.timers.addOwner { [unowned self] _, place in self.timerFired(Int(place)) }
        self.timerOwner = owner
        for place in 0..<count {
            let timer = shard.context.timers.register(owner, tag: Int32(place))
            (self.clients.baseAddress.map { $0 + place })?.initialize(to: Client(timer: timer))
            (self.streams + place).initialize(to: XMPPStream(load.account(self.number(place)), shared: shared))
            self.clients[place].credit = Int32(clamping: load.window)
        }
        self.addSubscriptions()
    }

    deinit {
        self.clients.deinitialize()
        self.clients.deallocate()
        self.streams.deinitialize(count: self.tallies.count)
        self.streams.deallocate()
        self.tallies.deallocate()
        self.writer.deinitialize(count: 1)
        self.writer.deallocate()
        self.ledger.deinitialize(count: 1)
        self.ledger.deallocate()
        self.base64.deallocate()
    }

    func number(_ place: Int) -> Int { self.places.number(at: place) }

    /// Every client hears whoever writes to it; the number of its subscription is its own.
    private func addSubscriptions() {
        if let groups = self.groups { return self.addAddresses(groups) }
        guard self.load.work == .message else { return }
        self.ledger.pointee.reserve(subscriptions: self.places.count, streams: self.places.count)
        for place in 0..<self.places.count {
            let number = self.number(place)
            _ = self.ledger.pointee.addSubscription(UInt32(number))
            self.writer.pointee.addAddress(self.load.user(self.load.peer(of: number)).full)
        }
    }

    package func woke(late: TimeAmount) {
        self.meter.record(self.metrics.traffic.loopLag[self.places.loop], late.nanoseconds)
    }

    package func measuring(_ begins: Bool) {
        begins ? self.meter.beginMeasured() : self.meter.endMeasured()
    }

    package func begins(stage: Int?) { self.meter.begin(stage: stage) }

    package func loadEnded() {}

    /// Nanoseconds since 1970.
    func time(_ now: NIODeadline) -> Int64 { Int64(now.uptimeNanoseconds) &+ self.load.realtimeOffset }

    func error(_ kind: String, _ words: @autoclosure () -> String) {
        self.meter.error(kind, at: Int64(self.context.now.uptimeNanoseconds), example: words)
    }

    package func takeSample() -> LoadSample {
        let now = self.context.refresh()
        self.checkStalled(now)
        var sample = self.sampler.take(
            self.meter,
            self.metrics.traffic,
            live: self.live,
            planned: self.shard.live,
            now: now
        )
        sample.probe = self.probe.take()
        return sample
    }

    package func recycle(_ sample: LoopSample) { self.sampler.recycle(sample) }
}
