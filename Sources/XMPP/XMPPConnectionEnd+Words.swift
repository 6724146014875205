import DataEncodings
import SASL
import Transport
import XMPPCodec

#if canImport(Glibc)
import Glibc
#endif

/// Whether to connect again after an end.
package enum XMPPRetry: Hashable, Sendable {
    /// A retry would fail the same way until a setting changes.
    case never
    /// Soon, the usual way.
    case soon
    /// The server has asked the client to wait.
    case later
    /// Somewhere else, under the same name (RFC 6120 §4.9.3.19).
    case at(XMPPHost)
}

extension XMPPConnectionEnd: CustomStringConvertible {
    package var description: String { OneLine.of(self.words) }

    private var words: String {
        switch self {
        case .answered: "the stream was closed"
        case .closedByPeer: "the server closed the stream"
        case .lost: "the connection was lost: the server did not close its stream first"
        case .failed(let code): "the connection failed: \(SystemError.words(code))"
        case .timedOut(let phase): "the stream was not ready in time: \(phase.openWords)"
        case .pingTimedOut: "the server did not answer a ping in time"
        case .closingTimedOut: "the server did not answer the end of the stream in time"
        case .aborted: "the connection was given up"
        case .insecure(let failure): "no TLS: \(failure)"
        case .notConnected(let reason): "no TLS: \(reason)"
        case .webSocket(let text): "the WebSocket failed: \(text)"
        case .streamError(let error): "the server ended the stream: \(error.condition.rawValue)\(Self.said(error.text))"
        case .redirected(let host?): "the server names another host: \(host.name)\(host.port.map { ":\($0)" } ?? "")"
        case .redirected(nil): "the server names another host, and it cannot be read"
        case .elsewhere(let place): "the server names another WebSocket: \(place)"
        case .notAuthenticated(let failure):
            "the server refused the login: \(failure.condition.rawValue)\(Self.said(failure.text))"
        case .tokenRefused(let failure):
            "the server refused the token: \(failure.condition.rawValue)\(Self.said(failure.text))"
        case .tasksRequired(let names):
            "the server requires more than the login: \(names.isEmpty ? "nothing named" : names.joined(separator: ", "))"
        case .bindRefused(let error): "the server refused the resource: \(Self.name(error))"
        case .sessionRefused(let error): "the server refused the session: \(Self.name(error))"
        case .registrationRefused(let error): "the server refused to register the account: \(Self.name(error))"
        case .legacyRefused(let error): "the server refused the login by jabber:iq:auth: \(Self.name(error))"
        case .tlsRefused: "the server offered STARTTLS, and then refused it"
        default: self.wordsOfThisSide
        }
    }

    private var wordsOfThisSide: String {
        switch self {
        case .foreignServer(let domain): "the server is '\(domain)', which is not the domain of the JID"
        case .header(let what): "the server's stream header is wrong: \(what)"
        case .noVersion: "the server's stream has no version 1.0; jabber:iq:auth has to be allowed for such a server"
        case .tlsNotOffered: "the server does not offer STARTTLS, and TLS is required"
        case .tlsRequired: "the server requires STARTTLS, and TLS is switched off or cannot be used here"
        case .plaintextInjected: "bytes in clear came between STARTTLS and the handshake; they were injected"
        case .passwordInClear:
            "the server takes the password in clear only, and the connection has no TLS; use TLS, or allow it"
        case .noMechanism(let error): error.description
        case .serverNotAuthentic(let error): error.words
        case .bindUnreadable: "the server's answer to the binding has no JID that can be read"
        case .featureMissing(let name): "the server offers no \(name)"
        case .featureRequired(let name): "the server requires \(name), which is not known here"
        case .featureFailed(let text): text
        case .registrationImpossible(let problem): "the registration cannot be filled in: \(problem)"
        case .tooManyRedirects(let count): "the server named another host \(count) times in a row"
        case .malformed(let error): "the server's XML is wrong: \(error)"
        case .unexpected(let element, let state): "\(element) came in the state '\(state.words)', where it has no place"
        case .violation(_, let text): "the server broke a rule: \(text)"
        case .handledCountTooHigh(let h, let sent):
            "the server acknowledged \(h) stanza\(h == 1 ? "" : "s"), but only \(sent) \(sent == 1 ? "was" : "were") sent"
        case .unsendable(let error): "the stanza cannot be written as XML: \(error)"
        default: "the connection ended"
        }
    }

    private static func said(_ text: String?) -> String { text.map { $0.isEmpty ? "" : " (\($0))" } ?? "" }
    private static func name(_ error: StanzaError) -> String { error.condition.rawValue + Self.said(error.text) }

    /// The word for it among the kinds of `errors`: a condition where the server named one.
    package var kind: String {
        switch self {
        case .answered, .closedByPeer, .aborted: "closed"
        case .lost: "lost"
        case .failed: "reset"
        case .timedOut(let phase): "timeout-\(phase.rawValue)"
        case .closingTimedOut: "timeout-close"
        case .pingTimedOut: "timeout-ping"
        case .insecure, .notConnected, .tlsRefused, .tlsNotOffered, .tlsRequired, .plaintextInjected: "tls"
        case .webSocket: "websocket"
        case .streamError(let error): error.condition.rawValue
        case .redirected, .tooManyRedirects, .elsewhere: "see-other-host"
        case .notAuthenticated(let failure), .tokenRefused(let failure): failure.condition.rawValue
        case .bindRefused(let error), .sessionRefused(let error), .legacyRefused(let error):
            error.condition.rawValue
        // A stream can end with a conflict too, which is something else.
        case .registrationRefused(let error): "register \(error.condition.rawValue)"
        case .registrationImpossible: "register form"
        case .passwordInClear, .noMechanism, .serverNotAuthentic, .tasksRequired: "sasl"
        case .handledCountTooHigh: "handled-count-too-high"
        case .malformed(let error): error.condition.rawValue
        default: "protocol"
        }
    }

