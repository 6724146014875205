package import LoopContext
package import Transport

/// The layers between a client and its server.
public struct MQTTTransport: Sendable {
    /// The port of a server without a configured one.
    package var defaultPort: UInt16
    /// Clients of an event loop with equal keys share their layers; with `nil` they share none.
    package var key: ObjectIdentifier?
    /// The layers between TCP and the client, created once for all clients of an event loop with the same key.
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

    /// MQTT over plain TCP: port 1883.
    public static var tcp: MQTTTransport { MQTTTransport(defaultPort: 1_883, key: nil) { _ in [] } }

    /// MQTT over TLS: port 8883.
    ///
    /// Create it once for all clients that use it: its files are read here, and the result is shared.
    ///
    /// - Parameter tls: trusted authorities and the client's certificate.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` with the error in the settings or their files.
    public static func tls(_ tls: MQTTTLS = MQTTTLS()) throws(MQTTClientError) -> MQTTTransport {
        let context = try tls.context()
        return MQTTTransport(defaultPort: 8_883, key: ObjectIdentifier(context)) { [TLSLayer(context, loop: $0)] }
    }

    /// MQTT over a plain WebSocket: port 80.
    ///
    /// - Parameter webSocket: path, subprotocols and header fields of the request.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` if a value would break the request.
    public static func webSocket(_ webSocket: MQTTWebSocket = MQTTWebSocket()) throws(MQTTClientError) -> MQTTTransport
    {
        let settings = try webSocket.settings()
        return MQTTTransport(defaultPort: 80, key: nil) { loop in
            [WebSocketLayer(settings, isSecure: false, receive: loop.receive)]
        }
    }

    /// MQTT over a WebSocket and TLS: port 443.
    ///
    /// - Parameters:
    ///   - webSocket: path, subprotocols and header fields of the request.
    ///   - tls: trusted authorities and the client's certificate.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` with the error in either.
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

/// The request of a client's WebSocket.
public struct MQTTWebSocket: Hashable, Sendable {
    /// One header field of the request.
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

    /// Path and query, including signed queries.
    public var path: String
    /// The offered subprotocols, most preferred first; some old servers know `mqttv3.1` only.
    public var subprotocols: [String]
    /// Header fields to add to the request; `Host` replaces the server's name.
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
