/// The state of a client between its creation and its end.
public enum XMPPClientState: Hashable, Sendable {
    /// The client has never connected so far.
    case created
    /// The time from `connect` until stanzas may be sent.
    case connecting
    /// Stanzas may be sent.
    case connected(XMPPSession)
    /// The client has sent the closing tag.
    case disconnecting
    /// The connection, or the attempt to have one, has ended like this; `connect` may be called again.
    case closed(XMPPClientEnd)
}

/// The state of a client that is connected.
public struct XMPPSession: Hashable, Sendable {
    /// The address that the server assigned.
    public let jid: JID
    /// Whether the previous stream was resumed: presence, rooms and pending requests are unchanged.
    ///
    /// Otherwise the server has dropped them.
    public let isResumed: Bool
    /// Stanzas of the previous connection with an unknown fate, because it could not be resumed.
    public let lost: Int
    /// Features of the server.
    public let offers: XMPPStreamOffers
    /// Features that came with the login by SASL2; none without.
    public let enabled: XMPPInlineFeatures
    /// The other end of a stream without a server (XEP-0174).
    public let peer: JID?

    /// A session as described, as for tests of what makes use of it.
    public init(
        jid: JID,
        isResumed: Bool = false,
        lost: Int = 0,
        offers: XMPPStreamOffers = [],
        enabled: XMPPInlineFeatures = [],
        peer: JID? = nil
    ) {
        self.jid = jid
        self.isResumed = isResumed
        self.lost = lost
        self.offers = offers
        self.enabled = enabled
        self.peer = peer
    }
}

extension XMPPSession {
    init(_ jid: JID, _ readiness: XMPPReadiness, peer: JID?) {
        self.init(
            jid: jid,
            isResumed: readiness.resumed,
            lost: readiness.lost,
            offers: readiness.offers,
            enabled: readiness.enabled,
            peer: peer
        )
    }
}
