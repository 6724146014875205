package import MQTTCodec
package import NIOCore
package import SASL
package import Transport

/// The owner of connections, which receives their events.
///
/// A call through the protocol costs 1 to 2 ns. A connection generic over it would cost more: code specialised in no
/// other module would decode through witness tables, packet by packet.
///
/// `client` is the owner's number for the client. All calls are made on the connection's event loop. A connection keeps
/// its observer alive, so an observer that kept its connections would leak.
package protocol MQTTConnectionObserver: AnyObject {
    /// CONNACK accepted the connection. With `resumed` the server kept this client's session.
    func connected(_ client: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline)

    /// A read, before it is decoded. The bytes are valid during the call; `atBoundary` is true if a packet starts with
    /// the first byte.
    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool)

    /// A read has been decoded; `packets` packets ended in it.
    ///
    /// The owner's writes during this call leave in one write with the answers to the read.
    func readEnded(_ client: Int, packets: Int, now: NIODeadline)

    func message(_ client: Int, _ view: PublishView, now: NIODeadline)

    /// PUBACK, PUBREC or PUBCOMP for a publish of this client; `finished` if it frees its place in the window.
    func acknowledged(
        _ client: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    )

    /// A publish ended without its acknowledgement: it timed out, or its connection ended without a session.
    func abandoned(_ client: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline)

    /// A publish that a resumed session has to send again, with DUP under its identifier.
    ///
    /// If it was released, PUBREL has been sent already.
    func resend(_ client: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline)

    func subscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline)

    /// UNSUBACK; `codes` is empty before MQTT 5.
    func unsubscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline)

    func pingAnswered(_ client: Int, after: TimeAmount, now: NIODeadline)

    /// The kernel took this many more bytes.
    func wrote(_ client: Int, bytes: Int)

    /// The kernel has taken all bytes written before.
    func writable(_ client: Int, now: NIODeadline)

    /// The connection is about to end; the kernel never took the last `unsent` bytes.
    func ending(_ client: Int, unsent: Int)

    /// The connection has ended; called once, as the last call.
    func ended(_ client: Int, _ end: ConnectionEnd, now: NIODeadline)

    /// The connection asks the owner to call ``MQTTConnection/timerFired(now:)`` at this time, or earlier.
    func wantsTimer(_ client: Int, at: NIODeadline)

    // MARK: Called only if an option asks for it

    /// A packet as received, a message with its topic resolved; `false` drops it as if it had been lost.
    ///
    /// With ``SessionOptions/showsPackets``.
    func admits(_ client: Int, _ packet: Packet, now: NIODeadline) -> Bool

    /// Bytes that are about to be sent: one or several packets, whole ones except for raw bytes.
    ///
    /// With ``SessionOptions/showsPackets``.
    func sends(_ client: Int, _ bytes: UnsafeRawBufferPointer)

    /// Reason string and user properties of an answer; called just before the call for the answer itself.
    ///
    /// With ``SessionOptions/tellsProperties``; `type` is that of an acknowledgement, SUBACK or UNSUBACK.
    func properties(_ client: Int, of type: PacketType, _ id: PacketID, _ properties: Properties, now: NIODeadline)

    /// The server has released a QoS 2 message: it may use the identifier for another message.
    ///
    /// With any option that needs extra checks (``SessionOptions/acknowledgesMessages``,
    /// ``SessionOptions/defersCompletions`` and others).
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
    /// The connection was lost; with `timedOutBefore` a timeout has been reported for the publish already.
    case connectionLost(timedOutBefore: Bool)
}

package enum ConnectionEnd: Hashable, Sendable {
    /// The peer answered our DISCONNECT and FIN with its FIN.
    case answered
    /// CONNACK refused the connection; in 5.0 it may carry properties such as another server to use.
    case refused(ConnAck)
    /// The authentication failed on this side (§4.12).
    case notAuthenticated(SASLError)
    /// The server resumed a session that this side does not hold, from an earlier client of this identifier.
    case sessionKept
    case connackTimedOut
    /// No PINGRESP in time.
    case pingTimedOut
    /// The peer sent FIN before we did.
    case closedByPeer
    /// The server sent DISCONNECT (5.0).
    case disconnected(Disconnect)
    /// The peer's bytes broke a rule.
    case malformed(DecodeError)
    /// The peer's packet was well-formed, but not allowed in this state or with these values.
    case violation(ReasonCode, String)
    /// TLS failed after its handshake: TLS 1.3 rejects a client's certificate that late.
    case insecure(TLSFailure)
    /// The socket failed with this error number.
    case failed(Int32)
    /// Closed by this side without waiting for an answer.
    case aborted
}
