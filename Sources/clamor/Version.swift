import CBuildFacts

/// The version of the program.
package enum Version {
    /// The only place that has it: releases, packages, man pages and result files read it from here.
    package static let number = "0.1.0"

    /// The output of `--version`, of which scripts read the first line.
    ///
    /// The other lines are there if the build knew them.
    package static let text = Self.text(facts: clamor_build_facts().map { String(cString: $0) })

    package static func text(facts: String?) -> String {
        let lines = facts?.split(separator: "\n").map(String.init) ?? []
        return (["clamor \(Self.number)"] + lines).joined(separator: "\n")
    }
}
