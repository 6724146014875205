import NIOCore
import NIOPosix
import NIOSSL
import Testing
import TestSupport
import Transport

@Suite("Errors of the transport in words")
struct ErrorWordsTests {
    private static let target = Target(host: "127.0.0.1", port: 1)
    private static let tls: [TLSFailure] = [
        .unknownIssuer("an issuer"), .wrongName(wanted: "a name", names: []), .expired("a subject", since: "a day"),
        .notYetValid("a subject", until: "a day"), .otherCertificate("two words"), .pinMismatch("two words"),
        .clientCertificateRequired, .clientCertificateRefused("two words"), .clientCertificateFile("two words"),
        .preSharedKeyRefused, .noSharedVersion, .noSharedCipher, .noSharedApplicationProtocol, .notTLS, .closed,
        .handshake("two words"),
    ]
    private static let webSocket: [WebSocketFailure] = [
        .status(404), .notHTTP, .headTooLarge, .noUpgrade, .wrongAccept, .noSubprotocol(offered: ["mqtt"]),
        .wrongSubprotocol("x"), .extensions("x"), .closed,
    ]
    private static let phases: [ConnectError.Phase] = [.dns, .tcp, .proxy, .tls, .webSocket]
    private static let reasons: [ConnectError.Reason] =
        [
            .resolve("no address"), .refused, .unreachable, .reset, .localPortsExhausted, .descriptorsExhausted,
            .sourceAddress, .cancelled, .other(errno: 22),
        ] + phases.map { .timedOut($0) } + webSocket.map { .webSocket($0) } + tls.map { .tls($0) }
    private static let settings: [TLSSettingsError] = [
        .unreadable(path: "a.pem", "no file"), .malformed(path: "a.pem", "key"), .isDER(path: "a.pem"),
        .isPEM("a.der"), .certificateWithoutKey, .keyWithoutCertificate, .serverWithoutCertificate,
        .keyMismatch(certificate: "a.pem", key: "b.pem"), .numberInOnePathOnly, .pskKey("is empty"), .pskIdentity,
        .pskWithCertificates, .versions("1.2"), .version("9"), .cipher("no cipher"), .applicationProtocol(""),
        .serverName(""), .pin("no pin"), .noPins, .keyLog(path: "a.log", "no file"), .refused("two words"),
    ]
    private static let headers: [ProxyHeader.Problem] = [
        .noHeader, .lineTooLong, .lineEnd, .line, .version(1), .command(2), .family(3), .addressesCut(4), .tooLong(5),
    ]
    private static let requests: [WebSocketSettings.Problem] = [
        .path("x"), .host("x"), .subprotocol("x"), .repeated("x"), .headerName("x"), .headerValue("x"), .reserved("x"),
        .tooLong,
    ]
    private static let heads: [WebSocketHead.Problem] = [.notHTTP, .tooLarge]
    private static let messages: [DNSMessageError] = [.truncated, .name, .notAnAnswer, .questions, .data]
    private static let rules: [WebSocketViolation.Rule] = [
        .reservedBits, .reservedOpcode(3), .fragmentedControl, .longControl, .masked, .unmasked, .length, .fragments,
        .text, .binary, .messageTooLarge(limit: 9), .closeCode, .closeReason,
    ]
    private static let all: [any Error] =
        reasons.flatMap { [$0 as any Error, ConnectError($0, target: target)] } + tls.map { $0 as any Error }
        + webSocket.map { $0 as any Error } + settings.map { $0 as any Error } + headers.map { $0 as any Error }
        + requests.map { $0 as any Error } + heads.map { $0 as any Error } + messages.map { $0 as any Error }
        + rules.map { WebSocketViolation($0) as any Error } + [LookupFailure("no address")]

