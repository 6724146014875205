import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A listening socket that accepts nobody and whose queue is full.
final class FullListener {
    let port: Int
    private let server: Int32
    private var clients: [Int32]

    init() throws {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        // By NIO, for the system's structures belong to another module wherever NIO's headers come first.
        let anywhere = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
        let isUp = anywhere.withSockAddr { address, size in
            bind(server, address, socklen_t(size)) == 0 && listen(server, 0) == 0
        }
        guard isUp else { throw IOError(errnoCode: errno, reason: "listen") }
        // Family, then the port, the higher byte first.
        var name = [UInt8](repeating: 0, count: 128)
        var length = socklen_t(name.count)
        name.withUnsafeMutableBytes { bytes in
            _ = bytes.withMemoryRebound(to: sockaddr.self) { getsockname(server, $0.baseAddress, &length) }
        }
        self.port = Int(name[2]) << 8 | Int(name[3])
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: self.port)

        // A backlog of 0 has room for one; the second stays in SYN-SENT.
        var clients: [Int32] = []
        for _ in 0..<3 {
            let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            let client = socket(AF_INET, kind, 0)
            address.withSockAddr { _ = connect(client, $0, socklen_t($1)) }
            clients.append(client)
        }
        self.server = server
        self.clients = clients
    }

    /// Takes out who is in the queue, and the others go away: the next SYN, a second later at most, finds room.
    func makeRoom() {
        for client in self.clients { _ = Glibc.close(client) }
        self.clients = []
        _ = Glibc.close(accept(self.server, nil, nil))
    }

    func close() { for descriptor in self.clients + [self.server] { _ = Glibc.close(descriptor) } }
}

/// Holds a thread until it is opened.
final class Gate: Sendable {
    private let condition = ConditionLock()

    func waitUntilOpen() { self.condition.wait() }
    func open() { self.condition.open() }
}

private final class ConditionLock: Sendable {
    private let reader: Int32
    private let writer: Int32

    init() {
        var ends: [Int32] = [0, 0]
        _ = pipe(&ends)
        self.reader = ends[0]
        self.writer = ends[1]
    }

    deinit {
        close(self.reader)
        close(self.writer)
    }

    func wait() {
        var byte: UInt8 = 0
        _ = read(self.reader, &byte, 1)
    }

    func open() { _ = write(self.writer, [1], 1) }
}