    package var retry: XMPPRetry {
        switch self {
        case .answered, .aborted: .never
        case .closedByPeer, .lost, .failed, .timedOut, .pingTimedOut, .closingTimedOut, .webSocket, .notConnected,
            .tokenRefused:
            .soon
        case .redirected(let host?): .at(host)
        case .streamError(let error):
            switch error.condition {
            // §4.9.3.3: taking the resource back would start an endless fight for it.
            case .conflict, .hostGone, .hostUnknown, .invalidNamespace, .notAuthorized, .unsupportedVersion,
                .unsupportedEncoding, .unsupportedFeature:
                .never
            case .policyViolation, .resourceConstraint, .systemShutdown, .internalServerError: .later
            default: .soon
            }
        case .notAuthenticated(let failure): failure.condition == .temporaryAuthFailure ? .later : .never
        case .bindRefused(let error): error.type == .wait ? .later : .never
        case .registrationRefused(let error):
            error.type == .wait || error.condition == .resourceConstraint ? .later : .never
        case .unexpected, .violation, .malformed, .handledCountTooHigh: .soon
        default: .never
        }
    }
}

extension XMPPPhase {
    fileprivate var openWords: String {
        switch self {
        case .stream: "no features of the server's"
        case .tls: "no TLS"
        case .register: "no answer to the registration"
        case .sasl: "no answer to the login"
        case .bind: "no answer to the binding"
        }
    }
}

extension XMPPConnectionEnd {
    /// The same with shortened texts of the server: thousands of ends are kept, and a server may send long texts.
    var bounded: XMPPConnectionEnd {
        switch self {
        case .webSocket(let text): .webSocket(text.bounded)
        case .streamError(let error): .streamError(error.bounded)
        case .redirected(let host?): host.name.utf8.count > 253 ? .redirected(nil) : self
        case .elsewhere(let place): .elsewhere(place.bounded)
        case .notAuthenticated(let failure):
            .notAuthenticated(XMPPAuthenticationFailure(failure.condition, text: failure.text?.bounded))
        case .tokenRefused(let failure):
            .tokenRefused(XMPPAuthenticationFailure(failure.condition, text: failure.text?.bounded))
        case .tasksRequired(let names): .tasksRequired(names.bounded)
        case .bindRefused(let error): .bindRefused(error.bounded)
        case .sessionRefused(let error): .sessionRefused(error.bounded)
        case .registrationRefused(let error): .registrationRefused(error.bounded)
        case .legacyRefused(let error): .legacyRefused(error.bounded)
        case .foreignServer(let domain): .foreignServer(domain.bounded)
        case .header(let words): .header(words.bounded)
        default: self.boundedOfThisSide
        }
    }

    private var boundedOfThisSide: XMPPConnectionEnd {
        switch self {
        case .noMechanism(.noneShared(let offered)): .noMechanism(.noneShared(offered: offered.bounded))
        case .noMechanism(.notOffered(let name, let offered)): .noMechanism(.notOffered(name, offered: offered.bounded))
        case .noMechanism(.noBinding(let offered)): .noMechanism(.noBinding(offered: offered.bounded))
        case .noMechanism(.bindingStripped(let types)): .noMechanism(.bindingStripped(types.bounded))
        case .serverNotAuthentic(.malformed(let words)): .serverNotAuthentic(.malformed(words.bounded))
        case .serverNotAuthentic(.refused(let words)): .serverNotAuthentic(.refused(words.bounded))
        case .featureMissing(let name): .featureMissing(name.bounded)
        case .featureRequired(let name): .featureRequired(name.bounded)
        case .featureFailed(let words): .featureFailed(words.bounded)
        case .registrationImpossible(.field(let name)): .registrationImpossible(.field(name.bounded))
        case .registrationImpossible(.elsewhere(let place)): .registrationImpossible(.elsewhere(place.bounded))
        case .unexpected(let element, let state): .unexpected(element.bounded, in: state)
        case .violation(let condition, let words): .violation(condition, words.bounded)
        default: self
        }
    }
}

extension StreamError {
    fileprivate var bounded: StreamError {
        var error = self
        error.application = nil
        error.text = error.text?.bounded
        error.language = error.language?.bounded
        error.otherHost = error.otherHost?.bounded
        return error
    }
}

extension StanzaError {
    fileprivate var bounded: StanzaError {
        var error = self
        error.application = nil
        error.text = error.text?.bounded
        error.language = error.language?.bounded
        error.by = error.by?.bounded
        error.address = error.address?.bounded
        return error
    }
}

extension String {
    /// The part that is printed, copied into its own memory.
    fileprivate var bounded: String {
        if self.utf8.count <= OneLine.length { return self }
        // By scalars: a single character may be of any length.
        return String(String.UnicodeScalarView(self.unicodeScalars.prefix(OneLine.length)))
    }
}

extension [String] {
    /// Slightly more names than are printed, so that the text can say that there were more.
    fileprivate var bounded: [String] { self.prefix(32).map(\.bounded) }
}
