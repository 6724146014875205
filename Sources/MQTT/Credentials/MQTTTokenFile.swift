#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A file whose content is the password, as tokens that are renewed from outside are handed over.
///
/// It is read again at each connect. One line end at its end is no part of the token. While it is missing or empty a
/// connect fails with ``MQTTClientError/noCredentials(_:)``, and an ``MQTTSessionManager`` tries again in its time;
/// exchange it by a rename.
public struct MQTTTokenFile: Hashable, Sendable {
    /// Where the file is.
    public var path: String
    /// Bytes of a token at most; the protocol has room for 65,535.
    public var sizeLimit: Int

    /// - Parameters:
    ///   - path: where the file is.
    ///   - sizeLimit: bytes of a token at most, at least 1.
    public init(path: String, sizeLimit: Int = 65_535) {
        precondition(sizeLimit > 0, "a token has bytes")
        self.path = path
        self.sizeLimit = sizeLimit
    }

    /// Reads the token.
    ///
    /// - Returns: what stands in the file now.
    /// - Throws: the file is not there, not readable, empty or too large.
    public func token() throws(MQTTCredentialsError) -> [UInt8] {
        // Does not wait: a pipe that nobody writes to would hold up the caller for ever.
        let descriptor = open(self.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: self.path, errno: errno) }
        defer { _ = close(descriptor) }
        // One line end more than a token, and one byte to tell that there is too much.
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
