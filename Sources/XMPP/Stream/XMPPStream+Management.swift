package import NIOCore
import XMPPCodec

// Acknowledgements and resumption (XEP-0198). The counts live where stanzas come and go, so this is no module.
extension XMPPStream {
    func nonza(_ name: String, _ attributes: KeyValuePairs<String, String?> = [:]) -> XMPPElement {
        XMPPElement(name, namespace: XMPPNamespace.streamManagement, attributes: attributes)
    }

    // MARK: Beginning

    mutating func beginResumption(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        guard self.options.management == .resume, let management = self.management, management.previousID != nil
        else { return nil }
        // The client does not ask for a session that the server has dropped: that would cost a round trip.
        guard self.offered("sm", XMPPNamespace.streamManagement) != nil, !management.isOver(now: now) else {
            self.loseSession(acknowledged: nil)
            return nil
        }
        self.enter(.bind, now: now)
        self.state = .managing
        self.append(self.resumeRequest(management), into: &out)
        return Action.none
    }

    mutating func beginManagement(into out: inout ByteBuffer) -> Action? {
        guard self.options.management.isOn, self.offered("sm", XMPPNamespace.streamManagement) != nil else {
            self.management = nil
            return nil
        }
        self.state = .managing
        // §3: this side counts from `<enable/>` on.
        self.management = self.newManagement
        self.append(self.enableRequest, into: &out)
        return Action.none
    }

    var newManagement: ManagementState {
        ManagementState(
            StreamManagement(
                limit: self.options.maximumUnacknowledged,
                bytes: self.options.maximumUnacknowledgedBytes,
                keeps: self.options.management == .resume
            )
        )
    }

    var enableRequest: XMPPElement {
        self.nonza("enable", ["resume": self.options.management == .resume ? "true" : nil])
    }

    func resumeRequest(_ management: ManagementState) -> XMPPElement {
        self.nonza("resume", ["previd": management.previousID, "h": String(management.counts.handled)])
    }

    mutating func receivedAboutManagement(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard element.namespace == XMPPNamespace.streamManagement, let management = self.management else {
            return self.unexpected(element, into: &out)
        }
        switch element.name {
        case "enabled" where self.facts.contains(.bound):
            self.enabled(management, by: element)
            return self.negotiate(now: now, into: &out)
        case "resumed" where !self.facts.contains(.bound):
            return self.resumed(management, by: element, now: now, into: &out)
        case "failed": return self.managementFailed(element, now: now, into: &out)
        default: return self.unexpected(element, into: &out)
        }
    }

    /// `<enabled/>`, by itself or within `<bound/>`.
    mutating func enabled(_ management: ManagementState, by element: XMPPElement) {
        management.isOn = true
        let resumes = element["resume"].map { $0 == "true" || $0 == "1" } ?? false
        let isAsked = self.options.management == .resume && management.counts.keeps
        // §3: 4,000 bytes at most. It is kept, and so is the place, which is a host's name.
        management.previousID = resumes && isAsked ? Self.short(element["id"], 4_000) : nil
        management.location = Self.short(element["location"], 300)
        management.maximum = element["max"].flatMap { UInt32($0) }.map { .seconds(Int64($0)) }
        self.facts.insert(.managed)
    }

    static func short(_ text: String?, _ most: Int) -> String? { text.flatMap { $0.utf8.count <= most ? $0 : nil } }

    /// `<resumed/>`, by itself or within the success of SASL2.
    mutating func resumed(
        _ management: ManagementState,
        by element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard element["previd"] == management.previousID else {
            return self.violated("it resumed another stream than requested", .undefinedCondition, into: &out)
        }
        guard let h = element["h"].flatMap({ UInt32($0) }) else {
            return self.violated("it resumes a stream without a count", .undefinedCondition, into: &out)
        }
        switch management.counts.receives(h) {
        case .tooHigh(let h, let sent): return self.countTooHigh(h, sent: sent, into: &out)
        case .acknowledged(let count): self.negotiation?.acknowledged += count
        }
        management.isOn = true
        management.sinceRequest = 0
        management.lostAt = nil
        // The JID stays what it was (§5); there is nothing to bind.
        self.facts.formUnion([.bound, .session, .managed, .resumed])
        let isMarked = self.options.framing == .webSocket
        var ends: [Int] = []
        management.counts.resend(into: &out) { if isMarked { ends.append($0.writerIndex) } }
        self.boundaries += ends
        if management.counts.unacknowledged > 0 { self.append(self.nonza("r"), into: &out) }
        return self.negotiate(now: now, into: &out)
    }

