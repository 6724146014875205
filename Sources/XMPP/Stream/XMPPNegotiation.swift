import NIOCore
import SASL
import XMPPCodec

/// State that a stream needs only until it is ready: about 300 bytes, and the server's features.
final class XMPPNegotiation {
    let deadline: NIODeadline
    var phase: XMPPPhase?
    var phaseBegan: NIODeadline
    var phases = XMPPPhases()
    var hasHeader = false
    /// The fault in the server's header.
    var fault: XMPPConnectionEnd?
    var streamID = ""
    var features: XMPPElement?
    var awaitedID = ""
    var mechanism: (any SASLMechanism)?
    /// Mechanisms that the server offered and then refused.
    var refusedMechanisms: Set<String> = []
    /// Why the last of them was turned down.
    var failure: XMPPAuthenticationFailure?
    /// The login that is on is by SASL2, with these requests.
    var inline: XMPPInlineRequests?
    /// Why the kept token was refused on this stream.
    var tokenFailure: XMPPAuthenticationFailure?
    /// Facts about the session for ``XMPPReadiness``, from before the last features.
    var offers: XMPPStreamOffers = []
    var enabled: XMPPInlineFeatures = []
    var channelBindings: (() -> [SASLChannelBinding])?
    var bindings = 0
    /// The resource to ask for next; `nil`: the server's choice.
    var resource: String?
    var registersByForm = false
    /// When that form, or those fields, went out.
    var formSent = NIODeadline.distantPast
    /// The proof of the obsolete login is out.
    var hasProven = false
    /// The completed features of ``XMPPStreamOptions/features``, and the current one.
    var negotiated: Set<Int> = []
    var current: Int?
    /// Acknowledged and lost stanzas of the previous session, reported when the stream is ready.
    var acknowledged = 0
    var lost = 0

    /// - Parameters:
    ///   - deadline: when the stream has to be ready.
    ///   - now: when it begins.
    ///   - before: a failed negotiation; this one reports its findings.
    init(deadline: NIODeadline, now: NIODeadline, after before: XMPPNegotiation? = nil) {
        self.deadline = deadline
        self.phaseBegan = now
        self.acknowledged = before?.acknowledged ?? 0
        self.lost = before?.lost ?? 0
    }

    /// The unreported findings of a failed negotiation.
    var untold: XMPPNegotiation? {
        guard self.acknowledged > 0 || self.lost > 0 else { return nil }
        return XMPPNegotiation(deadline: .distantFuture, now: self.phaseBegan, after: self)
    }
}

/// The steps of the negotiation, in the order of preference.
enum XMPPStep: CaseIterable {
    case tls
    /// A feature of ``XMPPStreamOptions/features``.
    case custom
    case register
    case sasl
    case resume
    case bind
    case session
    case enable

    /// The facts that must hold before the step.
    var needs: XMPPStreamFacts {
        switch self {
        case .tls, .custom, .register, .sasl: []
        case .resume, .bind: .authenticated
        case .session, .enable: .bound
        }
    }

    /// The facts that the step establishes; a completed step is not repeated.
    var gives: XMPPStreamFacts {
        switch self {
        case .tls: .secure
        case .custom: []
        case .register: .registered
        case .sasl: .authenticated
        case .resume, .bind: .bound
        case .session: .session
        case .enable: .managed
        }
    }
}

enum NegotiationAnswer {
    case result(XMPPElement)
    case error(StanzaError)
    /// Another's, or to something else: as if it had not come.
    case foreign
    case unexpected
}

/// A stream that is ready for stanzas.
package struct XMPPReadiness: Hashable, Sendable {
    /// Whether the previous stream was resumed.
    package let resumed: Bool
    /// Stanzas of the connection before that the server had (XEP-0198 §5).
    package let acknowledged: Int
    /// Stanzas of the previous connection with an unknown fate: it could not be resumed.
    package let lost: Int
    package let phases: XMPPPhases
    /// Features that the server offers after the login.
    ///
    /// A stream resumed within its login gets no features (XEP-0198 §9.2): it has those of its session's beginning.
    package let offers: XMPPStreamOffers
    /// Features that came with the resource; none without Bind 2.
    package let enabled: XMPPInlineFeatures
}
