package import Transport

/// How connections are secured and wrapped, as the command line says it.
///
/// The files are read when the run makes its TLS settings, before the first socket.
package struct TransportOptions: Hashable, Sendable {
    package struct TLS: Hashable, Sendable, OptionsRoot {
        package static let usual = Self()

        package var caFile: String?
        /// May hold `%i`: then each client has its own.
        package var certificateFile: String?
        package var keyFile: String?
        package var isInsecure = false
        /// As given: `sha256/BASE64`, or a path.
        package var pins: [String] = []
        package var psk: PSK?
        package var versions = TLSProtocolVersion.v1_2...TLSProtocolVersion.v1_3
        package var ciphers: String?
        package var alpn: [String] = []
        package var serverName: String?
        /// The XMPP domain that the certificate has to name, whatever the host is called.
        package var domain: String?
        /// From the environment's SSLKEYLOGFILE.
        package var keyLogFile: String?

        package init() {}
    }

    package struct PSK: Hashable, Sendable {
        package var identity: String
        package var key: [UInt8]

        package init(identity: String, key: [UInt8]) {
            self.identity = identity
            self.key = key
        }
    }

    package struct WebSocket: Hashable, Sendable, OptionsRoot {
        package static let usual = Self()

        /// With the query, if there is one.
        package var path = "/mqtt"
        package var headers: [Header] = []
        package var subprotocols = ["mqtt"]

        package init() {}
    }

    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var tls: TLS?
    package var webSocket: WebSocket?
    package var proxy: ProxyProtocol?

    package init() {}

    /// One of four values, which are for TCP, TLS, WebSocket, and WebSocket over TLS.
    package func choose<Value>(_ values: Value...) -> Value {
        values[(self.webSocket == nil ? 0 : 2) + (self.tls == nil ? 0 : 1)]
    }

    /// The port where none is given: that of the scheme.
    package var defaultPort: Int { self.choose(1_883, 8_883, 80, 443) }

    /// The scheme of a URL that says the same.
    package var scheme: String { self.choose("mqtt", "mqtts", "ws", "wss") }
}
