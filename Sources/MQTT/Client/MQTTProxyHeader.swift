import NIOCore
import Transport

/// The PROXY header in front of everything else, by which a load balancer tells a server whose connection it passes on
/// (haproxy's proxy-protocol.txt).
///
/// For servers that listen behind one, and for tests of what a server makes of the addresses that it is told.
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

    /// What the header says.
    public enum Addresses: Hashable, Sendable {
        /// The truth: the addresses of the connection itself.
        case connection
        /// These, whatever the connection's are; both IPv4 or both IPv6.
        case claimed(source: Endpoint, destination: Endpoint)
        /// None, as a balancer says of a connection that it makes on its own account.
        case unknown
    }

    /// Its form.
    public var version: Version
    /// What it says.
    public var addresses: Addresses

    /// - Parameters:
    ///   - version: its form.
    ///   - addresses: what it says.
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
    /// The same with a PROXY header in front: before TLS, before the WebSocket's request.
    ///
    /// - Parameter header: its form, and what it says.
    /// - Returns: the transport.
    /// - Throws: ``MQTTClientError/invalid(_:)`` for addresses that are none, or that do not go together.
    public func sending(_ header: MQTTProxyHeader) throws(MQTTClientError) -> MQTTTransport {
        let (proxy, below) = (try header.layer(), self)
        // With a key of its own: who sends another header, or none, shares nothing with it.
        return MQTTTransport(
            defaultPort: below.defaultPort,
            key: below.key.map { _ in ObjectIdentifier(proxy) },
            layers: { [proxy] + below.layers($0) }
        )
    }
}
