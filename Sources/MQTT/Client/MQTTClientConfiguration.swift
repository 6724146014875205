public import MQTTCodec

/// Where an ``MQTTClient`` connects to, as whom, and how.
public struct MQTTClientConfiguration: Sendable {
    /// A name, an IPv4 or an IPv6 address.
    public var host: String
    /// `nil` is the transport's own: 1883, 8883, 80 or 443.
    public var port: UInt16?
    /// What lies between the client and the server.
    public var transport = MQTTTransport.tcp
    /// The protocol level of the CONNECT.
    public var version = ProtocolVersion.v311
    /// Whether the server forgets an older session of this client.
    ///
    /// Clean Session before 5.0: then nothing survives the connection. With `false` the client sends again what was
    /// under way, as soon as it has a connection to a server that kept the session; the message store is what
    /// remembers it. The first connection of a client begins with an empty store if this is `true`.
    public var cleanStart = true
    /// At most 65,535 bytes, 23 characters in 3.1.
    ///
    /// By default 22 random letters and digits (131 bits). Empty lets the server choose, from 3.1.1 on, before 5.0 with a
    /// clean start only.
    ///
    /// A message store keeps messages under this identifier, also when it is empty and the server gives another one:
    /// clients that share a store need one each. It may be empty with an ``MQTTMemoryStore`` only, and there of one
    /// client at most.
    public var clientID = Self.randomClientID()
    /// User name and password; worked out anew for each connection, off the event loop if a file has to be read.
    public var credentials = MQTTCredentials.none
    /// Asked for whenever a connection begins, instead of ``credentials``.
    ///
    /// On any task, off the event loop; the time it takes counts towards ``MQTTTimeouts/connect``. What it throws is
    /// ``MQTTClientError/noCredentials(_:)``, except an ``MQTTCredentialsError`` that is final.
    public var credentialsProvider: (@Sendable (_ clientID: String) async throws -> MQTTCredentials)?
    /// Enhanced authentication (§4.12); MQTT 5 only.
    public var authentication: MQTTAuthentication?
    /// What the server publishes if the client goes without DISCONNECT.
    public var will: Will?
    /// Seconds after which a silent client sends PINGREQ; 0 is off.
    ///
    /// A server may set another value (MQTT 5).
    public var keepAlive: UInt16 = 60
    /// Seconds that the server keeps the session for behind the connection, 0xFFFFFFFF for ever; MQTT 5 only.
    public var sessionExpiry: UInt32?
    /// Messages at QoS 1 and 2 that the server may send unacknowledged; MQTT 5 only, `nil` for 65,535.
    ///
    /// One more ends the connection with reason 0x93.
    public var receiveMaximum: UInt16?
    /// Bytes of a whole packet that is accepted; a larger one ends the connection with reason 0x95.
    public var maximumPacketSize: UInt32?
    /// The largest topic alias that the server may use; MQTT 5 only.
    public var topicAliasMaximum: UInt16 = 0
    /// Topics of ours that go by an alias at once, at most: on each connection their names are sent once (§3.3.2.3.4).
    ///
    /// 0 uses none. The server's own maximum may be lower; beyond it the topic that was not used for the longest time
    /// gives its alias away. MQTT 5 only.
    public var outboundTopicAliases: UInt16 = 0
    /// Asks for response information in the CONNACK (§3.1.2.11.6); MQTT 5 only.
    public var requestsResponseInformation = false
    /// `false` asks the server to leave out reason strings and user properties (§3.1.2.11.7); MQTT 5 only.
    public var requestsProblemInformation = true
    /// Of the CONNECT, in this order; MQTT 5 only.
    public var userProperties: [UserProperty] = []
    /// After how long a message that is not acknowledged is sent again on the same connection, with DUP.
    ///
    /// `nil` is never, which is what MQTT 5 demands ([MQTT-4.4.0-1]) and 3.1.1 expects; MQTT 5 is never told otherwise.
    public var repeatsAfter: Duration?
    /// Whether what would break a rule is refused before it is sent; `false` sends it as it is.
    public var validates = true
    /// Bytes that go out in the place of CONNECT, right or wrong: for those who test servers.
    ///
    /// What else is said here of the CONNECT (identifier, credentials, will, properties, authentication) is then left
    /// out, and ``version`` says how answers are read. `connect` returns when a CONNACK accepts, as ever. Empty bytes send
    /// nothing, and leave all to ``MQTTClient/sendRaw(_:)``.
    public var rawConnect: [UInt8]?
    /// When waiting ends.
    public var timeouts = MQTTTimeouts()
    /// How much is kept.
    public var limits = MQTTClientLimits()
    /// When a message that was received is acknowledged.
    public var acknowledgement = MQTTAcknowledgement.whenTaken
    /// Closures that watch or meddle.
    public var hooks = MQTTClientHooks()

    /// A configuration with all defaults.
    ///
    /// - Parameters:
    ///   - host: a name or an address.
    ///   - port: `nil` is the transport's own.
    public init(host: String = "localhost", port: UInt16? = nil) {
        self.host = host
        self.port = port
    }

    private static func randomClientID() -> String {
        // What every server has to take: 1 to 23 of these (3.1.1 [MQTT-3.1.3-5]).
        let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        return String((0..<22).compactMap { _ in letters.randomElement() })
    }
}

/// When waiting ends.
public struct MQTTTimeouts: Hashable, Sendable {
    /// From the call of `connect` to CONNACK.
    public var connect = Duration.seconds(10)
    /// From the write of a message at QoS 1 or 2 to its last acknowledgement; of a request, to its answer.
    public var acknowledgement = Duration.seconds(30)
    /// From PINGREQ to PINGRESP; the keep-alive itself if that is shorter.
    public var ping = Duration.seconds(10)
    /// From DISCONNECT to the server's FIN.
    public var disconnect = Duration.seconds(5)

    /// The defaults.
    public init() {}
}

/// How much a client keeps.
public struct MQTTClientLimits: Hashable, Sendable {
    /// Messages at QoS 1 and 2 in flight at most, 1...65,535; a server's receive maximum may lower it.
    public var window = 16
    /// Messages at QoS 1 and 2 that wait or are in flight.
    public var messages = 1_024
    /// Bytes of topics and payloads of those.
    public var bytes = 64 << 20
    /// Messages received that nobody has taken; when there are so many, the socket is not read.
    public var inbox = 256
    /// Bytes of topics and payloads of those, and 128 for each.
    public var inboxBytes = 16 << 20

    /// The defaults.
    public init() {}
}

/// When a message at QoS 1 or 2 is acknowledged: PUBACK or PUBREC.
public enum MQTTAcknowledgement: Hashable, Sendable {
    /// When it comes, whether somebody reads it or not.
    case onReceipt
    /// When a task takes it out of ``MQTTClient/messages``.
    case whenTaken
    /// When ``MQTTReceived/acknowledge(_:)`` is called.
    case manual
}
