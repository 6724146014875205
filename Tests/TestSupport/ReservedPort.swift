import Foundation
import Synchronization

/// A port of 127.0.0.1 that is bound and does not listen: connections to it are refused until it is released.
///
/// Of datagrams only those from itself are taken, so that all others are told that nobody is there.
package final class ReservedPort: Sendable {
    package let port: Int
    private let descriptor: Mutex<CInt?>

    package init(ofDatagrams: Bool = false) throws {
        let kind = ofDatagrams ? SOCK_DGRAM.rawValue : SOCK_STREAM.rawValue
        let descriptor = socket(AF_INET, Int32(kind | SOCK_CLOEXEC.rawValue), 0)
        self.descriptor = Mutex(descriptor)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutableBytes(of: &address) { bytes in
            let address = bytes.bindMemory(to: sockaddr.self).baseAddress
            guard bind(descriptor, address, size) == 0, getsockname(descriptor, address, &size) == 0 else {
                return false
            }
            return !ofDatagrams || connect(descriptor, address, size) == 0
        }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EADDRINUSE) }
    }

    /// Leaves the port to somebody else.
    package func release() {
        self.descriptor.withLock { descriptor in
            if let open = descriptor { close(open) }
            descriptor = nil
        }
    }

    deinit { self.release() }
}
