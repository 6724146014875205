import Transport

/// A listening port of a broker, and the layers below MQTT on it.
package struct BrokerListener: Hashable, Sendable, CustomStringConvertible {
    package enum Transport: String, Hashable, Sendable, CaseIterable {
        case tcp, tls
        case webSocket = "ws"
        case secureWebSocket = "wss"

        package var isSecure: Bool { self == .tls || self == .secureWebSocket }
        package var isWebSocket: Bool { self == .webSocket || self == .secureWebSocket }
    }

    package var transport: Transport
    /// 0 takes a free port.
    package var port: Int
    /// An address or a name; `nil`: the configuration's.
    package var host: String?

    package init(_ transport: Transport, port: Int, host: String? = nil) {
        self.transport = transport
        self.port = port
        self.host = host
    }

    package var description: String { "\(self.transport.rawValue) \(self.port)" }
}

/// The reason why a broker did not start.
package enum BrokerStartError: Error, CustomStringConvertible {
    /// The error of bind(2) or of the resolver.
    case cannotListen(BrokerListener, host: String, any Error)
    /// A TLS listener has no certificate and key.
    case noTLS(BrokerListener)

    package var description: String {
        switch self {
        case .cannotListen(let listener, let host, let error):
            "cannot listen on \(host):\(listener.port)"
                + (listener.transport == .tcp ? "" : " (\(listener.transport.rawValue))")
                + ": \(SystemError.words(error))"
        case .noTLS(let listener):
            "the listener \(listener.transport.rawValue) needs a certificate and its key, or pre-shared keys"
        }
    }
}
