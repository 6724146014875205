package import FaultInjection
import MQTTCodec

/// One count per QoS level: the publisher's level, whatever the QoS of the delivered copy.
package struct CountPerQoS: Hashable, Sendable, Codable {
    package var qos0: UInt64 = 0
    package var qos1: UInt64 = 0
    package var qos2: UInt64 = 0

    package init(_ qos0: UInt64 = 0, _ qos1: UInt64 = 0, _ qos2: UInt64 = 0) {
        self.qos0 = qos0
        self.qos1 = qos1
        self.qos2 = qos2
    }

    package var total: UInt64 { self.qos0 &+ self.qos1 &+ self.qos2 }

    /// Levels from 3 on do not exist and read as 2.
    package subscript(qos: UInt8) -> UInt64 {
        get {
            switch qos {
            case 0: self.qos0
            case 1: self.qos1
            default: self.qos2
            }
        }
        set {
            switch qos {
            case 0: self.qos0 = newValue
            case 1: self.qos1 = newValue
            default: self.qos2 = newValue
            }
        }
    }

    static func += (left: inout CountPerQoS, right: CountPerQoS) {
        left.qos0 &+= right.qos0
        left.qos1 &+= right.qos1
        left.qos2 &+= right.qos2
    }

    static func -= (left: inout CountPerQoS, right: CountPerQoS) {
        left.qos0 &-= right.qos0
        left.qos1 &-= right.qos1
        left.qos2 &-= right.qos2
    }
}

/// The counters of a broker since its start.
///
/// The books of deliveries, per QoS, cover every PUBLISH that was received and accepted. Each counts once per
/// subscription (or share group) of a client that is connected or lost its connection without DISCONNECT:
/// expected = delivered − duplicated + dropped + not_delivered_offline + undelivered + queue_full + too_large + expired.
///
/// A message to one client (P2P) counts as for a subscription of that client, made by its CONNECT.
///
/// Published wills count like received messages. Messages held by a fault, or waiting for a window or an offline client,
/// are missing on the right (``waiting``).
package struct BrokerCounters: Hashable, Sendable, Codable {
    // Received.
    /// PUBLISH packets without the DUP flag.
    package var received = CountPerQoS()
    /// PUBLISH packets with the DUP flag: retransmissions.
    package var receivedDUP = CountPerQoS()
    /// QoS 2 PUBLISH whose packet id was already held: acknowledged, not delivered again.
    package var receivedRepeated = CountPerQoS()
    /// PUBLISH packets that the user may not send, or whose payload is not of the declared format: answered, but not
    /// accepted.
    package var turnedDown = CountPerQoS()
    /// Wills published.
    package var wills = CountPerQoS()
    package var receivedBytes: UInt64 = 0
    package var receivedPackets: UInt64 = 0

    // Sent.
    /// Copies written to subscribers, including the extra copies of `--duplicate`, without retained and `$SYS`
    /// messages.
    package var delivered = CountPerQoS()
    /// Copies of retained messages sent because of a new subscription.
    package var deliveredRetained = CountPerQoS()
    /// Copies sent again, with DUP, to a client that resumed its session.
    package var resent = CountPerQoS()
    package var sentBytes: UInt64 = 0

    // Acknowledgements.
    package var acknowledgementsSent = Acknowledgements()
    package var acknowledgementsReceived = Acknowledgements()

    // Not delivered.
    /// Messages for a client that lost its connection and has not subscribed again, or at QoS 0 for an offline one.
    package var notDeliveredOffline = CountPerQoS()
    /// Waiting for a client, unwritten, when its session ended.
    package var undelivered = CountPerQoS()
    /// Dropped because a client's queue was full.
    package var queueFull = CountPerQoS()
    /// Larger than the subscriber's Maximum Packet Size.
    package var tooLarge = CountPerQoS()
    /// The Message Expiry Interval passed before the message could be sent.
    package var expired = CountPerQoS()
    /// Currently held by a fault, or waiting for a client's window or for an offline client.
    package var waiting = CountPerQoS()

    // Injected.
    package var dropped = CountPerQoS()
    /// Extra copies sent.
    package var duplicated = CountPerQoS()
    /// Messages sent after a later one of the same publisher to the same subscription, without extra copies.
    package var reordered = CountPerQoS()
    /// Messages chosen by `--reorder` that had no successor and were sent in order.
    package var reorderReleased = CountPerQoS()
    package var delayed = CountPerQoS()
    package var delayHolds = HoldTimes.Summary()
    package var stalls: [Stall] = []
    /// Connections reset by `--disconnect-every`.
    package var disconnected: UInt64 = 0
    /// CONNECTs refused by `--refuse`.
    package var refused: UInt64 = 0

    // Connections.
    package var connections: UInt64 = 0
    package var connects: UInt64 = 0
    package var connectsRefused: UInt64 = 0
    /// Connections by the client address in their PROXY header, without the port.
    ///
    /// `unknown` has no address; `others` is beyond the first 1,024 addresses.
    package var proxied: [String: UInt64] = [:]
    /// Connections closed because of a missing or malformed PROXY header.
    package var proxyRefused: UInt64 = 0
    /// Ends of connections with an accepted CONNECT, by cause: `client` (DISCONNECT), `closed`, `keepalive`,
    /// `takeover`, `protocol`, `injected`, `shutdown`.
    package var disconnects: [String: UInt64] = [:]
    package var clientsNow: UInt64 = 0
    package var clientsMaximum: UInt64 = 0
    /// Sessions whose client is offline now.
    package var sessionsAway: UInt64 = 0
    /// Sessions that ended because their client stayed offline.
    package var sessionsExpired: UInt64 = 0
    /// Bytes waiting in sessions whose client is offline now.
    package var storedBytes: UInt64 = 0
    /// Subscriptions that clients have asked for.
    package var subscriptions: UInt64 = 0
    package var retained: UInt64 = 0
    /// Retained messages that were not kept, because the others have all the memory that there is for them.
    package var retainedFull: UInt64 = 0
    /// How often a publisher was paused because a subscriber was slow.
    package var publishersPaused: UInt64 = 0
    /// How often a client was paused because it did not read its answers.
    package var clientsChoked: UInt64 = 0

    package struct Acknowledgements: Hashable, Sendable, Codable {
        package var puback: UInt64 = 0
        package var pubrec: UInt64 = 0
        package var pubrel: UInt64 = 0
        package var pubcomp: UInt64 = 0

        @inline(__always)
        mutating func count(_ type: PacketType) {
            switch type {
            case .pubAck: self.puback &+= 1
            case .pubRec: self.pubrec &+= 1
            case .pubRel: self.pubrel &+= 1
            default: self.pubcomp &+= 1
            }
        }
    }

    /// One stall, in CLOCK_REALTIME nanoseconds.
    package struct Stall: Hashable, Sendable, Codable {
        package var begin: Int64
        package var end: Int64
    }

    /// The sum that expected deliveries must equal, by this broker's own books.
    package var expected: CountPerQoS {
        var sum = self.delivered
        sum -= self.duplicated
        for part in [
            self.dropped, self.notDeliveredOffline, self.undelivered, self.queueFull, self.tooLarge, self.expired,
            self.waiting,
        ] { sum += part }
        return sum
    }
}
