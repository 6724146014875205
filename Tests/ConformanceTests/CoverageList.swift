import Foundation

/// The list in `Coverage`: each behaviour, and the tests that would fail without it.
struct CoverageList {
    /// The content of a row's last cell.
    enum Proof: Hashable {
        /// Tests, as `Target/File.function`, and vectors, as `mqtt/file: name` and `xmpp-streams/file`.
        case tests([String])
        /// Why there is no test of it, or can be none.
        case none(String)
        /// It ought to be so, and is not.
        case gap(String)
    }

    struct Row: Hashable {
        let id: String
        let behaviour: String
        let proof: Proof
    }

    /// The sections of the checklist, in its order.
    static let sections =
        (1...15).map { "A\($0)" } + (1...9).map { "B\($0)" } + [
            "A16", "A17", "A18", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "S",
        ]

    private(set) var rows: [Row] = []
    /// Problems of the tables themselves.
    private(set) var problems: [String] = []

    /// The list as it lies beside this file.
    static func stored() throws -> CoverageList {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Coverage")
        var list = CoverageList()
        for section in Self.sections {
            let text = try String(contentsOf: folder.appendingPathComponent("\(section).md"), encoding: .utf8)
            list.read(text, section: section)
        }
        return list
    }

    /// Takes the rows of one section's table; ids run from 1 on.
    mutating func read(_ text: String, section: String) {
        var count = 0
        for line in text.split(separator: "\n") where line.hasPrefix("|") {
            let cells = line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            if cells.first == "id" || cells.first?.hasPrefix("---") == true { continue }
            count += 1
            guard line.hasSuffix("|"), cells.count == 3 else {
                self.problems.append("\(section), row \(count): not three cells")
                continue
            }
            if cells[0] != "\(section).\(count)" {
                self.problems.append("\(cells[0]): is twice, or out of its turn; \(section).\(count) was expected")
            }
            if cells[1].isEmpty { self.problems.append("\(cells[0]): says no behaviour") }
            guard let proof = Self.proof(cells[2]) else {
                self.problems.append("\(cells[0]): has neither a test nor a reason")
                continue
            }
            self.rows.append(Row(id: cells[0], behaviour: cells[1], proof: proof))
        }
        if count == 0 { self.problems.append("\(section): has no rows") }
    }

    private static func proof(_ cell: String) -> Proof? {
        for (mark, proof) in [("none: ", Proof.none), ("gap: ", Proof.gap)] where cell.hasPrefix(mark) {
            return proof(String(cell.dropFirst(mark.count)))
        }
        // Whatever stands between two backticks.
        let references = cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .compactMap { $0.offset % 2 == 1 ? String($0.element) : nil }
        return references.isEmpty ? nil : .tests(references)
    }
}

/// The valid references: the tests in the sources, and the vectors.
struct KnownTests {
    private let root: URL
    private var functions: [String: Set<String>] = [:]
    private var vectors: [String: Set<String>] = [:]

    init() {
        self.root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    }

    /// Whether there is such a test, or such a vector.
    mutating func contains(_ reference: String) -> Bool {
        if let colon = reference.range(of: ": "), reference.hasPrefix("mqtt/") {
            let file = String(reference[..<colon.lowerBound])
            return self.vectorNames(file).contains(String(reference[colon.upperBound...]))
        }
        if reference.hasPrefix("xmpp-streams/") {
            let path = self.root.appendingPathComponent("Vectors/\(reference).txt").path
            return FileManager.default.fileExists(atPath: path)
        }
        guard let dot = reference.lastIndex(of: "."), reference.contains("/") else { return false }
        return self.testNames(String(reference[..<dot])).contains(String(reference[reference.index(after: dot)...]))
    }

    private mutating func testNames(_ file: String) -> Set<String> {
        if let known = self.functions[file] { return known }
        let path = self.root.appendingPathComponent("\(file).swift")
        let names = Self.tests(in: (try? String(contentsOf: path, encoding: .utf8)) ?? "")
        self.functions[file] = names
        return names
    }

    /// The functions marked `@Test`, and the flows that go to every server.
    static func tests(in source: String) -> Set<String> {
        var names: Set<String> = []
        var isMarked = false
        for line in source.split(separator: "\n").map({ $0.trimmingCharacters(in: .whitespaces) }) {
            if line.hasPrefix("@Test") { isMarked = true }
            if let range = line.range(of: "static let "), line.contains("= ServerFlow(") {
                names.insert(String(line[range.upperBound...].prefix { $0 != " " }))
            }
            guard let range = line.range(of: "func "), !line.hasPrefix("//") else { continue }
            if isMarked { names.insert(String(line[range.upperBound...].prefix { $0 != "(" && $0 != "<" })) }
            isMarked = false
        }
        return names
    }

    private struct VectorName: Decodable { let name: String }

    private mutating func vectorNames(_ file: String) -> Set<String> {
        if let known = self.vectors[file] { return known }
        let path = self.root.appendingPathComponent("Vectors/\(file).json")
        let decoded = try? JSONDecoder().decode([VectorName].self, from: Data(contentsOf: path))
        let names = Set((decoded ?? []).map(\.name))
        self.vectors[file] = names
        return names
    }
}
