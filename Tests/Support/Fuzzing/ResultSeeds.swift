import Foundation
import TestSupport

/// The seeds of results: small ones of a whole run and of two segments, in Tests/Vectors/results.
enum ResultSeeds {
    private static let folder = MarkdownPage.root.appending(path: "Tests/Vectors/results")

    private static let all: [String: [(name: String, text: [UInt8])]] = {
        do {
            return try ["one", "two", "whole"].reduce(into: [:]) { all, run in
                let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.appending(path: run).path)
                all[run] = try names.sorted().map { name in
                    (name, Array(try Data(contentsOf: Self.folder.appending(path: "\(run)/\(name)"))))
                }
            }
        } catch {
            preconditionFailure("the results: \(error)")
        }
    }()

    static func files(of run: String) -> [(name: String, text: [UInt8])] { self.all[run] ?? [] }

    /// Each file as it is, for each use.
    static var inputs: [[UInt8]] {
        (0..<4).flatMap { use -> [[UInt8]] in
            let run = use == 2 ? "one" : "whole"
            return self.files(of: run).enumerated().map { index, file in [UInt8(index), UInt8(use), 0, 0] + file.text }
        }
    }
}
