#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A file whose content is the password, for tokens that another program renews.
///
/// The file is read at each connect. One line end at its end is not part of the token. While it is missing or empty, a
/// connect fails with ``MQTTClientError/noCredentials(_:)``, and an ``MQTTSessionManager`` retries. Replace the file by
/// a rename.
public struct MQTTTokenFile: Hashable, Sendable {
    /// The path of the file.
    public var path: String
    /// The largest token in bytes; the protocol allows 65,535.
    public var sizeLimit: Int

    /// - Parameters:
    ///   - path: the path of the file.
    ///   - sizeLimit: the largest token in bytes, at least 1.
    public init(path: String, sizeLimit: Int = 65_535) {
        precondition(sizeLimit > 0, "a token has bytes")
        self.path = path
        self.sizeLimit = sizeLimit
    }

    /// Reads the token.
    ///
    /// - Returns: the current content of the file.
    /// - Throws: an error if the file is missing, unreadable, empty or too large.
    public func token() throws(MQTTCredentialsError) -> [UInt8] {
        // Non-blocking, because a pipe without a writer would block the caller for ever.
        let descriptor = open(self.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: self.path, errno: errno) }
        defer { _ = close(descriptor) }
        // Room for a line end after the token, and one more byte to detect a file that is too large.
        let room = self.sizeLimit + 3
        var bytes = [UInt8](repeating: 0, count: room)
        var filled = 0
        while filled < room {
            let count = bytes.withUnsafeMutableBytes { buffer in
                read(descriptor, buffer.baseAddress?.advanced(by: filled), room - filled)
            }
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw .unreadable(path: self.path, errno: errno)
            }
            if count == 0 { break }
            filled += count
        }
        bytes.removeLast(room - filled)
        if bytes.last == UInt8(ascii: "\n") {
            bytes.removeLast()
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        }
        guard bytes.count <= self.sizeLimit else { throw .tooLarge(path: self.path, limit: self.sizeLimit) }
        guard !bytes.isEmpty else { throw .empty(path: self.path) }
        return bytes
    }
}
