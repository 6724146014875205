import NIOCore
package import XMPPCodec

/// The own presence, and those of others as far as the stream has brought them.
///
/// Spec: RFC 6121 §3, §4.
package final class PresenceHandler: XMPPHandler {
    private struct Entry {
        let resource: XMPPPresence.Resource
        /// The number of the presence that brought it, counted over the handler's life.
        let age: UInt64
        let size: Int
    }

    private static let maximumBytes = 16 << 20
    /// Presences that are kept until the stream is ready.
    private static let maximumEarly = 256

    /// The last presence without `to`, available or not.
    package private(set) var current: XMPPElement?
    /// Presences that made room for others, or that came too early.
    package private(set) var dropped = 0
    /// Whether the server offers `urn:xmpp:features:pre-approval`.
    package private(set) var canPreapprove = false
    private var contacts: [JID: [JID: Entry]] = [:]
    /// Resources that are remembered.
    package private(set) var count = 0
    private var bytes = 0
    private var age: UInt64 = 0
    /// The order in which they were heard, with some that are heard again or gone.
    private var order: CircularBuffer<(jid: JID, age: UInt64)> = []
    private var early: [XMPPElement] = []
    private var isReady = false
    private var hadStream = false
    private var isResending = false

    private let resends: Bool
    private let maximum: Int
    private let accepts: (JID) -> Bool
    private let offersPreapproval: (XMPPSession) -> Bool
    private let told: (XMPPPresence.Event) -> Void

    package init(
        offersPreapproval: @escaping (XMPPSession) -> Bool = { $0.offers.contains(.preApproval) },
        resends: Bool = true,
        maximum: Int = 10_000,
        accepts: @escaping (JID) -> Bool = { _ in false },
        _ told: @escaping (XMPPPresence.Event) -> Void = { _ in }
    ) {
        self.resends = resends
        self.maximum = max(1, maximum)
        self.accepts = accepts
        self.offersPreapproval = offersPreapproval
        self.told = told
    }

    // MARK: The own

    package func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
        if !self.isResending, stanza.name == "presence", stanza["to"] == nil,
            stanza["type"] == nil || stanza["type"] == "unavailable"
        {
            self.current = stanza
        }
        return stanza
    }

    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        self.isReady = true
        self.canPreapprove = self.offersPreapproval(session)
        // Presence survives a resumption (XEP-0198 §5).
        if !session.isResumed {
            self.forgetEverybody()
            if self.hadStream { self.told(.reset) }
            if self.resends, let current = self.current, current["type"] == nil {
                self.isResending = true
                _ = try? context.send(current)
                self.isResending = false
            } else {
                self.current = nil
            }
        }
        self.hadStream = true
        let early = self.early
        self.early = []
        for presence in early { self.take(presence, in: context) }
    }

    package func ended(_ end: XMPPClientEnd) {
        self.isReady = false
        self.early = []
        // The next stream is not a continuation of one that was closed on purpose.
        if end.isWanted { self.current = nil }
    }

    // MARK: Those of others

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "presence" else { return false }
        if self.isReady {
            self.take(stanza, in: context)
        } else if self.early.count < Self.maximumEarly {
            // Only the stream's readiness tells whether the presences before it still hold.
            self.early.append(stanza)
        } else {
            self.dropped += 1
        }
        return false
    }

    private func take(_ stanza: XMPPElement, in context: XMPPModuleContext) {
        // RFC 6120 §8.1.2.1: without `from` it is the account's.
        guard let jid = stanza["from"].map({ try? JID(received: $0) }) ?? context.jid?.bare else { return }
        let status = stanza.child("status")?.text
        switch stanza["type"] {
        // Occupants of rooms are no contacts.
        case nil, "unavailable":
            if stanza.child("x", XMPPNamespace.mucUser) == nil { self.changes(jid, stanza, status) }
        case "subscribe": self.asks(jid.bare, status, in: context)
        case "subscribed": self.told(.approved(jid.bare))
        case "unsubscribed": self.told(.denied(jid.bare))
        case "unsubscribe": self.told(.cancelled(jid.bare))
        case "error": self.told(.failed(jid, StanzaError(stanza) ?? StanzaError(.undefinedCondition)))
        default: break
        }
    }

    private func changes(_ jid: JID, _ stanza: XMPPElement, _ status: String?) {
        guard stanza["type"] == nil else {
            // A bare address speaks for all of its resources (§4.3.2).
            let gone = jid.isBare ? Array((self.contacts[jid] ?? [:]).keys) : [jid]
            for resource in gone { self.remove(resource) }
            return self.told(.unavailable(jid, status: status))
        }
        let resource = XMPPPresence.Resource(jid, stanza)
        self.remove(jid)
        self.age += 1
        let entry = Entry(resource: resource, age: self.age, size: resource.estimatedSize)
        self.contacts[jid.bare, default: [:]][jid] = entry
        self.order.append((jid, self.age))
        self.count += 1
        self.bytes += entry.size
        self.makeRoom()
        self.told(.available(resource))
    }

    private func makeRoom() {
        // The newest stays, however large it is.
        while self.count > self.maximum || self.bytes > Self.maximumBytes && self.count > 1,
            let oldest = self.order.popFirst()
        {
            guard self.contacts[oldest.jid.bare]?[oldest.jid]?.age == oldest.age else { continue }
            self.remove(oldest.jid)
            self.dropped += 1
        }
        guard self.order.count > 2 * self.count + 64 else { return }
        let current = self.order.filter { self.contacts[$0.jid.bare]?[$0.jid]?.age == $0.age }
        self.order = CircularBuffer(current)
    }

    private func remove(_ jid: JID) {
        let bare = jid.bare
        guard let entry = self.contacts[bare]?.removeValue(forKey: jid) else { return }
        if self.contacts[bare]?.isEmpty ?? false { self.contacts[bare] = nil }
        self.count -= 1
        self.bytes -= entry.size
    }

    private func forgetEverybody() {
        self.contacts = [:]
        self.order = []
        self.count = 0
        self.bytes = 0
    }

    private func asks(_ jid: JID, _ status: String?, in context: XMPPModuleContext) {
        guard jid != context.jid?.bare else { return }
        guard self.accepts(jid) else { return self.told(.requested(jid, status: status)) }
        _ = try? context.send(XMPPPresence.presence("subscribed", to: jid))
        self.told(.accepted(jid))
    }

    package func resources(of bare: JID) -> [XMPPPresence.Resource] { self.sorted(self.contacts[bare] ?? [:]) }
    package var everybody: [JID: [XMPPPresence.Resource]] { self.contacts.mapValues { self.sorted($0) } }

    /// The resources by priority, and the ones heard last first.
    private func sorted(_ entries: [JID: Entry]) -> [XMPPPresence.Resource] {
        entries.values
            .sorted { ($0.resource.priority, $0.age) > ($1.resource.priority, $1.age) }
            .map(\.resource)
    }
}
