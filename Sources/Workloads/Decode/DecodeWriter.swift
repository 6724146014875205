import Glibc
import Synchronization

/// The server side of a socket lane: it writes a stream repeatedly, with one write per piece.
///
/// Blocking calls on a thread of its own keep only the kernel between two pieces. The kernel may join them before the
/// other side reads.
package final class DecodeWriter: Sendable {
    package let port: Int
    private let listener: CInt
    private let stream: DecodeStream
    private let pieces: [Int32]
    private let isStopped = Atomic(false)
    private let lapCount = Atomic<UInt64>(0)

    /// Listens on a free port of 127.0.0.1.
    package init(_ stream: DecodeStream, form: DecodeForm, seed: UInt64) throws(DecodeFault) {
        self.stream = stream
        self.pieces = form.pieces(of: stream, seed: seed)
        self.listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = self.listener
        let isListening = withUnsafeMutableBytes(of: &address) { bytes in
            guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return bind(descriptor, pointer, size) == 0 && listen(descriptor, 1) == 0
                && getsockname(descriptor, pointer, &size) == 0
        }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        guard isListening else {
            // `deinit` closes the socket.
            throw .connection("no socket to listen on: \(String(cString: strerror(errno)))")
        }
    }

    deinit { close(self.listener) }

    /// How often the whole stream was written; final after the other side has seen the end.
    package var laps: UInt64 { self.lapCount.load(ordering: .acquiring) }
    package var checksum: DecodeChecksum { self.stream.checksum * self.laps }

    /// Stops at the end of the stream.
    package func stop() { self.isStopped.store(true, ordering: .releasing) }

    /// Serves one connection, and returns when it has ended.
    package func run() {
        let connection = self.acceptOne()
        guard connection >= 0 else { return }
        var one: CInt = 1
        setsockopt(connection, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
        while !self.isStopped.load(ordering: .acquiring), self.writeAll(to: connection) {
            self.lapCount.add(1, ordering: .releasing)
        }
        shutdown(connection, CInt(SHUT_WR))
        // The other side closes after reading to the end. Closing earlier could reset bytes it has not read.
        var byte: UInt8 = 0
        while recv(connection, &byte, 1, 0) > 0 {}
        close(connection)
    }

    /// Waits for the connection in intervals, since a stop may come first.
    private func acceptOne() -> CInt {
        while !self.isStopped.load(ordering: .acquiring) {
            var wait = pollfd(fd: self.listener, events: Int16(POLLIN), revents: 0)
            if poll(&wait, 1, 100) > 0 { return accept(self.listener, nil, nil) }
        }
        return -1
    }

    /// Whether all bytes were written.
    private func writeAll(to connection: CInt) -> Bool {
        self.stream.bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return false }
            var from = 0
            for piece in self.pieces {
                while from < Int(piece) {
                    let sent = send(connection, base + from, Int(piece) - from, CInt(MSG_NOSIGNAL))
                    if sent < 0, errno == EINTR { continue }
                    guard sent > 0 else { return false }
                    from += sent
                }
            }
            return true
        }
    }
}
