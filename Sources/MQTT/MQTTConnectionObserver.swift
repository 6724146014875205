package import MQTTCodec
package import NIOCore
package import SASL
package import Transport

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

    /// `codes` are none before MQTT 5.
    func unsubscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline)

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

    // MARK: Told only to those who ask for it in their options

    /// A packet as it came, a message with its topic; `false` has it dropped as if it had not come.
    ///
    /// With ``SessionOptions/showsPackets``.
    func admits(_ client: Int, _ packet: Packet, now: NIODeadline) -> Bool

    /// Bytes that are about to go out: whole packets, as a rule one or several.
    ///
    /// With ``SessionOptions/showsPackets``.
    func sends(_ client: Int, _ bytes: UnsafeRawBufferPointer)

    /// Reason string and user properties of an answer, told just before the answer itself.
    ///
    /// With ``SessionOptions/tellsProperties``; `type` is that of an acknowledgement, SUBACK or UNSUBACK.
    func properties(_ client: Int, of type: PacketType, _ id: PacketID, _ properties: Properties, now: NIODeadline)

    /// The server has released a QoS 2 message: its identifier may come again with another one.
    ///
    /// With any option that has a closer look taken at what is received (``SessionOptions/acknowledgesMessages``,
    /// ``SessionOptions/defersCompletions`` and the like).
    func released(_ client: Int, _ id: UInt16, now: NIODeadline)

    /// A re-authentication has succeeded (§4.12.1).
    func reauthenticated(_ client: Int, now: NIODeadline)
}

extension MQTTConnectionObserver {
    package func admits(_ client: Int, _ packet: Packet, now: NIODeadline) -> Bool { true }
    package func sends(_ client: Int, _ bytes: UnsafeRawBufferPointer) {}
    package func properties(
        _ client: Int,
        of type: PacketType,
        _ id: PacketID,
        _ properties: Properties,
        now: NIODeadline
    ) {}
    package func released(_ client: Int, _ id: UInt16, now: NIODeadline) {}
    package func reauthenticated(_ client: Int, now: NIODeadline) {}
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
    /// CONNACK refused: its code, and in 5.0 what it said about it, another server among it.
    case refused(ConnAck)
    /// The authentication failed on this side (§4.12).
    case notAuthenticated(SASLError)
    /// No CONNACK in time.
    case connackTimedOut
    /// No PINGRESP in time.
    case pingTimedOut
    /// The peer's FIN came unasked.
    case closedByPeer
    /// DISCONNECT from the server (5.0), with what it said.
    case disconnected(Disconnect)
    /// The peer's bytes broke a rule.
    case malformed(DecodeError)
    /// The peer's packet was well-formed, but not now or not so.
    case violation(ReasonCode, String)
    /// TLS failed behind its handshake: TLS 1.3 refuses a client's certificate that late.
    case insecure(TLSFailure)
    /// The socket failed with this error number.
    case failed(Int32)
    /// Closed by this side without waiting for an answer.
    case aborted
}
