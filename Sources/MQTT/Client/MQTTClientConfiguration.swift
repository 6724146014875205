public import MQTTCodec

/// Server, identity and options of an ``MQTTClient``.
public struct MQTTClientConfiguration: Sendable {
    /// A name, an IPv4 or an IPv6 address.
    public var host: String
    /// `nil` uses the transport's default port: 1883, 8883, 80 or 443.
    public var port: UInt16?
    /// The layers between client and server.
    public var transport = MQTTTransport.tcp
    /// The address families to use, and the one that is tried first.
    ///
    /// The addresses of a name compete (RFC 8305): 250 ms after an attempt, or when it has failed, the next one starts
    /// as well. The first connection is used, and the others are closed. A transport of the application's own
    /// (``MQTTTransport/custom(defaultPort:connect:)``) gets the name instead.
    public var addressPreference = MQTTAddressPreference.ipv6First
    /// The protocol level of the CONNECT.
    public var version = ProtocolVersion.v311
    /// Whether the server discards an older session of this client.
    ///
    /// Clean Session before 5.0: then nothing survives the connection. With `false` the client sends messages in flight
    /// again once it connects to a server that kept the session; the message store keeps them. With `true` the client's
    /// first connection empties the store.
    public var cleanStart = true
    /// At most 65,535 bytes, 23 characters in 3.1.
    ///
    /// By default 22 random letters and digits (131 bits). With an empty identifier the server chooses one: from 3.1.1
    /// on, and before 5.0 with a clean start only.
    ///
    /// A message store uses this identifier as its key, even if it is empty and the server assigns another one: clients
    /// that share a store need different ones. It may be empty only with an ``MQTTMemoryStore``, and there for one
    /// client at most.
    public var clientID = Self.randomClientID()
    /// User name and password; computed for each connection, off the event loop if a file has to be read.
    public var credentials = MQTTCredentials.none
    /// Called before each connection, instead of ``credentials``.
    ///
    /// Runs on any task, off the event loop; its time counts towards ``MQTTTimeouts/connect``. An error that it throws
    /// becomes ``MQTTClientError/noCredentials(_:)``, except an ``MQTTCredentialsError`` that is final.
    public var credentialsProvider: (@Sendable (_ clientID: String) async throws -> MQTTCredentials)? {
        get { self.provider?.value }
        set { self.provider = newValue.map { SharedValue($0) } }
    }
    /// Enhanced authentication (§4.12); MQTT 5 only.
    public var authentication: MQTTAuthentication? {
        get { self.sharedAuthentication?.value }
        set { self.sharedAuthentication = newValue.map { SharedValue($0) } }
    }
    /// The message that the server publishes if the client's connection ends without DISCONNECT.
    public var will: Will?
    /// Seconds after which an idle client sends PINGREQ; 0 is off.
    ///
    /// A server may set another value (MQTT 5).
    public var keepAlive: UInt16 = 60
    /// The largest part of the keep-alive, 0...1, by which a PINGREQ is early; each time a random part of it.
    ///
    /// Thousands of clients that connected together then do not send PINGREQ together. It is never later than the
    /// keep-alive, and at least one second after the last packet. 0 sends it when the keep-alive has passed.
    public var keepAliveJitter = 0.0
    /// Seconds for which the server keeps the session after the connection, 0xFFFFFFFF for ever; MQTT 5 only.
    public var sessionExpiry: UInt32?
    /// Unacknowledged messages at QoS 1 and 2 that the server may have in flight; MQTT 5 only, `nil` for 65,535.
    ///
    /// One more message ends the connection with reason 0x93.
    public var receiveMaximum: UInt16?
    /// The largest accepted packet in bytes; `nil`: 1 MiB, always 512 KiB for CONNACK; a larger one is refused with 0x95.
    public var maximumPacketSize: UInt32?
    /// The largest topic alias that the server may use; MQTT 5 only.
    public var topicAliasMaximum: UInt16 = 0
    /// Topics of ours with an alias at one time, at most: each connection sends their names once (§3.3.2.3.4).
    ///
    /// 0 uses none. The server's own maximum may be lower. Beyond it, a new topic takes the alias of the least recently
    /// used one. MQTT 5 only.
    public var outboundTopicAliases: UInt16 = 0
    /// Asks for response information in the CONNACK (§3.1.2.11.6); MQTT 5 only.
    public var requestsResponseInformation = false
    /// `false` asks the server to leave out reason strings and user properties (§3.1.2.11.7); MQTT 5 only.
    public var requestsProblemInformation = true
    /// User properties of the CONNECT, in this order; MQTT 5 only.
    public var userProperties: [UserProperty] = []
    /// Time after which an unacknowledged message is sent again on the same connection, with DUP.
    ///
    /// `nil` is never, as MQTT 5 requires ([MQTT-4.4.0-1]) and 3.1.1 expects; in MQTT 5 the value has no effect.
    public var repeatsAfter: Duration?
    /// Whether the client refuses to send packets that break a rule; `false` sends them unchanged.
    public var validates = true
    /// Raw bytes to send in place of CONNECT, valid or not, for tests of servers.
    ///
    /// The CONNECT's other settings (identifier, credentials, will, properties, authentication) are then not sent, and
    /// ``version`` selects the format of answers. `connect` still returns when a CONNACK accepts. With empty bytes
    /// nothing is sent, and the caller sends everything with ``MQTTClient/sendRaw(_:)``.
    public var rawConnect: [UInt8]?
    /// Timeouts of the client's calls.
    public var timeouts = MQTTTimeouts()
    /// Bounds on the client's memory.
    public var limits = MQTTClientLimits()
    /// The time at which a received message is acknowledged.
    public var acknowledgement = MQTTAcknowledgement.whenTaken
    /// Closures that observe or change the packet flow.
    public var hooks: MQTTClientHooks {
        get { self.sharedHooks?.value ?? MQTTClientHooks() }
        set { self.sharedHooks = SharedValue(newValue) }
    }