    /// `<failed/>` answers `<resume/>` or `<enable/>`; the stream continues without the feature (§5).
    private mutating func managementFailed(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        if self.facts.contains(.bound) {
            self.management = nil
            // Refused: the client does not ask again.
            self.facts.insert(.managed)
            return self.negotiate(now: now, into: &out)
        }
        self.loseSession(acknowledged: element["h"].flatMap { UInt32($0) })
        return self.negotiate(now: now, into: &out)
    }

    /// The session cannot be resumed: stanzas that the server did not acknowledge have an unknown fate.
    mutating func loseSession(acknowledged h: UInt32?) {
        guard let management = self.management, let negotiation = self.negotiation else { return }
        if let h, case .acknowledged(let count) = management.counts.receives(h) { negotiation.acknowledged += count }
        negotiation.lost += management.counts.unacknowledged
        self.management = nil
    }

    /// A clean end, or the server's word, ends the session too.
    mutating func forgetResumption() { self.management?.previousID = nil }

    // MARK: Acknowledgements

    /// An element on a stream that is ready, and no stanza.
    mutating func receivedNonza(_ element: XMPPElement, now: NIODeadline, into out: inout ByteBuffer) -> Action {
        // §9.2: no features follow a resumption within a login, but early servers send them.
        if element.isNamed("features", XMPPNamespace.stream), self.facts.contains(.resumed), self.options.login != .sasl
        {
            return .none
        }
        guard element.namespace == XMPPNamespace.streamManagement, let management = self.management, management.isOn
        else {
            return self.unknownElement(element, into: &out)
        }
        switch element.name {
        case "r":
            self.acknowledge(into: &out)
            return .none
        case "a":
            guard let h = element["h"].flatMap({ UInt32($0) }) else {
                return self.violated("an acknowledgement without a count", .undefinedCondition, into: &out)
            }
            switch management.counts.receives(h) {
            case .acknowledged(let count): return count == 0 ? .none : .acknowledged(count)
            case .tooHigh(let h, let sent): return self.countTooHigh(h, sent: sent, into: &out)
            }
        default: return self.unknownElement(element, into: &out)
        }
    }

    private mutating func countTooHigh(_ h: UInt32, sent: UInt32, into out: inout ByteBuffer) -> Action {
        var error = StreamError(.undefinedCondition)
        // §4: the stream error carries the wrong count.
        error.application = self.nonza("handled-count-too-high", ["h": String(h), "send-count": String(sent)])
        self.append(error, into: &out)
        self.forgetResumption()
        return self.end(.handledCountTooHigh(h, sent: sent), into: &out)
    }

    /// Asks the server how much it has.
    package mutating func requestAcknowledgement(into out: inout ByteBuffer) {
        guard self.state == .connected, let management = self.management else { return }
        management.sinceRequest = 0
        management.asksAt = .distantFuture
        self.append(self.nonza("r"), into: &out)
    }

    /// Acknowledges the stanzas received, so that the server need not keep them.
    mutating func acknowledge(into out: inout ByteBuffer) {
        guard let management = self.management, management.isOn else { return }
        self.append(self.nonza("a", ["h": String(management.counts.handled)]), into: &out)
    }

    /// Whether there is a session that the server may still have.
    package var canResume: Bool { self.management?.previousID != nil && !self.isUntold }

    /// When the server drops the session that was lost; without a word of its own after ten minutes (§5: `max`).
    var resumptionDeadline: NIODeadline? {
        guard let management = self.management, let lostAt = management.lostAt else { return nil }
        return lostAt + (management.maximum ?? .minutes(10))
    }

    /// A session is bound but not yet reported: the owner must know of a session before it is resumed.
    var isUntold: Bool { self.negotiation != nil && self.facts.contains(.bound) && !self.facts.contains(.resumed) }

    /// The server's preferred location for a resumption, `host` or `host:port` (§5).
    package var resumptionLocation: String? { self.management?.location }

    /// Whether both sides count stanzas (§4).
    package var isManaged: Bool { self.management?.isOn ?? false }

    /// Stanzas sent since stream management is on, modulo 2³²; 0 without it.
    package var stanzasSent: UInt32 { self.management?.counts.sent ?? 0 }

    /// Stanzas sent that the server has not acknowledged; 0 without stream management.
    package var unacknowledged: Int { self.management?.counts.unacknowledged ?? 0 }
}
