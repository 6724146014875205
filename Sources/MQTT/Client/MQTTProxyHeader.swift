import NIOCore
import Transport

/// The PROXY header, with which a load balancer passes a connection's addresses to a server (haproxy's
/// proxy-protocol.txt).
///
/// Needed for servers behind a load balancer, and for tests of how a server treats these addresses.
public struct MQTTProxyHeader: Hashable, Sendable {
    /// The header's form.
    public enum Version: Hashable, Sendable {
        /// One line of text.
        case v1
        /// Binary.
        case v2
    }

    /// An address and its port.
    public struct Endpoint: Hashable, Sendable {
        /// IPv4 or IPv6, in figures.
        public var address: String
        /// 0...65,535.
        public var port: UInt16

        /// - Parameters:
        ///   - address: IPv4 or IPv6, in figures.
        ///   - port: of that address.
        public init(_ address: String, port: UInt16) {
            self.address = address
            self.port = port
        }
    }

    /// The addresses in the header.
    public enum Addresses: Hashable, Sendable {
        /// The addresses of the connection itself.
        case connection
        /// The given addresses; both IPv4 or both IPv6.
        case claimed(source: Endpoint, destination: Endpoint)
        /// No addresses, as a load balancer sends for a connection of its own.
        case unknown
    }

    /// The header's form.
    public var version: Version
    /// The addresses in the header.
    public var addresses: Addresses

    /// - Parameters:
    ///   - version: the header's form.
    ///   - addresses: the addresses in the header.
    public init(_ version: Version, _ addresses: Addresses = .connection) {
        self.version = version
        self.addresses = addresses
    }

    func layer() throws(MQTTClientError) -> ProxyLayer {
        ProxyLayer(self.version == .v1 ? .v1 : .v2, try self.proxyAddresses())
    }

    private func proxyAddresses() throws(MQTTClientError) -> ProxyAddresses {
        switch self.addresses {
        case .connection: return .own
        case .unknown: return .unknown
        case .claimed(let source, let destination):
            let (from, to) = (try source.socketAddress(), try destination.socketAddress())
            guard from.protocol == to.protocol else {
                throw .invalid(
                    "a PROXY header names two addresses of one kind, and \(source.address) and \(destination.address) "
                        + "are IPv4 and IPv6"
                )
            }
            return .claimed(source: from, destination: to)
        }
    }
}

extension MQTTProxyHeader.Endpoint {
    fileprivate func socketAddress() throws(MQTTClientError) -> SocketAddress {
        do {
            return try SocketAddress(ipAddress: self.address, port: Int(self.port))
        } catch {
            throw .invalid("'\(self.address)' is no IPv4 or IPv6 address for a PROXY header")
        }
    }
}

extension MQTTTransport {
    /// The same transport with a PROXY header before TLS and the WebSocket request.
    ///
    /// - Parameter header: the form and the addresses.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` for invalid addresses, or for an IPv4 and an IPv6 address together.
    public func sending(_ header: MQTTProxyHeader) throws(MQTTClientError) -> MQTTTransport {
        let (proxy, below) = (try header.layer(), self)
        // A new key: clients with another header, or none, do not share these layers.
        return MQTTTransport(
            defaultPort: below.defaultPort,
            key: below.key.map { _ in ObjectIdentifier(proxy) },
            layers: { [proxy] + below.layers($0) }
        )
    }
}
