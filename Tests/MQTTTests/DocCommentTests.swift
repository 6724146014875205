import Foundation
import Testing

/// One line of a source, and what stands above it.
private struct Declaration {
    let place: String
    let text: String
    let isDocumented: Bool
}

@Suite("The documentation of the libraries")
struct DocCommentTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func sources(_ target: String) throws -> [(path: String, lines: [String])] {
        let folder = self.root.appending(path: "Sources/\(target)").path
        let files = try #require(FileManager.default.enumerator(atPath: folder))
        var found: [(String, [String])] = []
        while let path = files.nextObject() as? String {
            guard path.hasSuffix(".swift") else { continue }
            let text = try String(contentsOfFile: "\(folder)/\(path)", encoding: .utf8)
            found.append(("\(target)/\(path)", text.components(separatedBy: "\n")))
        }
        return found.sorted { $0.0 < $1.0 }
    }

    /// The public API in the formatted lines of a file: declarations, cases of public enums, requirements of public
    /// protocols.
    private static func declarations(in file: (path: String, lines: [String])) -> [Declaration] {
        var found: [Declaration] = []
        /// The indentation of the members of the public enum or protocol around a line.
        var members: [Int] = []
        for (index, line) in file.lines.enumerated() {
            let text = line.drop { $0 == " " }
            let indentation = line.count - text.count
            if let inner = members.last, indentation < inner, !text.isEmpty { members.removeLast() }
            let words = text.split(separator: " ").filter { !$0.hasPrefix("@") }
            let isMember =
                members.last == indentation
                && ["case", "func", "var", "associatedtype", "init", "static", "subscript", "indirect"].contains {
                    words.first?.hasPrefix($0) ?? false
                }
            guard words.first == "public" && words.dropFirst().first != "import" || isMember else { continue }
            var above = index - 1
            // Attributes stand between a declaration and its comment.
            while above >= 0, file.lines[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
            let isDocumented = above >= 0 && file.lines[above].drop { $0 == " " }.hasPrefix("///")
            found.append(
                Declaration(place: "\(file.path):\(index + 1)", text: String(text), isDocumented: isDocumented)
            )
            if words.contains("enum") || words.contains("protocol"), text.hasSuffix("{") {
                members.append(indentation + 4)
            }
        }
        return found
    }

    @Test("every public declaration has a comment", arguments: ["MQTT", "MQTTCodec", "MQTTSQLiteStore"])
    func comments(_ target: String) throws {
        let all = try Self.sources(target).flatMap { Self.declarations(in: $0) }
        #expect(!all.isEmpty)
        let bare = all.filter { !$0.isDocumented }.map { "\($0.place): \($0.text)" }
        #expect(bare == [])
    }

    @Test("the check finds what has none")
    func finds() {
        let lines = """
            /// Told.
            public enum Told {
                /// Told.
                case told
                case bare1
                var hidden: Int {
                    switch self {
                    case .told: 1
                    }
                }
            }
            @frozen
            public struct Bare2 {
                /// Told.
                @inlinable
                public func told() {}
                public var bare3 = 1
                package var hidden = 1
            }
            public import Nothing
            """
        let all = Self.declarations(in: (path: "X", lines: lines.components(separatedBy: "\n")))
        #expect(all.filter { !$0.isDocumented }.map(\.place) == ["X:5", "X:6", "X:13", "X:17"])
    }

    @Test("the article of the library names every public type of it", arguments: ["MQTT", "MQTTSQLiteStore"])
    func article(_ target: String) throws {
        let folder = Self.root.appending(path: "Sources/\(target)/\(target).docc")
        let article = try String(contentsOf: folder.appending(path: "\(target).md"), encoding: .utf8)
        for file in try Self.sources(target) {
            for line in file.lines where line.hasPrefix("public ") && !line.hasPrefix("public import") {
                let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                guard
                    let kind = words.firstIndex(where: {
                        ["struct", "class", "enum", "protocol", "actor"].contains($0)
                    })
                else { continue }
                let name = words[kind + 1]
                #expect(article.contains("``\(name)``"), "\(file.path)")
            }
        }
    }
}
