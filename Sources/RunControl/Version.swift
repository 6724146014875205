import CBuildFacts
package import Measurement

package enum Version {
    /// The only place that has it: releases, packages, man pages and result files read it from here.
    package static let number = "0.1.0"

    /// The output of `--version`, of which scripts read the first line.
    ///
    /// The other lines are there if the build knew them.
    package static let text = Self.text(facts: Self.facts)

    /// The program for result files, with what the build knew.
    package static let tool = Self.tool(facts: Self.facts)

    private static let facts = clamor_build_facts().map { String(cString: $0) }

    package static func text(facts: String?) -> String {
        (["clamor \(Self.number)"] + Self.lines(facts)).joined(separator: "\n")
    }

    /// The lines are a revision, a compiler with its target, and packages: `.ci/package/facts` writes them.
    package static func tool(facts: String?) -> ToolRecord {
        var tool = ToolRecord(name: "clamor", version: Self.number)
        for line in Self.lines(facts) {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            guard words.count == 2 else { continue }
            switch words[0] {
            case "revision": tool.revision = words[1]
            case "Swift": tool.compiler = line
            default: tool.dependencies = (tool.dependencies ?? [:]).merging([words[0]: words[1]]) { $1 }
            }
        }
        return tool
    }

    private static func lines(_ facts: String?) -> [String] { facts?.split(separator: "\n").map(String.init) ?? [] }
}
