/// An option of another load generator that Clamor does not have, with what Clamor has in its place.
///
/// The article on other tools has the same options.
package struct ForeignOption: Sendable {
    package let name: String
    package let tool: String
    /// The counterpart here, and its spelling.
    let instead: String

    /// `nil` for a word that is no option of these tools.
    static func of(_ word: String) -> ForeignOption? {
        let name = word.hasPrefix("--") ? String(word.prefix { $0 != "=" }) : word
        return self.all.first { $0.name == name }
    }

    var words: String { "\(self.name): an option of \(self.tool); \(self.instead)" }

    /// A line of the file has a tool, its options, and what is here in their place.
    package static let all: [ForeignOption] = {
        let lines = String(decoding: PackageResources.foreign_options_tsv, as: UTF8.self).split(separator: "\n")
        let parts: [[String]] = lines.map { $0.split(separator: "\t").map(String.init) }.filter { $0.count == 3 }
        return parts.flatMap { line in
            line[1].split(separator: " ").map { ForeignOption(name: String($0), tool: line[0], instead: line[2]) }
        }
    }()
}