    // Closures cannot be compared: copies of a configuration share them until they are set again.
    var provider: SharedValue<@Sendable (_ clientID: String) async throws -> MQTTCredentials>?
    var sharedAuthentication: SharedValue<MQTTAuthentication>?
    var sharedHooks: SharedValue<MQTTClientHooks>?

    /// A configuration with all defaults.
    ///
    /// - Parameters:
    ///   - host: a name or an address.
    ///   - port: `nil` uses the transport's default port.
    public init(host: String = "localhost", port: UInt16? = nil) {
        self.host = host
        self.port = port
    }

    private static func randomClientID() -> String {
        // Every server must accept 1 to 23 of these characters (3.1.1 [MQTT-3.1.3-5]).
        let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        return String((0..<22).compactMap { _ in letters.randomElement() })
    }
}

/// The address families of an ``MQTTClient``, and the one that is tried first.
public enum MQTTAddressPreference: Hashable, Sendable, CaseIterable {
    /// Both, IPv6 first (RFC 8305).
    case ipv6First
    /// Both, IPv4 first.
    case ipv4First
    /// IPv4 alone: a host without such an address cannot be connected to.
    case ipv4Only
    /// IPv6 alone: a host without such an address cannot be connected to.
    case ipv6Only
}

/// Timeouts of the client's calls.
public struct MQTTTimeouts: Hashable, Sendable {
    /// The time from the call of `connect` to CONNACK.
    public var connect = Duration.seconds(10)
    /// The time from the write of a message at QoS 1 or 2 to its last acknowledgement, or from a request to its answer.
    public var acknowledgement = Duration.seconds(30)
    /// The time from PINGREQ to PINGRESP; the keep-alive itself if that is shorter.
    public var ping = Duration.seconds(10)
    /// The time from DISCONNECT to the server's FIN.
    public var disconnect = Duration.seconds(5)

    /// The defaults.
    public init() {}
}

/// Bounds on the client's memory.
public struct MQTTClientLimits: Hashable, Sendable {
    /// Messages at QoS 1 and 2 in flight at most, 1...65,535; a server's receive maximum may lower it.
    public var window = 16
    /// Messages at QoS 1 and 2 that wait or are in flight.
    public var messages = 1_024
    /// Bytes of topics and payloads of the messages that wait or are in flight.
    public var bytes = 64 << 20
    /// Received messages that no task has taken; at this number the client stops reading the socket.
    public var inbox = 256
    /// Bytes of topics and payloads of received messages, plus 128 for each.
    public var inboxBytes = 16 << 20

    /// The defaults.
    public init() {}
}

/// The time at which PUBACK or PUBREC acknowledges a message at QoS 1 or 2.
public enum MQTTAcknowledgement: Hashable, Sendable {
    /// The message is acknowledged on arrival, even if no task reads it.
    case onReceipt
    /// When a task takes it out of ``MQTTClient/messages``.
    case whenTaken
    /// When ``MQTTReceived/acknowledge(_:)`` is called.
    case manual
}
