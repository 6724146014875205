package import Transport

/// How connections are secured and wrapped, as the command line says it.
///
/// The files are read when the run makes its TLS settings, before the first socket.
package struct TransportOptions: Hashable, Sendable {
    package struct TLS: Hashable, Sendable {
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
        /// Of XMPP: whom the certificate has to name, whatever the host is called.
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

    package struct WebSocket: Hashable, Sendable {
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

    /// The port where none is given: that of the scheme.
    package var defaultPort: Int {
        switch (self.webSocket != nil, self.tls != nil) {
        case (false, false): 1_883
        case (false, true): 8_883
        case (true, false): 80
        case (true, true): 443
        }
    }

    /// The scheme of a URL that says the same.
    package var scheme: String {
        switch (self.webSocket != nil, self.tls != nil) {
        case (false, false): "mqtt"
        case (false, true): "mqtts"
        case (true, false): "ws"
        case (true, true): "wss"
        }
    }
}
