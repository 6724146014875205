import MQTTCodec
import NIOCore

/// One TCP connection, from accept to its end.
///
/// About 250 bytes when idle, since output and queue then have no buffer.
struct BrokerConnection: ~Copyable {
    enum State {
        case free
        case awaitingConnect
        /// After CONNECT, while an AUTH exchange is in progress (§4.12).
        case authenticating
        case open
        /// Closed by the broker; further input is ignored.
        case closing
    }

    var state = State.free
    var version = ProtocolVersion.v311
    /// The kernel accepts bytes; otherwise they collect in `out`.
    var isWritable = true
    /// A flush action has been requested.
    var isDirty = false
    /// An immediate flush action has been requested.
    var isUrgent = false
    /// More than the high-water mark is waiting for it.
    var isCongested = false
    /// Not read because it publishes to a congested connection.
    var isPaused = false
    /// Not read because it does not read its answers.
    var isChoked = false
    /// Its PUBLISH packets are checked: it is not open yet, there are rules, or a topic may address one client.
    var isRestricted = true
    var session: Int32 = -1
    /// Where the output continues in the ``SharedFrames`` after `out`; empty if it does not.
    var sharedStart: Int32 = 0
    var sharedEnd: Int32 = 0
    /// The client's Maximum Packet Size, or the protocol's maximum for a PUBLISH.
    var maximumPacketSize = PublishWriter.maximumCount
    var out = ByteBuffer()
    /// Copies in the output, and extra copies of `--duplicate`.
    var unwritten = CountPerQoS()
    var deliveries = DeliveryQueue(limit: 0)
    var unwrittenExtra = CountPerQoS()
    /// QoS 2 packet identifiers between PUBLISH and PUBREL.
    var heldIDs: Set<UInt16> = []
    /// 1.5 times the client's keep-alive; nil means off.
    var silenceLimit: TimeAmount?
    var lastHeard: NIODeadline
    /// State that most clients do not have.
    var extras: ConnectionExtras?

    init(lastHeard: NIODeadline) { self.lastHeard = lastHeard }

    // Mutating, because the compiler copies a borrowed non-copyable struct to the stack.
    var isVersion5: Bool { mutating get { self.version == .v5 } }
    var sharedBytes: Int { mutating get { Int(self.sharedEnd &- self.sharedStart) } }
    var outputBytes: Int { mutating get { self.out.readableBytes &+ self.sharedBytes } }
    var waitingBytes: Int { mutating get { self.outputBytes &+ self.deliveries.queuedBytes } }
}

/// The state of a client id.
///
/// It exists while the client is connected, has a session that outlives the connection, or has subscriptions that it
/// lost with its connection.
struct BrokerSession {
    var key: [UInt8]
    /// -1 while the client is offline.
    var connection: Int32 = -1
    /// Maps each filter, including `$share/name/`, to the index of the subscription; P2P has the empty one.
    var subscriptions: [[UInt8]: Int32] = [:]
    /// The number of the client id, the same through all its sessions; assigned only if faults track the order.
    var publisher: UInt32 = 0
    /// Set when the session outlives its connection.
    var kept: KeptSession?
}

/// One filter of one client.
struct BrokerSubscription {
    /// The filter without `$share/name/`; empty for the subscription that a session has without asking (P2P).
    var filter: [UInt8]
    var session: Int32
    var qos: UInt8 = 0
    var noLocal = false
    var retainAsPublished = false
    /// Encoded as a property, or empty.
    var identifier: [UInt8] = []
    /// -1 if it is not shared.
    var group: Int32 = -1
    /// False after the session ended with a lost connection: its messages are counted until the client subscribes
    /// again.
    var isLive = true
    /// The filter begins with `$SYS`.
    var isStatistics = false
    /// Distinguishes it from an earlier subscription at the same index.
    var serial: UInt64
    /// The retained messages that are still to be sent.
    var search: RetainedStore.Search?
    var faults: FaultState?
}

/// A share group: each message goes to one of its members, in turn.
struct ShareGroup {
    var name: [UInt8]
    var filter: [UInt8]
    var members: [Int32] = []
    var next = 0
}

struct FaultState {
    /// The messages of one publisher on one subscription.
    struct Stream {
        /// Number of the next message.
        var next: UInt64 = 1
        /// Highest number sent.
        var highest: UInt64 = 0
        /// The message that waits for a successor.
        var held: HeldMessage?
    }

    /// Parts per billion accumulated towards the next drop.
    var dropShare: UInt64
    var duplicates: UInt64 = 0
    var reorders: UInt64 = 0
    var delays: UInt64 = 0
    var streams: [UInt32: Stream] = [:]
}

/// A message that a fault holds back on its way to one subscription.
struct HeldMessage {
    var message: KeptMessage
    var number: UInt64
    var isDuplicated: Bool
    /// Distinguishes this hold from later ones of the same stream.
    var ticket: UInt64
}