    /// Does not compile with a case that the lists above lack.
    private static func isListed(_ error: any Error) -> Bool {
        switch error {
        case let error as ConnectError.Reason: self.isListed(error)
        case let error as TLSFailure: self.isListed(error)
        case let error as TLSSettingsError: self.isListed(error)
        case let error as WebSocketFailure:
            switch error {
            case .status, .notHTTP, .headTooLarge, .noUpgrade, .wrongAccept, .noSubprotocol, .wrongSubprotocol,
                .extensions, .closed:
                true
            }
        case let error as ProxyHeader.Problem:
            switch error {
            case .noHeader, .lineTooLong, .lineEnd, .line, .version, .command, .family, .addressesCut, .tooLong: true
            }
        case let error as WebSocketSettings.Problem:
            switch error {
            case .path, .host, .subprotocol, .repeated, .headerName, .headerValue, .reserved, .tooLong: true
            }
        case let error as WebSocketHead.Problem:
            switch error {
            case .notHTTP, .tooLarge: true
            }
        case let error as DNSMessageError:
            switch error {
            case .truncated, .name, .notAnAnswer, .questions, .data: true
            }
        case let error as WebSocketViolation:
            switch error.rule {
            case .reservedBits, .reservedOpcode, .fragmentedControl, .longControl, .masked, .unmasked, .length,
                .fragments, .text, .binary, .messageTooLarge, .closeCode, .closeReason:
                true
            }
        default: error is ConnectError || error is LookupFailure
        }
    }

    private static func isListed(_ reason: ConnectError.Reason) -> Bool {
        switch reason {
        case .timedOut(let phase):
            switch phase {
            case .dns, .tcp, .proxy, .tls, .webSocket: true
            }
        case .resolve, .refused, .unreachable, .reset, .webSocket, .localPortsExhausted, .descriptorsExhausted,
            .sourceAddress, .cancelled, .other, .tls:
            true
        }
    }

    private static func isListed(_ failure: TLSFailure) -> Bool {
        switch failure {
        case .unknownIssuer, .wrongName, .expired, .notYetValid, .otherCertificate, .pinMismatch,
            .clientCertificateRequired, .clientCertificateRefused, .clientCertificateFile, .preSharedKeyRefused,
            .noSharedVersion, .noSharedCipher, .noSharedApplicationProtocol, .notTLS, .closed, .handshake:
            true
        }
    }

    private static func isListed(_ error: TLSSettingsError) -> Bool {
        switch error {
        case .unreadable, .malformed, .isDER, .isPEM, .certificateWithoutKey, .keyWithoutCertificate,
            .serverWithoutCertificate, .keyMismatch, .numberInOnePathOnly, .pskKey, .pskIdentity,
            .pskWithCertificates, .versions, .version, .cipher, .applicationProtocol, .serverName, .pin, .noPins,
            .keyLog, .refused:
            true
        }
    }

    @Test("every case is words for people", arguments: all)
    func words(_ error: any Error) {
        #expect(Self.isListed(error))
        #expect(Wording.swift(in: "\(error)") == nil, "\(error)")
    }

    @Test(
        "an error of the TLS library is its reason, or its name in words",
        arguments: [
            (NIOSSLError.writeDuringTLSShutdown, "write during TLS shutdown"),
            (NIOSSLError.failedToLoadPrivateKey, "failed to load private key"),
            (NIOSSLError.handshakeFailed(.syscallError), "syscall error"),
            (BoringSSLError.sslError([]), "no reason given"),
        ] as [(any Error, String)]
    )
    func library(_ error: any Error, _ words: String) {
        #expect(TLSFailure.words(ofLibrary: error) == words)
    }

    @Test(
        "an error of the system or of NIO names no function and no type",
        arguments: [
            (IOError(errnoCode: 98, reason: "bind(descriptor:ptr:bytes:)"), "Address already in use (errno 98)"),
            (NIOThreadPoolError.ThreadPoolInactive(), "the program is stopping"),
        ] as [(any Error, String)]
    )
    func system(_ error: any Error, _ words: String) {
        #expect(SystemError.words(error) == words)
    }
}
