import Glibc

/// Why a result could not be written or read; exit code 73 is the caller's answer while writing, 65 while reading.
package struct ResultError: Error, Hashable, Sendable, CustomStringConvertible {
    package let path: String
    package let reason: String

    package init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    /// Reads `errno` as the failed call left it.
    init(path: String, doing what: String, _ remedy: String? = nil) {
        let error = String(cString: strerror(errno))
        self.init(path: path, reason: "\(what): \(error)" + (remedy.map { "; \($0)" } ?? ""))
    }

    package var description: String { "\(self.path): \(self.reason)" }
}
