package import MQTTCodec
package import NIOCore

/// Who owns connections and hears what happens on them.
///
/// A call through the protocol costs 1 to 2 ns. A connection generic over it would cost more: made in one module and
/// specialised in none other, it would decode by witness tables, packet by packet.
///
/// `client` is the owner's own number for the client. All calls come on the connection's event loop. A connection
/// keeps its observer alive; an observer that kept its connections too would be kept for ever.
package protocol MQTTConnectionObserver: AnyObject {
    /// CONNACK came and accepted. With `resumed` the server kept the session of this client.
    func connected(_ client: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline)

    /// A read, before it is decoded; the bytes are valid during the call, and `atBoundary` tells whether a packet
    /// starts with the first of them.
    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool)

    /// A read has been decoded: `packets` packets ended in it. What the owner writes now leaves in one write
    /// with the answers to what was read.
    func readEnded(_ client: Int, packets: Int, now: NIODeadline)

    func message(_ client: Int, _ view: PublishView, now: NIODeadline)

    /// PUBACK, PUBREC or PUBCOMP for a publish of this client; `finished` when it frees its place in the window.
    func acknowledged(
        _ client: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    )

    /// An acknowledgement was not awaited any longer, or its connection is gone without a session.
    func abandoned(_ client: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline)

    /// A publish that a resumed session has to send again: with DUP under its identifier, unless it was released
    /// (then PUBREL has been sent already).
    func resend(_ client: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline)

    func subscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline)

    func unsubscribed(_ client: Int, _ id: PacketID, now: NIODeadline)

    func pingAnswered(_ client: Int, after: TimeAmount, now: NIODeadline)

    /// The kernel took so many bytes more of what was written.
    func wrote(_ client: Int, bytes: Int)

    /// Everything written before has been taken by the kernel.
    func writable(_ client: Int, now: NIODeadline)

    /// The connection is about to be gone, with `unsent` bytes that the kernel never took.
    func ending(_ client: Int, unsent: Int)

    /// The connection is gone; called once, last.
    func ended(_ client: Int, _ end: ConnectionEnd, now: NIODeadline)

    /// The connection wants ``MQTTConnection/timerFired(now:)`` at this time, or earlier.
    func wantsTimer(_ client: Int, at: NIODeadline)
}

package enum AbandonReason: Hashable, Sendable {
    case timedOut
    /// The connection was lost; `timedOut` publishes were told of before.
    case connectionLost(timedOutBefore: Bool)
}

/// How a connection came to its end.
package enum ConnectionEnd: Hashable, Sendable {
    /// Our DISCONNECT and FIN were answered by the peer's FIN.
    case answered
    /// CONNACK refused, with this return code (3.x) or reason code (5.0).
    case refused(UInt8)
    /// No CONNACK in time.
    case connackTimedOut
    /// No PINGRESP in time.
    case pingTimedOut
    /// The peer's FIN came unasked.
    case closedByPeer
    /// DISCONNECT from the server (5.0).
    case disconnected(ReasonCode, String?)
    /// The peer's bytes broke a rule.
    case malformed(DecodeError)
    /// The peer's packet was well-formed, but not now or not so.
    case violation(ReasonCode, String)
    /// The socket failed with this error number.
    case failed(Int32)
    /// Closed by this side without waiting for an answer.
    case aborted
}
