import Foundation
import TestSupport
import Testing

@Suite("The page on the architecture")
struct ArchitectureTests {
    private static let page = Result { try MarkdownPage(".github/ARCHITECTURE.md") }

    /// A row of the table, or a declaration of the package.
    struct Target: Hashable {
        var floor: Int
        var name: String
        /// Targets and products; `nil` where the page refers to the package.
        var imports: Set<String>?
    }

    // MARK: - Paths

    /// The paths in a text that lead nowhere; a path is code that begins with a top-level entry that has others.
    private static func lost(in text: String) -> [String] {
        self.paths(in: text).filter { path in
            !FileManager.default.fileExists(atPath: MarkdownPage.root.appending(path: path).path)
        }
    }

    private static func paths(in text: String) -> [String] {
        text.matches(of: /`((?:Sources|Tests|Benchmarks|results|\.github|\.ci)\/[^`\s]+|Package\.swift)`/)
            .map { String($0.1) }
    }

    @Test("each path that it names exists")
    func paths() throws {
        let text = try Self.page.get().lines.joined(separator: "\n")
        #expect(Self.paths(in: text).count > 100)
        #expect(Self.lost(in: text) == [])
    }

    @Test(
        "a path that leads nowhere is found",
        arguments: [
            ("`Sources/clamor/Clamor.swift`", []), ("`Sources/Ledger`", []), ("`Package.swift`", []),
            ("`Sources/Nowhere.swift`", ["Sources/Nowhere.swift"]), ("`.ci/run` and `.ci/walk`", [".ci/walk"]),
            ("`clamor pub`", []), ("Sources/Nowhere.swift without marks", []),
        ]
    )
    func finds(_ text: String, _ lost: [String]) {
        #expect(Self.lost(in: text) == lost)
    }

    // MARK: - The table of targets

    /// The cells of each row, floor first.
    private static func rows() throws -> [[Substring]] {
        try self.page.get().lines.compactMap { line in
            let cells = line.split(separator: "|")
            return line.hasPrefix("| ") && Int(cells[0].filter { $0 != " " }) != nil ? cells : nil
        }
    }

    /// The words in the code of a cell.
    private static func words(_ cell: Substring) -> [String] {
        cell.matches(of: /`([^`]*)`/).flatMap { $0.1.split(separator: " ") }.map(String.init)
    }

    private static func listed() throws -> [Target] {
        try self.rows().map { cells in
            try #require(cells.count == 5, "\(cells)")
            let words = Set(self.words(cells[4]))
            return Target(
                floor: try #require(Int(cells[0].filter { $0 != " " })),
                name: self.words(cells[1]).joined(separator: ", "),
                imports: words.contains("Package.swift") ? nil : words
            )
        }
    }

    /// The targets of the product, as the package declares them.
    private static func declared() throws -> [Target] {
        let package = try MarkdownPage("Package.swift").lines.joined(separator: "\n")
        let product = package.prefix(upTo: try #require(package.firstRange(of: "// Tests")).lowerBound)
        let products = Dictionary(
            uniqueKeysWithValues: package.matches(of: /let (\w+): Target\.Dependency = \.product\(name: "(\w+)"/)
                .map { (String($0.1), String($0.2)) }
        )
        return try product.split(separator: "// Floor ").dropFirst().flatMap { floor in
            let level = try #require(floor.first?.wholeNumberValue)
            let heads = floor.matches(
                of: /(\bsource|\.target|\.systemLibrary|\.executableTarget)\(\s*(?:name: )?"(\w+)"/
            )
            return heads.enumerated().map { place, head in
                let end = place + 1 < heads.count ? heads[place + 1].range.lowerBound : floor.endIndex
                let list = floor[head.range.upperBound..<end].drop { $0 != "[" }.prefix { $0 != "]" }
                let words = head.1 == ".systemLibrary" ? [] : list.matches(of: /\w+/).map { String($0.0) }
                return Target(floor: level, name: String(head.2), imports: Set(words.map { products[$0] ?? $0 }))
            }
        }
    }

    @Test("its table has each target of the package on its floor, with what it may import")
    func targets() throws {
        let (listed, declared) = (try Self.listed(), try Self.declared())
        #expect(listed.map(\.name).sorted() == declared.map(\.name).sorted())
        for target in declared {
            let row = try #require(listed.first { $0.name == target.name }, "\(target.name)")
            #expect(row.floor == target.floor, "\(target.name)")
            #expect(row.imports ?? target.imports == target.imports, "\(target.name)")
        }
        #expect(listed.filter { $0.imports == nil }.map(\.name) == ["clamor", "RunControl", "Scenario"])
    }

    @Test("its table has each folder of Sources")
    func folders() throws {
        let folder = MarkdownPage.root.appending(path: "Sources").path
        let folders = try FileManager.default.contentsOfDirectory(atPath: folder).filter { !$0.hasPrefix(".") }
        #expect(try Self.listed().map(\.name).sorted() == folders.sorted())
    }

    @Test("imports go down: only Pages, and targets of the lowest floor, import from their own floor")
    func floors() throws {
        let declared = try Self.declared()
        let floors = Dictionary(uniqueKeysWithValues: declared.map { ($0.name, $0.floor) })
        let level = declared.flatMap { target in
            (target.imports ?? []).filter { floors[$0] ?? -1 >= target.floor }.map { (target, $0) }
        }
        for (target, other) in level {
            let isAllowed = target.floor == 0 && floors[other] == 0 || (target.name, other) == ("Pages", "Report")
            #expect(isAllowed, "\(target.name) imports \(other)")
        }
    }

    @Test("the most important types of a target are declared in it")
    func types() throws {
        for cells in try Self.rows() {
            let (name, types) = (Self.words(cells[1]).first ?? "", Self.words(cells[3]))
            let folder = MarkdownPage.root.appending(path: "Sources/\(name)")
            let files =
                FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?
                .compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" } ?? []
            #expect(files.isEmpty == types.isEmpty, "\(name)")
            let declared = try Set(files.flatMap { try Self.types(in: String(contentsOf: $0, encoding: .utf8)) })
            #expect(Set(types).subtracting(declared) == [], "\(name)")
        }
    }

    /// The types that a file declares at its top level.
    private static func types(in text: String) -> [String] {
        text.split(separator: "\n").filter { $0.first?.isLetter ?? false }.compactMap { line in
            line.firstMatch(of: /\b(?:struct|class|enum|actor|protocol) (\w+)/).map { String($0.1) }
        }
    }

    @Test("it has 296 lines at most")
    func length() throws {
        #expect(try Self.page.get().lines.count <= 296)
    }
}
