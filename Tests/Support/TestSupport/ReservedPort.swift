import Foundation
import Synchronization

/// A port of 127.0.0.1 that is bound and does not listen: connections to it are refused until it is released.
///
/// It is outside the range that the system assigns to connections (`ip_local_port_range`). A server that binds such a
/// port seconds later would often find it taken by a client of another test. No port is returned twice.
///
/// A datagram port accepts datagrams from itself only, so other senders get "port unreachable".
package final class ReservedPort: Sendable {
    package let port: Int
    private let descriptor: Mutex<CInt?>

    private static let ports = 12_000..<32_768
    /// Other processes that run tests begin elsewhere.
    private static let next = Mutex(Int.random(in: ports))

    package init(ofDatagrams: Bool = false) throws {
        for _ in Self.ports {
            let port = Self.next.withLock { next in
                next = next + 1 < Self.ports.upperBound ? next + 1 : Self.ports.lowerBound
                return next
            }
            guard let descriptor = try Self.bound(port, ofDatagrams: ofDatagrams) else { continue }
            self.descriptor = Mutex(descriptor)
            self.port = port
            return
        }
        throw POSIXError(.EADDRINUSE)
    }

    /// `nil` if the port is taken.
    private static func bound(_ port: Int, ofDatagrams: Bool) throws -> CInt? {
        let kind = ofDatagrams ? SOCK_DGRAM.rawValue : SOCK_STREAM.rawValue
        let descriptor = socket(AF_INET, Int32(kind | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isBound = withUnsafeBytes(of: &address) { bytes in
            let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress
            let size = socklen_t(bytes.count)
            return bind(descriptor, address, size) == 0 && (!ofDatagrams || connect(descriptor, address, size) == 0)
        }
        if !isBound { close(descriptor) }
        return isBound ? descriptor : nil
    }

    /// Frees the port for another server.
    package func release() {
        self.descriptor.withLock { descriptor in
            if let open = descriptor { close(open) }
            descriptor = nil
        }
    }

    deinit { self.release() }
}
