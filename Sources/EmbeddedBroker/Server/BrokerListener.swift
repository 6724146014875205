import Transport

/// Where a broker listens, and what is spoken below MQTT there.
package struct BrokerListener: Hashable, Sendable, CustomStringConvertible {
    package enum Transport: String, Hashable, Sendable, CaseIterable {
        case tcp, tls
        case webSocket = "ws"
        case secureWebSocket = "wss"

        package var isSecure: Bool { self == .tls || self == .secureWebSocket }
        package var isWebSocket: Bool { self == .webSocket || self == .secureWebSocket }
    }

    package var transport: Transport
    /// 0 takes a free one.
    package var port: Int

    package init(_ transport: Transport, port: Int) {
        self.transport = transport
        self.port = port
    }

    package var description: String { "\(self.transport.rawValue) \(self.port)" }
}

/// Why a broker does not serve.
package enum BrokerStartError: Error, CustomStringConvertible {
    /// What bind(2) or the resolver said.
    case cannotListen(BrokerListener, host: String, any Error)
    /// A listener wants TLS, and there is no certificate and no key for it.
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
