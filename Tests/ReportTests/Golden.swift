import Foundation
import Testing

/// Texts as they are wanted, in `Golden/`; `UPDATE_GOLDEN=1` writes them anew.
enum Golden {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden")

    static func check(_ text: String, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let file = self.folder.appending(path: name)
        if ProcessInfo.processInfo.environment["UPDATE_GOLDEN"] != nil {
            try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        let wanted = try self.text(name)
        #expect(text == wanted, "differs from Golden/\(name)", sourceLocation: sourceLocation)
    }

    static func text(_ name: String) throws -> String {
        try String(contentsOf: self.folder.appending(path: name), encoding: .utf8)
    }
}
