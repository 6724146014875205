import Foundation
import TestSupport
import Testing

@Suite("README, guides and other pages")
struct DocumentationTests {
    /// Every page whose links readers follow.
    static let pages: [String] = {
        let libraries = ["MQTT", "MQTTSQLiteStore", "XMPP", "RunControl"].map { "Sources/\($0)/\($0).docc" }
        let folders = [
            "results", "results/reference", ".github", "Benchmarks", "Tests/Support/Fuzzing", "Tests/ConformanceTests",
        ]
        return MarkdownPage.guides + (libraries + folders).flatMap(MarkdownPage.paths)
    }()

    // MARK: - Links

    /// Why a link of a page leads nowhere; `nil` if it leads somewhere.
    private static func problem(_ link: MarkdownPage.Link, of page: MarkdownPage) -> String? {
        if link.target.hasPrefix("https://") || link.target.hasPrefix("http://") { return nil }
        let folder = URL(filePath: page.path, relativeTo: MarkdownPage.root).deletingLastPathComponent()
        let isSymbolic = link.target.hasPrefix("doc:")
        let parts = link.target.dropFirst(isSymbolic ? 4 : 0).split(separator: "#", maxSplits: 1)
            .map(String.init)
        let name = link.target.hasPrefix("#") ? "" : parts.first ?? ""
        let fragment = link.target.contains("#") ? parts.last : nil
        let file = isSymbolic ? "\(name).md" : name
        let place = name.isEmpty ? page.path : folder.appending(path: file).path
        guard name.isEmpty || FileManager.default.fileExists(atPath: place) else { return "there is no \(file)" }
        guard let fragment else { return nil }
        let target =
            name.isEmpty
            ? page : (try? String(contentsOfFile: place, encoding: .utf8)).map { MarkdownPage(place, text: $0) }
        guard let target, !target.anchors.contains(fragment.lowercased()) else { return nil }
        return "\(file) has no heading #\(fragment)"
    }

    @Test("each link leads to a file, and to a heading of it if it names one", arguments: pages)
    func links(_ path: String) throws {
        let page = try MarkdownPage(path)
        for link in page.links {
            let problem = Self.problem(link, of: page)
            #expect(problem == nil, "\(path):\(link.number): \(link.target): \(problem ?? "")")
        }
    }

    @Test(
        "a link that leads nowhere is found",
        arguments: [
            ("Missing.md", false), ("Results.md", true), ("Results.md#ledger", true), ("Results.md#ledgers", false),
            ("#here", true), ("#there", false), ("doc:Results", true), ("doc:Missing", false),
            ("Resources/page-run.png", true), ("page-run.png", false), ("../../../results/README.md", true),
            ("https://www.swift.org", true),
        ]
    )
    func finds(_ target: String, isRight: Bool) {
        let page = MarkdownPage("Sources/clamor/Clamor.docc/Page.md", text: "# Here\n\nSee [it](\(target)).")
        let symbolic = MarkdownPage("Sources/clamor/Clamor.docc/Page.md", text: "# Here\n\nSee <\(target)>.")
        let links = target.hasPrefix("doc:") ? symbolic.links : page.links
        #expect(links.map(\.target) == [target])
        #expect(links.allSatisfy { Self.problem($0, of: page) == nil } == isRight)
    }

    @Test("the guides' first page leads to every guide")
    func index() throws {
        let folder = "Sources/clamor/Clamor.docc"
        let links = Set(try MarkdownPage("\(folder)/Clamor.md").links.map { String($0.target.prefix { $0 != "#" }) })
        let guides = MarkdownPage.paths(in: folder).map { String($0.dropFirst(folder.count + 1)) }
        #expect(Set(guides).subtracting(links) == ["Clamor.md"])
    }

    @Test(
        "README and the guides' first page lead to the answers of first questions",
        arguments: ["README.md", "Sources/clamor/Clamor.docc/Clamor.md"]
    )
    func questions(_ path: String) throws {
        let targets = try MarkdownPage(path).links.map { $0.target.split(separator: "/").last.map(String.init) ?? "" }
        let answers = [
            "Troubleshooting.md#the-verdict-is-generator-limited", "BigLoads.md", "Capacity.md", "Compare.md",
            "Troubleshooting.md#messages-are-lost", "Migration.md", "ContinuousIntegration.md",
        ]
        for answer in answers { #expect(targets.contains(answer)) }
    }

    // MARK: - Prose

    private static let longest = 30

    private static let prose = MarkdownPage.guides + ["results/README.md", ".github/ARCHITECTURE.md"]

    @Test("no sentence has over 30 words", arguments: prose)
    func sentences(_ path: String) throws {
        for sentence in try MarkdownPage(path).sentences where sentence.words > Self.longest {
            Issue.record("\(path):\(sentence.number): \(sentence.words) words: \(sentence.text)")
        }
    }

    @Test("sentences are counted across lines, without code, in lists and in tables")
    func counts() {
        let page = MarkdownPage(
            "Page.md",
            text: """
                # A heading is none

                One two `three four`
                five. Six: seven (eight.) Nine!

                - ten eleven
                  twelve
                - thirteen

                | a [link](of/one.md) | b c |

                ```sh
                clamor pub
                ```
                """
        )
        #expect(page.sentences.map(\.words) == [4, 3, 1, 4, 2, 2, 2])
        #expect(page.sentences.map(\.number) == [3, 3, 3, 6, 8, 10, 10])
    }

    @Test("README has 180 lines at most")
    func length() throws {
        #expect(try MarkdownPage("README.md").lines.count <= 181)
    }

    @Test("the guide of scenarios names the schema as editors read it")
    func schema() throws {
        let lines = try MarkdownPage("Sources/clamor/Clamor.docc/Scenarios.md").lines
        let mark = "# yaml-language-server: $schema="
        let path = try #require(lines.first { $0.hasPrefix(mark) }?.dropFirst(mark.count))
        #expect(FileManager.default.fileExists(atPath: MarkdownPage.root.appending(path: String(path)).path))
    }
}
