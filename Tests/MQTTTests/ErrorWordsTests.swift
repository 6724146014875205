import MQTT
import MQTTCodec
import Testing
import TestSupport

@Suite("Errors of the MQTT client in words")
struct ErrorWordsTests {
    private static let losses: [MQTTConnectionLoss] = [
        .closedByServer, .disconnected(.sessionTakenOver, Properties()), .protocolError(.malformedPacket, "two words"),
        .pingTimedOut, .failed(errno: 104), .aborted,
    ]
    private static let errors: [MQTTClientError] =
        [
            .invalid("two words"), .notAllowed(.qosNotSupported), .alreadyConnected, .notConnected,
            .noConnection(MQTTConnectFailure(kind: "refused", words: "two words")), .noCredentials("two words"),
            .refused(MQTTRefusal(code: 1, version: .v311)), .refused(MQTTRefusal(code: 9, version: .v311)),
            .refused(MQTTRefusal(code: 0x84, version: .v5)), .notAuthenticated("two words"), .timedOut(.connack),
            .timedOut(.acknowledgement), .timedOut(.suback), .timedOut(.unsuback), .timedOut(.authentication),
            .rejected(MQTTPublishResult(reason: .quotaExceeded)), .storeFull, .storeFailed("two words"), .expired,
            .sessionLost, .disconnected, .cancelled, .shutDown,
        ] + losses.map { .connectionLost($0) }
    private static let storeErrors: [MQTTStoreError] = [
        .tooManyMessages(limit: 2), .full(limit: 2), .duplicate(7), .unreadableProperties,
        .cannotOpen(path: "a.db", reason: "no file"), .readOnly(path: "a.db"), .inUse(path: "a.db"),
        .foreign(path: "a.db"), .newer(path: "a.db"), .corrupt(path: "a.db", reason: "no page"),
        .diskFull(path: "a.db"), .closed, .failed(path: "a.db", reason: "no page"),
    ]
    private static let credentialsErrors: [MQTTCredentialsError] = [
        .tooLong(.userName, bytes: 70_000), .tooLong(.password, bytes: 70_000), .unreadable(path: "token", errno: 2),
        .empty(path: "token"), .tooLarge(path: "token", limit: 9), .clientID("c", "is too short"), .keepAlive(0),
        .rootTopic("a/b"),
    ]
    private static let all: [any Error] =
        errors.map { $0 as any Error } + storeErrors.map { $0 as any Error } + credentialsErrors.map { $0 as any Error }

    /// Does not compile with a case that the lists above lack.
    private static func isListed(_ error: any Error) -> Bool {
        switch error {
        case let error as MQTTClientError:
            switch error {
            case .connectionLost(let loss):
                switch loss {
                case .closedByServer, .disconnected, .protocolError, .pingTimedOut, .failed, .aborted: true
                }
            case .timedOut(let awaited):
                switch awaited {
                case .connack, .acknowledgement, .suback, .unsuback, .authentication: true
                }
            case .invalid, .notAllowed, .alreadyConnected, .notConnected, .noConnection, .noCredentials, .refused,
                .notAuthenticated, .rejected, .storeFull, .storeFailed, .expired, .sessionLost, .disconnected,
                .cancelled, .shutDown:
                true
            }
        case let error as MQTTStoreError:
            switch error {
            case .tooManyMessages, .full, .duplicate, .unreadableProperties, .cannotOpen, .readOnly, .inUse, .foreign,
                .newer, .corrupt, .diskFull, .closed, .failed:
                true
            }
        case let error as MQTTCredentialsError:
            switch error {
            case .tooLong, .unreadable, .empty, .tooLarge, .clientID, .keepAlive, .rootTopic: true
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
