import DataEncodings
package import NIOCore
package import Transport
public import XMPPCodec

/// Owner of connections, and receiver of their events.
///
/// `client` is the owner's own number for the client. All calls come on the connection's event loop. A connection
/// retains its observer; an observer that retained its connections too would create a cycle.
package protocol XMPPConnectionObserver: AnyObject {
    /// TLS is to be put between the socket and `connection`, which is the last handler of `channel` (STARTTLS).
    ///
    /// `done`: called once, on the loop; it may be called before this returns.
    func needsTLS(
        _ client: Int,
        channel: any Channel,
        before wire: Wire,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    )

    /// A phase of the negotiation has ended, with its duration; reported just before ``ready(_:jid:_:now:)``.
    func phase(_ client: Int, _ phase: XMPPPhase, took: TimeAmount, now: NIODeadline)

    /// The account is registered, and no login was requested (``XMPPRegistration/only``): the owner closes the
    /// connection.
    ///
    /// `answer`: from the request that made it to the server's answer.
    func registered(_ client: Int, _ phases: XMPPPhases, answer: TimeAmount, now: NIODeadline)

    /// Stanzas may be sent.
    ///
    /// `jid` is the address that the server assigned.
    func ready(_ client: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline)

    /// A read, before it is parsed.
    ///
    /// The bytes are valid during the call; `atBoundary` is whether they begin outside an element.
    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool)

    /// A read has been taken in. What the owner sends now leaves in one write with the answers to what was read.
    func readEnded(_ client: Int, now: NIODeadline)

    /// A message, a presence, an answer that no request of the connection's awaits, or a top-level element of
    /// ``XMPPStreamOptions/customNamespaces``.
    func received(_ client: Int, _ element: borrowing ElementView, now: NIODeadline)

    /// An IQ of type get or set; `false` has it answered with service-unavailable.
    func requested(_ client: Int, _ request: borrowing ElementView, now: NIODeadline) -> Bool

    /// The answer to ``XMPPConnection/request(_:to:timeout:before:after:)``: a result or an error.
    func answered(_ client: Int, _ token: UInt64, _ answer: borrowing ElementView, now: NIODeadline)

    /// No answer came in time, or the connection is gone and cannot be resumed.
    ///
    /// If the stream can be resumed, the next connection reports the request's fate.
    func unanswered(_ client: Int, _ token: UInt64, _ error: XMPPRequestError, now: NIODeadline)

    /// The server has this many of the oldest stanzas sent (XEP-0198).
    func acknowledged(_ client: Int, count: Int, now: NIODeadline)

    /// The kernel took so many bytes more of what was written.
    func wrote(_ client: Int, bytes: Int)

    /// Everything written before has been taken by the kernel, or the server has acknowledged enough to go on.
    func writable(_ client: Int, now: NIODeadline)

    /// The connection is about to be gone, with `unsent` bytes that the kernel never took.
    func ending(_ client: Int, unsent: Int)

    /// The connection is gone; called once, last.
    func ended(_ client: Int, _ end: XMPPConnectionEnd, now: NIODeadline)

    /// The connection needs a call of ``XMPPConnection/timerFired(now:)`` at this time, or earlier.
    func wantsTimer(_ client: Int, at: NIODeadline)

    /// A stanza that passed the filters of all modules and that no module handled.
    ///
    /// It is called only with modules, instead of ``received(_:_:now:)`` and ``requested(_:_:now:)``.
    ///
    /// - Returns: `true` for a request that the owner answers.
    func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool
}

extension XMPPConnectionObserver {
    package func phase(_ client: Int, _ phase: XMPPPhase, took: TimeAmount, now: NIODeadline) {}
    package func registered(_ client: Int, _ phases: XMPPPhases, answer: TimeAmount, now: NIODeadline) {}
    package func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {}
    package func readEnded(_ client: Int, now: NIODeadline) {}
    package func requested(_ client: Int, _ request: borrowing ElementView, now: NIODeadline) -> Bool { false }
    package func answered(_ client: Int, _ token: UInt64, _ answer: borrowing ElementView, now: NIODeadline) {}
    package func unanswered(_ client: Int, _ token: UInt64, _ error: XMPPRequestError, now: NIODeadline) {}
    package func acknowledged(_ client: Int, count: Int, now: NIODeadline) {}
    package func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool { false }
}

/// Why a request has no result.
public enum XMPPRequestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The answer was an error.
    case refused(StanzaError)
    /// No answer came in time.
    case timedOut
    /// The connection was lost before the answer came, and the stream was not resumed.
    case connectionLost
    /// There is no connection.
    case notSent
    /// It cannot be sent: XML cannot represent it, or its `to` is no JID; the text gives the reason.
    case invalid(String)
    /// A filter of a handler dropped it.
    case dropped

    /// The error in one line.
    public var description: String {
        switch self {
        case .refused(let error): OneLine.of(error.description)
        case .timedOut: "no answer in time"
        case .connectionLost: "the connection was lost before the answer came"
        case .notSent: "the client is not connected"
        case .invalid(let words): words
        case .dropped: "a module's filter dropped the request"
        }
    }
}
