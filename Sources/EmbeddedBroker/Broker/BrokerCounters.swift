package import FaultInjection

/// One count for each QoS level: the publisher's, whatever QoS a copy was delivered at.
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

    /// Level 3 and above does not exist and reads as 2.
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

/// What a broker has seen and done since it started.
///
/// The books of deliveries, per QoS: for every PUBLISH that was received and taken, once per subscription (or share
/// group) of a client that is here or has lost its connection without saying DISCONNECT,
/// expected = delivered − duplicated + dropped + not_delivered_offline + undelivered + queue_full + too_large + expired.
/// Wills that were published count like received ones. While messages are held by a fault, or wait for a window or for
/// a client that is away, those are missing on the right (``waiting``).
package struct BrokerCounters: Hashable, Sendable, Codable {
    // Received.
    /// PUBLISH packets without the DUP flag.
    package var received = CountPerQoS()
    /// PUBLISH packets with the DUP flag: retransmissions.
    package var receivedDUP = CountPerQoS()
    /// QoS 2 PUBLISH whose packet id was already held: acknowledged, not delivered again.
    package var receivedRepeated = CountPerQoS()
    /// PUBLISH that the user may not send, or whose payload is not what it says: answered, and not taken.
    package var turnedDown = CountPerQoS()
    /// Wills published.
    package var wills = CountPerQoS()
    package var receivedBytes: UInt64 = 0
    package var receivedPackets: UInt64 = 0

    // Sent.
    /// Copies written to subscribers, extra copies of `--duplicate` included, retained and `$SYS` not.
    package var delivered = CountPerQoS()
    /// Copies of retained messages sent because of a new subscription.
    package var deliveredRetained = CountPerQoS()
    /// Copies that were sent once more, with DUP, to a client that came back to its session.
    package var resent = CountPerQoS()
    package var sentBytes: UInt64 = 0

    // Acknowledgements.
    package var acknowledgementsSent = Acknowledgements()
    package var acknowledgementsReceived = Acknowledgements()

    // Not delivered.
    /// Would have gone to a client that lost its connection and has not subscribed anew, or at QoS 0 to one that is
    /// away.
    package var notDeliveredOffline = CountPerQoS()
    /// Was waiting for a client, unwritten, when its session ended.
    package var undelivered = CountPerQoS()
    /// Was dropped because a client's queue was full.
    package var queueFull = CountPerQoS()
    /// Was larger than the subscriber's Maximum Packet Size.
    package var tooLarge = CountPerQoS()
    /// Its Message Expiry Interval passed before it could be sent.
    package var expired = CountPerQoS()
    /// Is held by a fault, or waits for room in a client's window or for the client itself, now.
    package var waiting = CountPerQoS()

    // Injected.
    package var dropped = CountPerQoS()
    /// Extra copies sent.
    package var duplicated = CountPerQoS()
    /// Messages that were sent after a later one of the same publisher to the same subscription, extra copies apart.
    package var reordered = CountPerQoS()
    /// Messages chosen by `--reorder` that found no successor and went out in order.
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
    /// Connections by the client's address that their PROXY header claims, without the port; `unknown` where it claims
    /// none, `others` beyond the first 1,024 addresses.
    package var proxied: [String: UInt64] = [:]
    /// Connections that were closed for want of a right PROXY header.
    package var proxyRefused: UInt64 = 0
    /// Ends of connections that had a CONNECT accepted, by cause: `client` (DISCONNECT), `closed`, `keepalive`,
    /// `takeover`, `protocol`, `injected`, `shutdown`.
    package var disconnects: [String: UInt64] = [:]
    package var clientsNow: UInt64 = 0
    package var clientsMaximum: UInt64 = 0
    /// Sessions whose client is away, now.
    package var sessionsAway: UInt64 = 0
    /// Sessions that ended because their client stayed away.
    package var sessionsExpired: UInt64 = 0
    /// Bytes that wait in sessions whose client is away, now.
    package var storedBytes: UInt64 = 0
    package var subscriptions: UInt64 = 0
    package var retained: UInt64 = 0
    /// Times that a publisher was no longer read because a subscriber was slow.
    package var publishersPaused: UInt64 = 0
    /// Times that a client was no longer read because it did not read its answers.
    package var clientsChoked: UInt64 = 0

    package struct Acknowledgements: Hashable, Sendable, Codable {
        package var puback: UInt64 = 0
        package var pubrec: UInt64 = 0
        package var pubrel: UInt64 = 0
        package var pubcomp: UInt64 = 0
    }

    /// One stall, CLOCK_REALTIME in nanoseconds.
    package struct Stall: Hashable, Sendable, Codable {
        package var begin: Int64
        package var end: Int64
    }

    package init() {}

    /// What expected deliveries must come to, by this broker's own books.
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
