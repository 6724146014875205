import MQTTCodec
import NIOCore

/// One TCP connection, from accept to its end.
///
/// About 250 bytes when idle; output and queue have no buffer then.
struct BrokerConnection: ~Copyable {
    enum State {
        case free
        case awaitingConnect
        /// CONNECT came, and an exchange of AUTH is under way (§4.12).
        case authenticating
        case open
        /// Said goodbye to; what it still sends is nobody's.
        case closing
    }

    var state = State.free
    var version = ProtocolVersion.v311
    /// The kernel takes bytes; when it does not, they gather in `out`.
    var isWritable = true
    /// A flush action is under way.
    var isDirty = false
    /// A flush action for at once is under way.
    var isUrgent = false
    /// More waits for it than the high-water mark.
    var isCongested = false
    /// Not read, because it publishes to a congested one.
    var isPaused = false
    /// Not read, because it does not read what it is answered.
    var isChoked = false
    /// Its PUBLISH are looked at before they are taken: it is not open yet, or there are rules.
    var isRestricted = true
    var session: Int32 = -1
    /// Where in the ``SharedFrames`` the output goes on behind `out`; empty when it does not.
    var sharedStart: Int32 = 0
    var sharedEnd: Int32 = 0
    /// The client's Maximum Packet Size, or what a PUBLISH can have at all.
    var maximumPacketSize = PublishWriter.maximumCount
    var out = ByteBuffer()
    /// Copies that lie in the output, and extra ones of `--duplicate`.
    var unwritten = CountPerQoS()
    var deliveries = DeliveryQueue(limit: 0)
    var unwrittenExtra = CountPerQoS()
    /// QoS 2 packet identifiers between PUBLISH and PUBREL.
    var heldIDs: Set<UInt16> = []
    /// 1.5 times the client's keep-alive; nil is off.
    var silenceLimit: TimeAmount?
    var lastHeard: NIODeadline
    /// What most clients do not have.
    var extras: ConnectionExtras?

    init(lastHeard: NIODeadline) { self.lastHeard = lastHeard }

    // Mutating, because the compiler copies a borrowed non-copyable struct to the stack.
    var isVersion5: Bool { mutating get { self.version == .v5 } }
    var sharedBytes: Int { mutating get { Int(self.sharedEnd &- self.sharedStart) } }
    var outputBytes: Int { mutating get { self.out.readableBytes &+ self.sharedBytes } }
    var waitingBytes: Int { mutating get { self.outputBytes &+ self.deliveries.queuedBytes } }
}

/// What is known of a client id: for as long as it is connected, has a session that outlives the connection, or
/// subscriptions that it lost with its connection.
struct BrokerSession {
    var key: [UInt8]
    /// -1 when the client is away.
    var connection: Int32 = -1
    /// Filter, `$share/name/` included, to the index of the subscription.
    var subscriptions: [[UInt8]: Int32] = [:]
    /// The same for a client id through all its sessions; counted only when faults follow the order.
    var publisher: UInt32 = 0
    /// Set when the session outlives its connection.
    var kept: KeptSession?
}

/// One filter of one client.
struct BrokerSubscription {
    /// Without `$share/name/`.
    var filter: [UInt8]
    var session: Int32
    var qos: UInt8 = 0
    var noLocal = false
    var retainAsPublished = false
    /// Encoded as a property, or empty.
    var identifier: [UInt8] = []
    /// -1 when it is not shared.
    var group: Int32 = -1
    /// False once the session has ended with a lost connection: messages for it are counted, until the client
    /// subscribes anew.
    var isLive = true
    /// The filter begins with `$SYS`.
    var isStatistics = false
    /// Tells it from an earlier one at the same index.
    var serial: UInt64
    var faults: FaultState?
}

/// A share group: one of its members gets each message, in turn.
struct ShareGroup {
    var name: [UInt8]
    var filter: [UInt8]
    var members: [Int32] = []
    var next = 0
}

/// What the faults of one subscription remember.
struct FaultState {
    /// The messages of one publisher on one subscription.
    struct Stream {
        /// Number of the next one.
        var next: UInt64 = 1
        /// Highest number sent.
        var highest: UInt64 = 0
        /// The one that waits for a successor.
        var held: HeldMessage?
    }

    /// Parts per billion gathered towards the next drop.
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
    /// Tells this hold from later ones of the same stream.
    var ticket: UInt64
}
