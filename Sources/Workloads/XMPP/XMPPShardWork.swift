import Ledger
package import LoadEngine
package import LoopContext
import Measurement
package import NIOCore
import SASL
package import Transport
package import XMPP
import XMPPCodec

/// What only XMPP clients have in their row.
package struct XMPPClientState {
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

    var tls = Handshake.none
    /// In closed loop, messages that the client may send: one for each that came.
    var credit: Int32 = 0
    /// Pings in flight, and a slot for each that there ever were at once: made when it is needed.
    var pings: Int32 = 0
    var slots: [Ping] = []
    /// With stream management: writes that are not acknowledged, and up to where the stream's count is in them.
    var writes: [Write] = []
    var counted: UInt32 = 0
    /// Of this connection's messages, those that were acknowledged.
    var acknowledged: UInt64 = 0
}

/// The XMPP clients of one event loop: what they say to the server and to each other, and record of the answers.
///
/// Confined to its loop. A client is a row of the slab, its stream, its tally of 64 bytes, and its connection while it
/// has one.
package final class XMPPShardWork: ClientLife, XMPPConnectionObserver {
    package typealias Sample = LoadSample
    typealias Write = XMPPClientState.Write
    typealias Ping = XMPPClientState.Ping

    package let load: XMPPLoad
    package let metrics: XMPPMetrics
    package let context: LoopContext
    /// Kept alive, by the handle that made it, until its loop has ended.
    package unowned(unsafe) let shard: Shard<XMPPShardWork>
    package let connector: any ClientConnector
    package let slab: ClientSlab<XMPPConnection, XMPPClientState>
    /// What STARTTLS puts in.
    let tls: TLSLayer?
    /// Whose certificate it wants, where the settings name nobody.
    let identity: Target
    let server: JID?
    /// Of clients that make or remove their account.
    var accounts: [Account] = []
    let pingHead: [UInt8]
    let streams: UnsafeMutablePointer<XMPPStream>
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
    var books = StanzaBook()
    var received = DeliveryBalance()

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
        self.connector = connector
        let places = shard.clients
        self.slab = ClientSlab(
            places,
            catalog: metrics.catalog,
            decoding: .xmpp(load.streamOptions.framing),
            now: shard.context.now
        ) { _ in XMPPClientState(credit: Int32(clamping: load.window)) }
        self.tls = tls
        self.identity = Target(host: load.domain, port: 5_222)
        self.server = try? JID(load.domain)
        self.pingHead = Self.pingHead(to: load.domain, isAlone: load.layers.contains(.webSocket))
        let count = places.count
        self.streams = .allocate(capacity: max(1, count))
        self.writer = .allocate(capacity: 1)
        self.writer.initialize(to: XMPPMessageWriter(load))
        self.ledger = .allocate(capacity: 1)
        self.ledger.initialize(to: SubscriberLedger(publishers: UInt32(load.clients)))
        self.base64 = XMPPBody.makeDecodingTable()
        self.groups = load.hasGroups ? XMPPGroups(load, places: places) : nil
        if load.work.isOfAccounts { self.accounts = Array(repeating: Account(), count: count) }
        self.largestBatch = Self.largestBatch(of: load)
        let shared = XMPPStreamShared(load.streamOptions, features: FeatureTrees())
        for place in 0..<count {
            (self.streams + place).initialize(to: XMPPStream(load.account(places.number(at: place)), shared: shared))
        }
        self.registerTimers()
        self.addSubscriptions()
    }

    deinit {
        self.streams.deinitialize(count: self.places.count)
        self.streams.deallocate()
        self.writer.deinitialize(count: 1)
        self.writer.deallocate()
        self.ledger.deinitialize(count: 1)
        self.ledger.deallocate()
        self.base64.deallocate()
    }

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

    package func observe(_ now: NIODeadline) { self.checkStalled(now) }
}
