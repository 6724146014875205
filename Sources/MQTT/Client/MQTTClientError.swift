public import MQTTCodec

/// The error of a call to an ``MQTTClient``.
public enum MQTTClientError: Error, Hashable, Sendable {
    /// An invalid argument or configuration, with the reason. Nothing was sent.
    case invalid(String)
    /// The server's CONNACK does not allow this (§3.2.2.3). Nothing was sent on this connection.
    case notAllowed(ReasonCode)
    /// `connect` on a client that is connected or connecting.
    case alreadyConnected
    /// The call needs a connection.
    case notConnected
    /// No connection could be opened to send CONNECT on.
    case noConnection(MQTTConnectFailure)
    /// No credentials for CONNECT this time; a retry may succeed.
    ///
    /// A token file is missing, unreadable or still empty, or the provider failed.
    case noCredentials(String)
    /// CONNACK refused.
    case refused(MQTTRefusal)
    /// The server's data failed the check of enhanced authentication, for this reason (§4.12).
    case notAuthenticated(String)
    /// No answer in time.
    case timedOut(MQTTAwaited)
    /// The server rejected a message (PUBACK, PUBREC or PUBCOMP from 0x80 on).
    case rejected(MQTTPublishResult)
    /// The configured limit of waiting messages or bytes is reached.
    case storeFull
    /// The message store failed, in its own words.
    case storeFailed(String)
    /// The message expired before it could be sent (§3.3.2.3.3).
    case expired
    /// The server no longer has the session, so the message's result is unknown ([MQTT-3.2.2-5]).
    case sessionLost
    /// The connection was lost before the answer came.
    case connectionLost(MQTTConnectionLoss)
    /// `disconnect` was called.
    case disconnected
    /// The waiting task was cancelled.
    case cancelled
    /// The client was shut down.
    case shutDown
}

extension MQTTClientError {
    /// Errors of strict validation, for packets that MQTT forbids.
    static func forbidden(_ problem: PacketProblem) -> Self {
        switch problem {
        case .topic(let error): .invalid("the topic is wrong: \(error.words)")
        case .filter(let error): .invalid("a topic filter is wrong: \(error.words)")
        default: .invalid(problem.words)
        }
    }
}

/// The answer that timed out.
public enum MQTTAwaited: String, Hashable, Sendable {
    /// The answer to CONNECT.
    case connack = "CONNACK"
    /// The acknowledgement of a message.
    case acknowledgement = "an acknowledgement"
    /// The answer to SUBSCRIBE.
    case suback = "SUBACK"
    /// The answer to UNSUBSCRIBE.
    case unsuback = "UNSUBACK"
    /// The end of a re-authentication.
    case authentication = "the end of the authentication"
}

/// The reason why there was no connection.
public struct MQTTConnectFailure: Hashable, Sendable {
    /// One word, for example `resolve`, `refused`, `timeout`, `unreachable`, `reset`, `tls`, `websocket`,
    /// `descriptors` or `transport` (an error of ``MQTTTransport/custom(defaultPort:connect:)``).
    public var kind: String
    /// One line with host, port and reason.
    public var words: String

    package init(kind: String, words: String) {
        self.kind = kind
        self.words = words
    }
}

/// The contents of a CONNACK that refused the connection.
public struct MQTTRefusal: Hashable, Sendable {
    /// The code on the wire: a return code of 3.1 and 3.1.1, a reason code of 5.0.
    public var code: UInt8
    /// The version of the code: 3.1.1 if a server of that version refuses MQTT 5.
    public var version: ProtocolVersion
    /// Reason string, server reference, user properties; MQTT 5 only.
    public var properties: Properties

    package init(code: UInt8, version: ProtocolVersion, properties: Properties = Properties()) {
        self.code = code
        self.version = version
        self.properties = properties
    }

    /// The reason code of an MQTT 5 server; `nil` before 5.0.
    public var reason: ReasonCode? { self.version == .v5 ? ReasonCode(rawValue: self.code) : nil }
}

/// The reason why a connection was lost.
public enum MQTTConnectionLoss: Hashable, Sendable {
    /// The server closed without DISCONNECT.
    case closedByServer
    /// The server sent DISCONNECT, with these properties; MQTT 5 only.
    case disconnected(ReasonCode, Properties)
    /// The server broke a rule: our reason code and a description.
    case protocolError(ReasonCode, String)
    /// No PINGRESP in time.
    case pingTimedOut
    /// The socket failed with this error number.
    case failed(errno: Int32)
    /// Closed by this side.
    case aborted
}

extension MQTTClientError {
    /// The server's properties in CONNACK, DISCONNECT or the acknowledgement that rejected; MQTT 5 only.
    public var properties: Properties {
        switch self {
        case .refused(let refusal): refusal.properties
        case .rejected(let result): result.properties
        case .connectionLost(.disconnected(_, let properties)): properties
        default: Properties()
        }
    }

    /// The server's reason string (§3.2.2.3.9, §3.14.2.2.3); MQTT 5 only.
    public var reasonString: String? { self.properties.reasonString }

    /// Another server to use, from the Server Reference property (§4.11); MQTT 5 only.
    public var serverReference: String? { self.properties.serverReference }
}

extension MQTTClientError: CustomStringConvertible {
    /// One line.
    public var description: String {
        switch self {
        case .invalid(let words): words
        case .notAllowed(let reason): "the server does not take it: \(reason.name)"
        case .alreadyConnected: "connected already"
        case .notConnected: "not connected"
        case .noConnection(let failure): failure.words
        case .noCredentials(let words): words
        case .refused(let refusal): "the server refused the connection: \(refusal)"
        case .notAuthenticated(let words): words
        case .timedOut(let awaited): "\(awaited.rawValue) did not come in time"
        case .rejected(let result): "the server refused the message: \(Self.words(result.reason, result.properties))"
        case .storeFull: "the message store is full"
        case .storeFailed(let words): "the message store failed: \(words)"
        case .expired: "the message expired before it was sent"
        case .sessionLost: "the server no longer has the session"
        case .connectionLost(let loss): "the connection was lost: \(loss)"
        case .disconnected: "the client has disconnected"
        case .cancelled: "the task was cancelled"
        case .shutDown: "the client is shut down"
        }
    }

    fileprivate static func words(_ reason: ReasonCode, _ properties: Properties) -> String {
        properties.reasonString.map { "\(reason.name) (\($0))" } ?? reason.name
    }
}

extension MQTTRefusal: CustomStringConvertible {
    /// The standard's name of the code, and the server's reason string if there is one.
    public var description: String {
        if let reason = self.reason { return MQTTClientError.words(reason, self.properties) }
        return ConnectReturnCode(rawValue: self.code)?.name ?? "return code \(self.code)"
    }
}

extension MQTTConnectionLoss: CustomStringConvertible {
    /// One line.
    public var description: String {
        switch self {
        case .closedByServer: "the server closed it"
        case .disconnected(let reason, let properties): "DISCONNECT, \(MQTTClientError.words(reason, properties))"
        case .protocolError(_, let words): words
        case .pingTimedOut: "PINGRESP did not come in time"
        case .failed(let code): "socket error \(code)"
        case .aborted: "closed by this side"
        }
    }
}
