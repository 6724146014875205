package import LoopContext
package import Transport

/// What lies between a client and its server.
public struct MQTTTransport: Sendable {
    /// Of a server that has no port given.
    package var defaultPort: UInt16
    /// What two clients of an event loop must have in common to share their layers; `nil` shares nothing.
    package var key: ObjectIdentifier?
    /// The layers between TCP and the client, made once for all clients of an event loop that have the same key.
    package var layers: @Sendable (LoopContext) -> [any ConnectLayer]

    package init(
        defaultPort: UInt16,
        key: ObjectIdentifier?,
        layers: @escaping @Sendable (LoopContext) -> [any ConnectLayer]
    ) {
        self.defaultPort = defaultPort
        self.key = key
        self.layers = layers
    }

    /// MQTT over TCP, in the clear: port 1883.
    public static var tcp: MQTTTransport { MQTTTransport(defaultPort: 1_883, key: nil) { _ in [] } }

    /// MQTT over TLS: port 8883.
    ///
    /// Make it once for all clients that speak it: its files are read here, and the result is shared.
    ///
    /// - Parameter tls: what is trusted, and what is shown.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` with what is wrong with the settings or their files.
    public static func tls(_ tls: MQTTTLS = MQTTTLS()) throws(MQTTClientError) -> MQTTTransport {
        let context = try tls.context()
        return MQTTTransport(defaultPort: 8_883, key: ObjectIdentifier(context)) { [TLSLayer(context, loop: $0)] }
    }

    /// MQTT in a WebSocket, in the clear: port 80.
    ///
    /// - Parameter webSocket: what is asked for.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` with what would break the request.
    public static func webSocket(_ webSocket: MQTTWebSocket = MQTTWebSocket()) throws(MQTTClientError) -> MQTTTransport
    {
        let settings = try webSocket.settings()
        return MQTTTransport(defaultPort: 80, key: nil) { loop in
            [WebSocketLayer(settings, isSecure: false, receive: loop.receive)]
        }
    }

    /// MQTT in a WebSocket over TLS: port 443.
    ///
    /// - Parameters:
    ///   - webSocket: what is asked for.
    ///   - tls: what is trusted, and what is shown.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` with what is wrong with either.
    public static func secureWebSocket(
        _ webSocket: MQTTWebSocket = MQTTWebSocket(),
        tls: MQTTTLS = MQTTTLS()
    ) throws(MQTTClientError) -> MQTTTransport {
        let settings = try webSocket.settings()
        let context = try tls.context()
        return MQTTTransport(defaultPort: 443, key: ObjectIdentifier(context)) { loop in
            [TLSLayer(context, loop: loop), WebSocketLayer(settings, isSecure: true, receive: loop.receive)]
        }
    }
}

/// How a client asks for its WebSocket.
public struct MQTTWebSocket: Hashable, Sendable {
    /// One field of the request.
    public struct Header: Hashable, Sendable {
        /// The field's name.
        public var name: String
        /// Plain text, of one line.
        public var value: String

        /// - Parameters:
        ///   - name: the field's name.
        ///   - value: plain text, of one line.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Path and query, signed ones too.
    public var path: String
    /// The subprotocols offered, the best first; some old servers know `mqttv3.1` only.
    public var subprotocols: [String]
    /// Fields to add to the request; `Host` replaces the server's name.
    public var headers: [Header]

    /// - Parameters:
    ///   - path: path and query.
    ///   - subprotocols: names to offer, at least one.
    ///   - headers: fields to add to the request.
    public init(path: String = "/mqtt", subprotocols: [String] = ["mqtt"], headers: [Header] = []) {
        self.path = path
        self.subprotocols = subprotocols
        self.headers = headers
    }

    func settings() throws(MQTTClientError) -> WebSocketSettings {
        do throws(WebSocketSettings.Problem) {
            let headers = self.headers.map { ($0.name, $0.value) }
            return try WebSocketSettings(path: self.path, subprotocols: self.subprotocols, headers: headers)
        } catch {
            throw .invalid(error.description)
        }
    }
}
