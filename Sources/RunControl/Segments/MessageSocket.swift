import Foundation
import Synchronization

/// Messages between a process and its child, both ways: JSON behind its length, over a pair of sockets.
///
/// The end of the file is the end of the process at the other side.
package final class MessageSocket: Sendable {
    /// Longer than any message of ours; what announces more is none.
    private static let longest = 1 << 26

    private let file: FileHandle
    private let writing = Mutex(())

    private init(_ file: FileHandle) { self.file = file }

    /// The end of a child, which has it as its standard input.
    package static let toParent = MessageSocket(.standardInput)

    /// - Returns: the end of this process, and that of a child that it starts.
    static func pair() throws -> (own: MessageSocket, child: FileHandle) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw CocoaError(.fileWriteUnknown)
        }
        let files = ends.map { FileHandle(fileDescriptor: $0, closeOnDealloc: true) }
        return (MessageSocket(files[0]), files[1])
    }

    /// Whether it was sent; the other process may be gone.
    @discardableResult
    package func send(_ message: some Encodable) -> Bool {
        guard let body = try? JSONEncoder().encode(message) else { return false }
        let length = withUnsafeBytes(of: UInt32(body.count).bigEndian) { Data($0) }
        return self.writing.withLock { _ in (try? self.file.write(contentsOf: length + body)) != nil }
    }

    /// Blocks until the next message; `nil` at the end, and if there is none of this kind.
    package func receive<Message: Decodable>(_ kind: Message.Type = Message.self) -> Message? {
        guard let head = self.read(4) else { return nil }
        let length = head.reduce(0) { $0 << 8 | Int($1) }
        guard length <= Self.longest, let body = self.read(length) else { return nil }
        return try? JSONDecoder().decode(kind, from: Data(body))
    }

    private func read(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes { rest in
                Glibc.read(self.file.fileDescriptor, rest.baseAddress?.advanced(by: filled), count - filled)
            }
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return nil }
            filled += got
        }
        return bytes
    }

    /// The other side reads the end of the file; its last messages can still be received.
    func finish() { shutdown(self.file.fileDescriptor, Int32(SHUT_WR)) }
}
