package import NIOCore
import XMPPCodec

/// The two counters of stream management and the unacknowledged stanzas; it sends nothing itself.
///
/// Counts are of stanzas, modulo 2³² (XEP-0198 §4). About 120 bytes a client, and 24 and its bytes for each stanza that
/// is kept for a resumption.
package struct StreamManagement {
    /// Stanzas sent since `<enable/>`.
    package private(set) var sent: UInt32 = 0
    /// Sent stanzas that the server has acknowledged.
    package private(set) var acknowledged: UInt32 = 0
    /// Stanzas handled since `<enabled/>`.
    package internal(set) var handled: UInt32 = 0
    private let limit: Int
    private let byteLimit: Int
    /// Whether what is not acknowledged could be sent again.
    package private(set) var keeps: Bool
    /// The bytes of what is not acknowledged, the oldest first.
    private var kept = CircularBuffer<ByteBuffer>()
    private var keptBytes = 0

    package enum Acknowledgement: Hashable {
        case acknowledged(Int)
        /// The server claims to have more than it was sent.
        case tooHigh(UInt32, sent: UInt32)
    }

    /// - Parameters:
    ///   - limit: stanzas that may be unacknowledged.
    ///   - bytes: bytes that may be kept to be sent again.
    ///   - keeps: whether they are kept to be sent again.
    ///   - sent: where the count starts; the server's starts there too. For tests.
    package init(limit: Int, bytes: Int = .max, keeps: Bool, sent: UInt32 = 0) {
        self.limit = limit
        self.byteLimit = bytes
        self.keeps = keeps
        self.sent = sent
        self.acknowledged = sent
    }

    package var unacknowledged: Int { Int(self.sent &- self.acknowledged) }
    package var isFull: Bool { self.unacknowledged >= self.limit || self.keptBytes >= self.byteLimit }

    /// Counts outgoing stanzas; with a resumption in mind one at a time, with its bytes.
    ///
    /// A server that never acknowledges still gets answers. At twice the limits the stanzas are dropped.
    ///
    /// - Returns: whether a resumption has just become impossible.
    @discardableResult
    package mutating func sends(_ count: Int, _ bytes: @autoclosure () -> ByteBuffer) -> Bool {
        var givesUp = false
        if self.keeps {
            precondition(count == 1, "for a resumption stanzas are sent one by one")
            let stanza = bytes()
            self.keptBytes += stanza.readableBytes
            self.kept.append(stanza)
            givesUp = self.kept.count / 2 >= self.limit || self.keptBytes / 2 >= self.byteLimit
            if givesUp { self.keepNothing() }
        }
        self.sent &+= UInt32(truncatingIfNeeded: count)
        return givesUp
    }

    private mutating func keepNothing() {
        self.keeps = false
        self.kept = CircularBuffer()
        self.keptBytes = 0
    }

    /// The server's `h`.
    package mutating func receives(_ h: UInt32) -> Acknowledgement {
        let count = h &- self.acknowledged
        guard count <= self.sent &- self.acknowledged else { return .tooHigh(h, sent: self.sent) }
        self.acknowledged = h
        if self.keeps {
            for stanza in self.kept.prefix(Int(count)) { self.keptBytes -= stanza.readableBytes }
            self.kept.removeFirst(Int(count))
        }
        return .acknowledged(Int(count))
    }

    package mutating func handles() { self.handled &+= 1 }

    /// Appends the stanzas to send again, in order; they stay unacknowledged.
    package func resend(into out: inout ByteBuffer, _ boundary: (inout ByteBuffer) -> Void) {
        for stanza in self.kept {
            out.writeImmutableBuffer(stanza)
            boundary(&out)
        }
    }
}

/// The stream management state of a stream.
final class ManagementState {
    var counts: StreamManagement
    /// The server's id of the session; `nil`: the session cannot be resumed.
    var previousID: String?
    /// The location for a resumption (§5).
    var location: String?
    /// How long the server keeps the session after a loss; `nil`: unknown.
    var maximum: TimeAmount?
    var lostAt: NIODeadline?
    /// Stanzas since the last `<r/>`.
    var sinceRequest = 0
    /// When the next `<r/>` is due for them, however few they are.
    var asksAt = NIODeadline.distantFuture
    /// Facts about the session, for the streams that resume it.
    var offers: XMPPStreamOffers = []
    var enabled: XMPPInlineFeatures = []
    /// Requests that wait for answers between two connections.
    var waiting: XMPPRequestHandlers?
    /// `<enabled/>` or `<resumed/>` has come: what is received is counted.
    var isOn = false

    init(_ counts: StreamManagement) { self.counts = counts }

    /// Whether the server has dropped the session by now (§5).
    func isOver(now: NIODeadline) -> Bool {
        guard let lostAt = self.lostAt, let maximum = self.maximum else { return false }
        return now > lostAt + maximum
    }
}

/// The handlers of pending requests, by token; they move to the connection that resumes the stream.
final class XMPPRequestHandlers {
    typealias Handler = (Result<XMPPElement, XMPPRequestError>) -> Void

    var handlers: [UInt64: Handler] = [:]
    var nextToken = XMPPConnection.firstOwnToken
}
