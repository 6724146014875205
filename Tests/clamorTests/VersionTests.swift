import Foundation
import Measurement
import RunControl
import TestSupport
import Testing
import clamor

@Suite("The version")
struct VersionTests {
    @Test("is a semantic one, and the changelog names it")
    func number() throws {
        #expect(Version.number.wholeMatch(of: /(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?/) != nil)
        let changes = try MarkdownPage(".github/CHANGELOG.md").lines
        let coming = changes.drop { $0 != "## [Unreleased]" }.dropFirst().prefix { !$0.hasPrefix("## ") }
        #expect(
            changes.contains { $0.hasPrefix("## [\(Version.number)] - ") }
                || coming.contains { $0.hasSuffix(" version, \(Version.number).") }
        )
    }

    @Test("is that of the packages, images and addresses in README and guides")
    func pages() throws {
        let found = try MarkdownPage.guides.flatMap { path in
            try MarkdownPage(path).lines.flatMap { line in
                line.matches(of: /clamor[-_: \/](?:releases\/download\/)?v?(?=[0-9]+\.[0-9]+\.[0-9]+)/)
                    .map { (path: path, version: line[$0.range.upperBound...]) }
            }
        }
        #expect(found.contains { $0.path.hasSuffix("GettingStarted.md") })
        for (path, version) in found {
            #expect(version.hasPrefix(Version.number), "\(path)")
            #expect(version.dropFirst(Version.number.count).first?.isNumber != true, "\(path)")
        }
    }

    @Test(
        "a release has the changes of its section, and none without a section or with another tag",
        arguments: [
            ("v\(Version.number)", "[\(Version.number)] - 2027-01-31", ["- a change"]),
            ("v\(Version.number)", "[\(Version.number)]", nil), ("v\(Version.number)", "[Unreleased]", nil),
            ("v9.9.9", "[9.9.9] - 2027-01-31", nil), ("", "[\(Version.number)] - 2027-01-31", nil),
        ] as [(String, String, [String]?)]
    )
    func changes(tag: String, heading: String, changes: [String]?) async throws {
        let folder = try ScratchFolder()
        let files = [".ci/package/changes", ".ci/package/common.sh", "Sources/RunControl/Version.swift"]
        for name in [".ci/package", "Sources/RunControl", ".github"] {
            try FileManager.default.createDirectory(atPath: folder.path(name), withIntermediateDirectories: true)
        }
        for file in files {
            let source = MarkdownPage.root.appending(path: file).path
            try FileManager.default.copyItem(atPath: source, toPath: folder.path(file))
        }
        let others = "- another\n\n## [0.0.1] - 2026-01-01\n\n- an old one\n\n[0.0.1]: https://example.org\n"
        try folder.write(
            "## [9.8.7] - 2027-02-01\n\n- a later one\n\n## \(heading)\n\n- a change\n\n## [0.0.2] - 2026-02-02\n\n\(others)",
            to: ".github/CHANGELOG.md"
        )
        let ending = try await RunningProgram("/bin/bash", [folder.path(files[0]), tag]).ended()
        #expect(ending.status == (changes == nil ? 1 : 0))
        #expect(ending.outputLines == changes ?? [])
        #expect(ending.errors.contains(Version.number) == (changes == nil))
    }

    @Test(
        "is alone on the first line; what the build knew follows",
        arguments: [
            (nil, []), ("", []), ("revision 1a2b", ["revision 1a2b"]),
            ("revision 1a2b (modified)\nSwift 6.3.1\n", ["revision 1a2b (modified)", "Swift 6.3.1"]),
        ] as [(String?, [String])]
    )
    func text(facts: String?, lines: [String]) {
        let text = Version.text(facts: facts)
        #expect(text.split(separator: "\n").map(String.init) == ["clamor \(Version.number)"] + lines)
        #expect(!text.hasSuffix("\n"))
    }

    @Test("is named in result files with the revision, the compiler and every package that --version names")
    func tool() throws {
        let facts = "revision 1a2b (modified)\nSwift 6.3.1, x86_64-unknown-linux-gnu\nswift-nio 2.101.2\nyams 6.2.2\n"
        let tool = Version.tool(facts: facts)
        #expect(tool.name == "clamor" && tool.version == Version.number)
        #expect(tool.revision == "1a2b (modified)")
        #expect(tool.compiler == "Swift 6.3.1, x86_64-unknown-linux-gnu")
        #expect(tool.dependencies == ["swift-nio": "2.101.2", "yams": "6.2.2"])
        #expect(Version.tool(facts: nil) == ToolRecord(name: "clamor", version: Version.number))
    }

    @Test("has its dependencies pinned to one version each")
    func pins() throws {
        let manifest = try MarkdownPage("Package.swift").lines.joined(separator: "\n")
        let requirement = /\.package\(url: "https:\/\/github\.com\/[^"]+\/(?<name>[^"\/]+)", (?<bound>[a-zA-Z]+)/
        let found = manifest.matches(of: requirement)
        #expect(found.count >= 12)
        for match in found { #expect(match.bound == "exact", "\(match.name)") }
    }
}
