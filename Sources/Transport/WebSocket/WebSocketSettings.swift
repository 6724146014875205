/// The kind of a WebSocket's messages.
package enum WebSocketContent: Hashable, Sendable {
    /// A byte stream whose message boundaries have no meaning: MQTT.
    case binary
    /// Text in messages that are read and written whole: XMPP.
    case text
}

/// The request of a client's WebSocket.
package struct WebSocketSettings: Sendable {
    /// The reason why settings are invalid.
    package enum Problem: Error, Hashable, CustomStringConvertible {
        case path(String)
        case host(String)
        case subprotocol(String)
        /// A name that is offered twice (RFC 6455 §4.1, 10).
        case repeated(String)
        case headerName(String)
        case headerValue(String)
        /// A field that the handshake sets itself.
        case reserved(String)
        case tooLong

        package var description: String {
            switch self {
            case .path(let text): "the path '\(Self.shown(text))' does not begin with / or is not plain ASCII"
            case .host(let text): "the host '\(Self.shown(text))' is no value for a Host header"
            case .subprotocol(let text): "'\(Self.shown(text))' is no name of a subprotocol"
            case .repeated(let text): "'\(text)' is offered twice; name each subprotocol once"
            case .headerName(let text): "'\(Self.shown(text))' is no name of a header"
            case .headerValue(let name): "the value of the header \(name) has control characters in it"
            case .reserved(let name): "the header \(name) is the handshake's own"
            case .tooLong: "path and headers are longer than \(WebSocketHead.maximumSize) bytes"
            }
        }

        private static func shown(_ text: String) -> String {
            String(text.unicodeScalars.map { $0.value < 32 || $0.value == 127 ? "?" : Character($0) })
        }
    }

    /// Path and query, as in the request line.
    package let path: String
    /// The offered subprotocols, most preferred first; the server selects one.
    ///
    /// [MQTT-6.0.0-3] requires `mqtt` among them; some old brokers know `mqttv3.1` only.
    package let subprotocols: [String]
    package let headers: [(name: String, value: String)]
    /// The Host field; `nil` uses the target's name, and its port unless it is the scheme's default.
    package let host: String?
    /// The largest message from the server in bytes, with all its fragments.
    package let maximumMessageSize: Int
    package let content: WebSocketContent

    private static let reserved: Set = [
        "upgrade", "connection", "content-length", "transfer-encoding", "expect", "te", "trailer",
        "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions",
        "sec-websocket-accept",
    ]

    /// - Parameters:
    ///   - path: path and query.
    ///   - subprotocols: names to offer, at least one.
    ///   - headers: fields to add; `Host` sets `host`.
    ///   - host: the value of the Host field.
    ///   - maximumMessageSize: a little over the largest MQTT packet by default. A connection holds at most one
    ///     incomplete text message.
    ///   - content: the kind of messages.
    /// - Throws: the first value that would break the request, or add a second one.
    package init(
        path: String = "/mqtt",
        subprotocols: [String] = ["mqtt"],
        headers: [(String, String)] = [],
        host: String? = nil,
        maximumMessageSize: Int = 1 << 29,
        content: WebSocketContent = .binary
    ) throws(Problem) {
        guard path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "#") }) else {
            throw .path(path)
        }
        for name in subprotocols where name.isEmpty || !name.utf8.allSatisfy(WebSocketHead.isToken) {
            throw .subprotocol(name)
        }
        if let name = subprotocols.first(where: { name in subprotocols.count { $0 == name } > 1 }) {
            throw .repeated(name)
        }
        guard !subprotocols.isEmpty else { throw .subprotocol("") }
        var host = host
        var fields: [(name: String, value: String)] = []
        for (name, value) in headers {
            guard !name.isEmpty, name.utf8.allSatisfy(WebSocketHead.isToken) else { throw .headerName(name) }
            guard value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else { throw .headerValue(name) }
            guard !Self.reserved.contains(name.lowercased()) else { throw .reserved(name) }
            if name.lowercased() == "host" { host = host ?? value } else { fields.append((name, value)) }
        }
        if let host, host.isEmpty || !host.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) { throw .host(host) }
        let size = fields.reduce(path.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard size <= WebSocketHead.maximumSize else { throw .tooLong }
        self.path = path
        self.subprotocols = subprotocols
        self.headers = fields
        self.host = host
        self.maximumMessageSize = maximumMessageSize
        self.content = content
    }

    /// A request for XMPP (RFC 7395 §3.1).
    ///
    /// - Parameters:
    ///   - path: `/ws` for ejabberd, `/xmpp-websocket` for prosody.
    ///   - headers: fields to add.
    ///   - maximumMessageSize: the largest stanza from the server in bytes.
    /// - Returns: the settings.
    /// - Throws: the first value that would break the request, or add a second one.
    package static func xmpp(
        path: String = "/ws",
        headers: [(String, String)] = [],
        maximumMessageSize: Int = 1 << 20
    ) throws(Problem) -> WebSocketSettings {
        try WebSocketSettings(
            path: path,
            subprotocols: ["xmpp"],
            headers: headers,
            maximumMessageSize: maximumMessageSize,
            content: .text
        )
    }
}
