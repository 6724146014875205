/// How far a stanza has come when ``XMPPClient/send(_:until:)`` returns.
public enum XMPPSendProgress: Hashable, Sendable, CaseIterable {
    /// The stream took it; the kernel may take it later.
    case accepted
    /// The kernel has all its bytes.
    case written
    /// The server has acknowledged it (XEP-0198).
    ///
    /// The call waits through outages, as long as the stream can be resumed.
    case acknowledged
}
