package import NIOCore
package import XMPPCodec

/// One client's side of its XMPP streams, one after the other; it does no IO.
///
/// Elements and the time are its input, actions its output; bytes to send are appended to a buffer that is passed in.
/// The negotiation is a loop over the offered features, each with its needs: see ``negotiate(now:into:)``. A stream
/// outlives its connections, for stream management's resumption.
///
/// An idle one keeps 248 bytes, its JIDs and password apart; stream management adds 120, and what is not
/// acknowledged; a token adds 80 and its texts.
///
/// Spec: RFC 6120, RFC 7395, XEP-0198, XEP-0388, XEP-0386, XEP-0484.
package struct XMPPStream: ~Copyable {
    package let shared: XMPPStreamShared
    package internal(set) var account: XMPPAccount
    package internal(set) var state = XMPPState.disconnected
    package internal(set) var facts: XMPPStreamFacts = []
    /// The address that the server assigned (RFC 6120 §7.6), kept over resumptions; `nil` before the first binding.
    package internal(set) var jid: JID?
    /// The negotiation, until the stream is ready.
    var negotiation: XMPPNegotiation?
    /// The counts of stream management; `nil` without it.
    var management: ManagementState?
    var requests = XMPPRequests()
    package internal(set) var strays = XMPPStrays()
    var keepAlive = KeepAlive()
    /// When the server's closing tag is not waited for any longer.
    var closingDeadline = NIODeadline.distantFuture
    /// The memory of tokens; `nil` without them.
    var loginMemory: XMPPLoginMemory?
    /// Times in a row that another host was named.
    var redirects: UInt16 = 0
    /// Whether this client has shown itself, and so takes its leave with a presence.
    package var isPresent = false
    /// Bytes in both directions, headers and spaces among them, TLS not.
    package internal(set) var bytesSent: UInt64 = 0
    package internal(set) var bytesReceived: UInt64 = 0
    /// Where each element ends that was appended, for a WebSocket: one message each.
    ///
    /// Taken by the connection.
    var boundaries: [Int] = []

    package init(_ account: XMPPAccount, shared: XMPPStreamShared) {
        self.account = account
        self.shared = shared
    }

    package init(_ account: XMPPAccount, options: XMPPStreamOptions) {
        self.init(account, shared: XMPPStreamShared(options))
    }

    package var options: XMPPStreamOptions { _read { yield self.shared.options } }

    package enum Action: Hashable, Sendable {
        /// Nothing beyond what was appended.
        case none
        /// TLS is due.
        ///
        /// Bytes read in clear after this are dropped (§5.4.3.3); ``XMPPStream/tlsReady(now:into:)`` follows.
        case startTLS
        /// The reader has to expect a new stream header, which answers the one appended (§4.3.3).
        case restart
        case ready(XMPPReadiness)
        /// The account is registered, and no login was requested (``XMPPRegistration/only``): the phases, and the time
        /// to the answer of the request that created it.
        case registered(XMPPPhases, answer: TimeAmount)
        /// A message, a presence or an unexpected answer: for the owner.
        case stanza
        /// An IQ of type get or set; it must be answered (§8.2.3), by ``XMPPStream/refuse(_:into:)`` if nothing else
        /// does.
        case request
        /// The answer to a request, by the token that it was made with.
        case answer(token: UInt64)
        /// The server has this many of the oldest stanzas sent (XEP-0198 §4).
        case acknowledged(Int)
        /// The connection is of no more use. What was appended still goes out.
        case end(XMPPConnectionEnd)
    }

    // MARK: Coming up

    /// The channel is up: appends the stream header.
    ///
    /// `deadline`: when the stream has to be ready, all steps together.
    /// `isSecure`: whether TLS is active already.
    package mutating func start(deadline: NIODeadline, isSecure: Bool, now: NIODeadline, into out: inout ByteBuffer) {
        self.facts = isSecure ? .secure : []
        if !self.canResume { self.management = nil }
        if self.requests.isEmpty { self.requests = XMPPRequests() }
        self.closingDeadline = .distantFuture
        self.boundaries = []
        let negotiation = XMPPNegotiation(deadline: deadline, now: now, after: self.negotiation)
        self.negotiation = negotiation
        if self.options.peerRole == .recipient { return self.awaitPeer(now: now) }
        if self.options.framing == .stream { out.writeStaticString("<?xml version='1.0'?>") }
        self.open(now: now, into: &out)
    }

    /// Appends a stream header, and awaits one.
    mutating func open(now: NIODeadline, into out: inout ByteBuffer) {
        self.state = .opening
        self.enter(.stream, now: now)
        self.negotiation?.hasHeader = false
        self.negotiation?.features = nil
        if self.options.peerRole != nil { return self.openToPeer(id: nil, into: &out) }
        if self.options.isComponent { return self.openAsComponent(into: &out) }
        let domain = self.account.jid.domain
        // §4.7.1: `from` only on an encrypted stream.
        let isNamed = self.facts.contains(.secure) && self.account.jid.local != nil
        let from = isNamed ? self.account.jid.bare.description : nil
        if self.options.framing == .webSocket {
            var element = XMPPElement(
                "open",
                namespace: XMPPNamespace.framing,
                attributes: ["to": domain, "from": from, "version": "1.0"]
            )
            element.language = self.options.language
            return self.append(element, into: &out)
        }
        out.writeStaticString("<stream:stream")
        Self.write("to", domain, into: &out)
        Self.write("from", from, into: &out)
        Self.write("version", "1.0", into: &out)
        Self.write("xml:lang", self.options.language, into: &out)
        out.writeStaticString(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>")
    }

    static func write(_ name: StaticString, _ value: String?, into out: inout ByteBuffer) {
        guard let value else { return }
        out.writeStaticString(" ")
        out.writeStaticString(name)
        out.writeStaticString("='")
        // A JID contains no character that XML lacks; an invalid language is left out.
        try? out.writeXMLAttribute(value)
        out.writeStaticString("'")
    }

    /// The server's header (§4.7).
    ///
    /// A fault in the header is reported only if no stream error explains it better.
    package mutating func opened(_ header: StreamHeader, now: NIODeadline, into out: inout ByteBuffer) -> Action {
        guard self.state == .opening, let negotiation = self.negotiation, !negotiation.hasHeader else {
            return self.violated("a stream header came unasked", .badFormat, into: &out)
        }
        negotiation.hasHeader = true
        if let role = self.options.peerRole { return self.openedByPeer(header, role, now: now, into: &out) }
        negotiation.fault = self.fault(in: header, earlier: negotiation.streamID)
        negotiation.streamID = header.id ?? ""
        if negotiation.fault == nil, self.options.isComponent { return self.beginHandshake(now: now, into: &out) }
        if negotiation.fault == nil, header.isBeforeVersion1 {
            return self.beginLegacyAuthentication(now: now, into: &out)
        }
        return .none
    }

    private func fault(in header: StreamHeader, earlier: String) -> XMPPConnectionEnd? {
        if let from = header.from, (try? JID(received: from)) != self.domainJID { return .foreignServer(from) }
        guard let id = header.id, !id.isEmpty else { return .header("it has no id") }
        // §4.7.3: an id that comes again would prove old proofs.
        guard id != earlier else { return .header("its id is that of the stream before") }
        if self.options.isComponent {
            let isRight = header.defaultNamespace == XMPPNamespace.component
            return isRight ? nil : .header("its default namespace is not jabber:component:accept")
        }
        // §4.8.3: in the streams namespace itself, each stanza declares jabber:client.
        if self.options.framing == .stream, header.defaultNamespace != XMPPNamespace.client,
            header.defaultNamespace != XMPPNamespace.stream
        {
            return .header("its default namespace is '\(header.defaultNamespace)' and not jabber:client")
        }
        if header.isBeforeVersion1, !self.options.allowsLegacyAuthentication { return .noVersion }
        return nil
    }

    /// A server's header has come, and nothing was wrong with it.
    private var hasUsualHeader: Bool {
        guard self.options.peerRole == nil, self.state == .opening, let negotiation = self.negotiation else {
            return false
        }
        return negotiation.hasHeader && negotiation.fault == nil
    }

    var domainJID: JID { self.account.jid.domainOnly }

    // MARK: Elements

    /// A complete child of the root.
    package mutating func received(
        _ element: borrowing ElementView,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        if self.state == .connected, element.kind != .other {
            return self.receivedStanza(element, now: now, into: &out)
        }
        if self.state == .closing, element.kind != .other { return self.receivedLate(element) }
        // Not often: a tree does no harm.
        let known = self.hasUsualHeader && element.isNamed("features") ? self.shared.features : nil
        let tree = known?.tree(of: element) ?? element.element()
        if tree.name == "error", tree.namespace == XMPPNamespace.stream {
            return self.received(StreamError(tree), now: now, into: &out)
        }
        if tree.name == "close", tree.namespace == XMPPNamespace.framing, let place = tree["see-other-uri"] {
            self.forgetResumption()
            return self.end(.elsewhere(place), into: &out)
        }
        if let fault = self.negotiation?.fault { return self.end(fault, into: &out) }
        switch self.state {
        case .connected: return self.receivedNonza(tree, now: now, into: &out)
        case .closing, .disconnected: return .none
        default:
            if self.facts.contains(.bound), element.kind != .other, !self.isAwaited(tree) {
                return self.receivedStanza(element, now: now, into: &out)
            }
            return self.receivedWhileNegotiating(tree, now: now, into: &out)
        }
    }

    /// The server's closing tag.
    ///
    /// The answer to it is appended where it is one (§4.4).
    package mutating func closed(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        if self.state == .closing {
            self.state = .disconnected
            return .end(.answered)
        }
        self.forgetResumption()
        if let fault = self.negotiation?.fault { return self.end(fault, into: &out) }
        return self.end(.closedByPeer, into: &out)
    }

    private mutating func received(_ error: StreamError?, now: NIODeadline, into out: inout ByteBuffer) -> Action {
        guard let error else { return self.violated("a stream error without a condition", .badFormat, into: &out) }
        // A peer without a server has no other host: it could lead the client anywhere.
        if error.condition == .seeOtherHost, self.options.peerRole == nil {
            if self.redirects < .max { self.redirects += 1 }
            guard self.redirects <= self.options.maximumRedirects else {
                return self.end(.tooManyRedirects(Int(self.redirects)), into: &out)
            }
            return self.end(.redirected(XMPPHost(seeOther: error)), into: &out)
        }
        // After `conflict` the session is lost too: it belongs to another connection or is gone.
        if error.condition == .conflict { self.forgetResumption() }
        return self.end(.streamError(error), into: &out)
    }
}

extension StreamHeader {
    /// §4.7.5: if the other side supports a higher version, 1.0 is used.
    fileprivate var isBeforeVersion1: Bool { (self.majorVersion ?? 0) < 1 }
}
