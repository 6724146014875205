import DataEncodings

/// Why a call of a client failed.
public enum XMPPClientError: Error, Hashable, Sendable {
    /// The configuration or the stanza is invalid; the text gives the reason.
    case invalid(String)
    /// The client is connected, or connecting.
    case alreadyConnected
    /// The client is not connected.
    case notConnected
    /// There is no way to the server.
    case noConnection(XMPPClientEnd)
    /// The stream ended before the call did.
    case ended(XMPPClientEnd)
    /// The answer is an error.
    case refused(StanzaError)
    /// No answer in time.
    case timedOut
    /// A module's filter dropped the stanza.
    case dropped
    /// A call of ``XMPPClient/disconnect()`` ended the connection.
    case disconnected
    /// The task was cancelled.
    case cancelled
}

/// How a stream, or the attempt to have one, ended.
public struct XMPPClientEnd: Hashable, Sendable {
    /// A word for it: a condition of the server's, such as `not-authorized`, or what failed, such as `tls`.
    public let kind: String
    /// The error in one line.
    public let words: String
    /// Whether the same may work later.
    public let mayHeal: Bool

    /// Whether this side closed the stream.
    var isWanted: Bool { self.kind == "closed" && !self.mayHeal }
}

extension XMPPClientError: CustomStringConvertible {
    /// The error in one line.
    public var description: String {
        switch self {
        case .invalid(let words): words
        case .alreadyConnected: "the client is connected already"
        case .notConnected: "the client is not connected"
        case .noConnection(let end), .ended(let end): end.words
        case .refused(let error): OneLine.of(error.description)
        case .timedOut: "no answer in time"
        case .dropped: "a module's filter dropped the stanza"
        case .disconnected: "the client was disconnected"
        case .cancelled: "the task was cancelled"
        }
    }
}

extension XMPPClientEnd {
    package init(_ end: XMPPConnectionEnd) {
        self.init(kind: end.kind, words: end.description, mayHeal: end.retry != .never)
    }
}
