import SASL
import TestSupport
import Testing
import Transport
import XMPP
import XMPPCodec

@Suite("Errors of the XMPP client in words")
struct ErrorWordsTests {
    private static let refusal = StanzaError(.forbidden, text: "not here")
    private static let problems: [XMPPRegistrationProblem] = [.field("captcha"), .elsewhere("a page"), .nothing]
    private static let reasons: [ConnectError.Reason] = [
        .resolve("no address"), .refused, .timedOut(.tls), .unreachable, .reset, .webSocket(.closed),
        .localPortsExhausted, .descriptorsExhausted, .sourceAddress, .cancelled, .other(errno: 22), .tls(.closed),
    ]
    private static let ends: [XMPPConnectionEnd] =
        [
            .answered, .closedByPeer, .lost, .failed(104), .pingTimedOut, .closingTimedOut, .aborted,
            .insecure(.closed), .webSocket("two words"), .streamError(StreamError(.conflict)), .redirected(nil),
            .redirected(XMPPHost(name: "a", port: 1)), .elsewhere("a place"),
            .notAuthenticated(XMPPAuthenticationFailure(.accountDisabled)),
            .tokenRefused(XMPPAuthenticationFailure(.credentialsExpired)), .tasksRequired(["TOTP"]),
            .tasksRequired([]), .bindRefused(refusal),
            .sessionRefused(refusal), .registrationRefused(refusal), .legacyRefused(refusal), .tlsRefused,
            .foreignServer("a"), .header("two words"), .noVersion, .tlsNotOffered, .tlsRequired, .plaintextInjected,
            .passwordInClear, .noMechanism(.nothingOffered), .serverNotAuthentic(.serverNotVerified),
            .bindUnreadable, .featureMissing("bind"), .featureRequired("compression"), .featureFailed("two words"),
            .tooManyRedirects(3), .malformed(.tag), .violation(.badFormat, "two words"),
            .handledCountTooHigh(2, sent: 1), .unsendable(.name("1")),
        ] + XMPPPhase.allCases.map { .timedOut($0) } + reasons.map { .notConnected($0) }
        + problems.map { .registrationImpossible($0) } + XMPPState.allCases.map { .unexpected("<a>", in: $0) }
    private static let clientEnd = XMPPClientEnd(.lost)
    private static let clientErrors: [XMPPClientError] = [
        .invalid("two words"), .alreadyConnected, .notConnected, .noConnection(clientEnd), .ended(clientEnd),
        .refused(refusal), .timedOut, .disconnected, .cancelled,
    ]
    private static let requestErrors: [XMPPRequestError] = [
        .refused(refusal), .timedOut, .connectionLost, .notSent, .invalid("two words"),
    ]
    private static let all: [any Error] =
        ends.map { $0 as any Error } + problems.map { $0 as any Error } + clientErrors.map { $0 as any Error }
        + requestErrors.map { $0 as any Error }

    /// Does not compile with a case that the lists above lack.
    private static func isListed(_ error: any Error) -> Bool {
        switch error {
        case let error as XMPPConnectionEnd:
            switch error {
            case .answered, .closedByPeer, .lost, .failed, .timedOut, .pingTimedOut, .closingTimedOut, .aborted,
                .insecure, .notConnected, .webSocket, .streamError, .redirected, .elsewhere, .notAuthenticated,
                .tokenRefused, .tasksRequired, .bindRefused, .sessionRefused, .registrationRefused, .legacyRefused,
                .tlsRefused, .foreignServer,
                .header, .noVersion, .tlsNotOffered, .tlsRequired, .plaintextInjected, .passwordInClear,
                .noMechanism, .serverNotAuthentic, .bindUnreadable, .featureMissing, .featureRequired,
                .featureFailed, .registrationImpossible, .tooManyRedirects, .malformed, .unexpected, .violation,
                .handledCountTooHigh, .unsendable:
                true
            }
        case let error as XMPPRegistrationProblem:
            switch error {
            case .field, .elsewhere, .nothing: true
            }
        case let error as XMPPClientError:
            switch error {
            case .invalid, .alreadyConnected, .notConnected, .noConnection, .ended, .refused, .timedOut,
                .dropped, .disconnected, .cancelled:
                true
            }
        case let error as XMPPRequestError:
            switch error {
            case .refused, .timedOut, .connectionLost, .notSent, .invalid, .dropped: true
            }
        default: false
        }
    }

    @Test("every case is words for people", arguments: all)
    func words(_ error: any Error) {
        #expect(Self.isListed(error))
        #expect(Wording.swift(in: "\(error)") == nil, "\(error)")
    }
}
