package import Ledger
package import LoadEngine
package import LoopContext
import Measurement
package import NIOCore
package import Transport
package import XMPP
import XMPPCodec

/// State that only XMPP clients have.
package struct XMPPClientState {
    enum Handshake: UInt8 {
        case none
        case underWay
        /// The connection has ended; the reason is not known yet.
        case lost
    }

    /// Stanzas of one write that were due at once.
    struct Write {
        var due: NIODeadline
        var at: NIODeadline
        var count: Int32
        /// Answers of the stream itself, which are acknowledged as well.
        var isOwn = false

        func joins(due: NIODeadline, at began: NIODeadline) -> Bool {
            !self.isOwn && self.due == due && self.at == began && self.count < .max
        }
    }

    struct Ping {
        var due: NIODeadline
        var written: NIODeadline
        /// The next free slot; only in a free slot.
        var next: Int32
    }

    var tls = Handshake.none
    /// The server answered the end of its stream, behind everything that it had for the client (RFC 6120 §4.4).
    var isProved = false
    /// Messages that the client may send in closed loop: one for each arrival.
    var credit: Int32 = 0
    /// Number of pings in flight, and a slot for each; slots are allocated on demand and reused.
    var pings: Int32 = 0
    var slots: [Ping] = []
    /// Unacknowledged writes under stream management, and the stream's count up to which they reach.
    var writes: [Write] = []
    var counted: UInt32 = 0
    /// Acknowledged messages of this connection.
    var acknowledged: UInt64 = 0
}

/// The XMPP clients of one event loop: the stanzas they send, and the records of the answers.
///
/// Confined to its loop. A client consists of a row of the slab, its stream, its tally of 64 bytes, and its connection
/// if it has one.
package final class XMPPShardWork: ClientLife, XMPPConnectionObserver {
    package typealias Sample = LoadSample
    typealias Write = XMPPClientState.Write
    typealias Ping = XMPPClientState.Ping

    package let load: XMPPLoad
    package let metrics: XMPPMetrics
    package let context: LoopContext
    /// The handle that made the shard keeps it alive until its loop has ended.
    package unowned(unsafe) let shard: Shard<XMPPShardWork>
    package let connector: any ClientConnector
    package let slab: ClientSlab<XMPPConnection, XMPPClientState>
    /// The TLS layer for STARTTLS.
    let tls: TLSLayer?
    /// The name that the server's certificate must have, if the settings have none.
    let identity: Target
    let server: JID?
    /// The state of clients that register or remove their account.
    var accounts: [Account] = []
    let pingHead: [UInt8]
    let streams: UnsafeMutablePointer<XMPPStream>
    // Pointers, since exclusivity checks of a class's property cost as much as a message.
    let writer: UnsafeMutablePointer<XMPPMessageWriter>
    let ledger: UnsafeMutablePointer<SubscriberLedger>
    /// The six bits of each character, which decode the headers of the ledger.
    let base64: UnsafeMutablePointer<UInt8>
    /// Shared memory for stanzas that are split over reads.
    let readerMemory = XMPPReaderMemory()
    /// The state of rooms and circles of contacts.
    let groups: XMPPGroups?
    /// Messages per write at most, given their size.
    let largestBatch: Int
    var books = MessageBook()
    /// The rare facts about messages, by place.
    package var exceptions: [Int: PublishExceptions] = [:]
    var received = DeliveryBalance()
    var deliveryEnd = DeliveryEnd()

    package init(_ workload: XMPPWorkload, shard: Shard<XMPPShardWork>, connector: any ClientConnector) {
        let (load, metrics) = (workload.load, workload.metrics)
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
        self.tls = workload.tls.map { TLSLayer($0, loop: shard.context, preamble: .xmpp(domain: load.domain)) }
        self.identity = Target(host: load.domain, port: 5_222)
        self.server = try? JID(load.domain)
        self.pingHead = Self.pingHead(to: load.domain, isAlone: load.layers.contains(.webSocket))
        let count = places.count
        self.streams = .allocate(capacity: max(1, count))
        self.writer = .make(XMPPMessageWriter(load))
        self.ledger = .make(SubscriberLedger(publishers: UInt32(load.clients)))
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
        self.streams.destroy(self.slab.clients.count)
        self.writer.destroy()
        self.ledger.destroy()
        self.base64.deallocate()
    }

    /// Every client receives from its senders; its subscription has the client's number.
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
