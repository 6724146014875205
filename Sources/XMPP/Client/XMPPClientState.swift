/// Where a client stands between its creation and its end.
public enum XMPPClientState: Hashable, Sendable {
    /// Never connected so far.
    case created
    /// From `connect` until stanzas may be sent.
    case connecting
    /// Stanzas may be sent.
    case connected(XMPPSession)
    /// The closing tag is on its way.
    case disconnecting
    /// The connection, or the attempt to have one, has ended like this; `connect` may be called again.
    case closed(XMPPClientEnd)
}

/// The state of a client that is connected.
public struct XMPPSession: Hashable, Sendable {
    /// The address that the server assigned.
    public let jid: JID
    /// It goes on where the connection before was cut: presence, rooms and requests under way are as they were.
    ///
    /// Otherwise the server knows nothing of them any more.
    public let isResumed: Bool
    /// Stanzas of the connection before whose fate is unknown, since it could not be resumed.
    public let lost: Int

    /// A session as described, as for tests of what makes use of it.
    public init(jid: JID, isResumed: Bool = false, lost: Int = 0) {
        self.jid = jid
        self.isResumed = isResumed
        self.lost = lost
    }
}
