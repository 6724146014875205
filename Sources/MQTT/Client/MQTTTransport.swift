package import LoopContext
public import NIOCore
package import Transport

/// The layers between a client and its server.
public struct MQTTTransport: Sendable {
    /// The port of a server without a configured one.
    package var defaultPort: UInt16
    /// Clients of an event loop with equal keys share their layers; with `nil` they share none.
    package var key: ObjectIdentifier?
    /// The layers between TCP and the client, created once for all clients of an event loop with the same key.
    package var layers: @Sendable (LoopContext) -> [any ConnectLayer]
    /// Makes the channel, instead of TCP and the layers.
    let connect: Connect?
    let identity: Identity

    typealias Connect = @Sendable (MQTTTransportRequest) async throws -> any Channel

    /// The transports that count as the same when a configuration changes.
    enum Identity: Hashable, Sendable {
        case tcp
        case webSocket(MQTTWebSocket)
        /// Made with files or closures: the same are its copies.
        case made(Made)
    }

    final class Made: Hashable, Sendable {
        static func == (left: Made, right: Made) -> Bool { left === right }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    package init(
        defaultPort: UInt16,
        key: ObjectIdentifier?,
        layers: @escaping @Sendable (LoopContext) -> [any ConnectLayer]
    ) {
        self.init(defaultPort, key, .made(Made()), layers)
    }

    private init(
        _ defaultPort: UInt16,
        _ key: ObjectIdentifier?,
        _ identity: Identity,
        _ layers: @escaping @Sendable (LoopContext) -> [any ConnectLayer] = { _ in [] },
        connect: Connect? = nil
    ) {
        self.defaultPort = defaultPort
        self.key = key
        self.identity = identity
        self.connect = connect
        self.layers = layers
    }

    /// MQTT over plain TCP: port 1883.
    public static var tcp: MQTTTransport { MQTTTransport(1_883, nil, .tcp) }

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
        return MQTTTransport(80, nil, .webSocket(webSocket)) { loop in
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

extension MQTTTransport {
    /// A transport of the application's own: a Unix domain socket, a proxy, another TLS library, a channel in memory,
    /// or handlers of its own between TCP and the client.
    ///
    /// ```swift
    /// let transport = MQTTTransport.custom(defaultPort: 1_883) { request in
    ///     try await ClientBootstrap(group: request.eventLoop)
    ///         .channelInitializer { $0.pipeline.addHandler(MyHandler()) }
    ///         .connect(host: request.host, port: Int(request.port))
    ///         .get()
    /// }
    /// ```
    ///
    /// For each connection the client calls `connect` once, and adds its own handler at the end of the channel's
    /// pipeline. That handler reads and writes `ByteBuffer`, the packets' bytes.
    ///
    /// - Event loop: the channel must be on ``MQTTTransportRequest/eventLoop``. `connect` itself runs on any task.
    /// - Deadline: at the end of ``MQTTTimeouts/connect`` the call's task is cancelled, as it is when the attempt is
    ///   given up. The client does not wait for `connect` to return, and closes a channel that comes later.
    /// - Back-pressure: the client writes while the channel is writable, and stops reading with `autoRead`. A message
    ///   at QoS 0 counts as sent when the channel has accepted it and is writable.
    /// - Closing: the client closes a channel that it has got. Before that the closure does.
    ///
    /// An error that `connect` throws becomes ``MQTTClientError/noConnection(_:)``, of the kind `transport` if it is
    /// no error of the system. Layers such as TLS are the closure's own concern.
    ///
    /// - Parameters:
    ///   - defaultPort: the port of a server without a configured one.
    ///   - connect: returns a channel that is connected.
    /// - Returns: the transport; in a changed configuration its copies count as the same.
    public static func custom(
        defaultPort: UInt16,
        connect: @escaping @Sendable (MQTTTransportRequest) async throws -> any Channel
    ) -> MQTTTransport {
        MQTTTransport(defaultPort, nil, .made(Made()), connect: connect)
    }
}

/// The server for one connection of a transport of the application's own.
public struct MQTTTransportRequest: Sendable {
    /// The configured host, or the one of a redirect; the client does not resolve it.
    public let host: String
    /// The configured port, or the transport's default.
    public let port: UInt16
    /// The client's event loop, which the channel must be on.
    public let eventLoop: any EventLoop
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
