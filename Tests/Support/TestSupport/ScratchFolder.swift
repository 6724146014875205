import Foundation

/// A directory of one test, gone when the test is.
package final class ScratchFolder: Sendable {
    package let path: String

    package init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "clamor-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        self.path = url.path()
    }

    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    /// The path of an entry, whether it exists or not.
    package func path(_ name: String) -> String { "\(self.path)/\(name)" }

    /// Writes a file that all users may read, and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: self.path(name), atomically: false, encoding: .utf8)
        return self.path(name)
    }

    package func entries(_ name: String = ".") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: self.path(name))) ?? []).sorted()
    }
}
