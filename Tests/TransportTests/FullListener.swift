import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A listening socket that accepts nobody and whose queue is full.
struct FullListener {
    let port: Int
    private let descriptors: [Int32]

    init() throws {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var isUp = false
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                isUp =
                    bind(server, raw, length) == 0 && listen(server, 0) == 0 && getsockname(server, raw, &length) == 0
            }
        }
        guard isUp else { throw IOError(errnoCode: errno, reason: "listen") }
        self.port = Int(UInt16(bigEndian: address.sin_port))

        // A backlog of 0 has room for one; the second stays in SYN-SENT.
        var clients: [Int32] = []
        for _ in 0..<3 {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(client, $0, length) }
            }
            clients.append(client)
        }
        self.descriptors = clients + [server]
    }

    func close() { for descriptor in self.descriptors { _ = Glibc.close(descriptor) } }
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
