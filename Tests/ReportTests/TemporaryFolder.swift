import Foundation

/// A directory of one test, gone when the test is.
final class TemporaryFolder {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "clamor-report-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        self.path = url.path()
    }

    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    func write(_ text: String, to name: String) throws {
        try text.write(toFile: "\(self.path)/\(name)", atomically: false, encoding: .utf8)
    }

    func read(_ name: String) throws -> String {
        try String(contentsOfFile: "\(self.path)/\(name)", encoding: .utf8)
    }

    func entries(_ name: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(self.path)/\(name)").sorted()
    }
}
