import Foundation
import Testing
import clamor

@Suite("The version")
struct VersionTests {
    @Test("is a semantic one, and the changelog names it")
    func number() throws {
        #expect(Version.number.wholeMatch(of: /(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?/) != nil)
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let changes = try String(contentsOf: root.appending(path: ".github/CHANGELOG.md"), encoding: .utf8)
        #expect(changes.contains(Version.number))
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
}
