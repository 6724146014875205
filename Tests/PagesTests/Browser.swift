import Foundation
import TestSupport

/// Headless Chromium, which looks at pages as a person would; `Browser/check.py` says at what.
enum Browser {
    /// Something wrong on a page.
    struct Finding: Decodable, Hashable, CustomStringConvertible {
        var check: String
        /// The width of the window, and what was done to the page.
        var view: String
        var words: String

        var description: String { "\(self.check) at \(self.view): \(self.words)" }
    }

    struct Page: Sendable {
        var name: String
        var html: String
        /// Texts that it has to show.
        var figures: [String] = []
    }

    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// Where to keep the pages, for people to look at.
    private static let kept = ProcessInfo.processInfo.environment["CLAMOR_KEEP_PAGES"]
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Browser").path
    private static let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"

    static let isThere: Bool = {
        let words = ["-B", "\(Self.folder)/check.py", "--ready"]
        return (try? RunningProgram.run("/usr/bin/env", [Self.command] + words).status) == 0
    }()

    /// The findings on each page by its name, of one Chromium for all of them.
    static func findings(on pages: [Page]) async throws -> [String: [Finding]] {
        let folder = try ScratchFolder()
        struct Job: Encodable {
            struct Page: Encodable {
                var name: String
                var path: String
                var figures: [String]
            }
            var pages: [Page] = []
        }
        var job = Job()
        for (number, page) in pages.enumerated() {
            let path = try folder.write(page.html, to: "\(number).html")
            if let kept = Self.kept {
                try page.html.write(toFile: "\(kept)/\(page.name).html", atomically: true, encoding: .utf8)
            }
            job.pages.append(Job.Page(name: page.name, path: path, figures: page.figures))
        }
        let path = try folder.write(String(decoding: JSONEncoder().encode(job), as: UTF8.self), to: "job.json")
        let words = ["-B", "\(Self.folder)/check.py", path]
        let ending = try await RunningProgram("/usr/bin/env", [Self.command] + words).ended()
        guard ending.status == 0 else { throw Failure(description: ending.errors) }
        return try JSONDecoder().decode([String: [Finding]].self, from: Data(ending.output.utf8))
    }
}
