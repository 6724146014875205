/// The options of `clamor run --repeat`, read and checked: consecutive runs of a scenario.
package struct SeriesOptions: Sendable {
    /// One side of the series: the scenario itself, or its opponent.
    package struct Side: Sendable {
        /// `a` or `b`: also the directory of its runs.
        package var name: String
        package var scenario: ScenarioOptions
        /// The command line of a run, but for where its results go.
        package var arguments: [String]
    }

    /// The number of runs of each side.
    package var runs: Int
    /// One, or two that are taken in turn.
    package var sides: [Side]
    /// Its sides are known at the end.
    package var comparison = CompareOptions()
    package var outputDirectory: String?
    package var isCheck = false
    /// The sides are judged after each pair, until it is decided or so many nanoseconds are over.
    package var longest: Int64?
}

extension SeriesOptions {
    /// Where the runs of a side are, below the directory of the series.
    package func folder(of side: Side) -> String? { self.sides.count > 1 ? side.name : nil }

    /// The name of a run among those of its side, so that they sort as they were made.
    package func name(ofRun number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: String(self.runs).count - digits.count) + digits
    }

    /// The command line of a run.
    package func arguments(of side: Side, directory: String) -> [String] {
        side.arguments + ["--out", directory, "--quiet"]
    }
}

package enum Opponent: Hashable, Sendable {
    /// Another scenario.
    case file(String)
    /// Another server for the same scenario.
    case target(String)
    /// The same scenario with another value of a variable.
    case variable(String)

    /// Reads one word; `isFile`: whether there is such a file.
    ///
    /// - Throws: what it could have been.
    package init(_ word: String, isFile: (String) -> Bool) throws(QuantityError) {
        let name = word.prefix { $0 != "=" }
        if name.count < word.count, ScenarioVariables.isName(name) {
            self = .variable(word)
        } else if isFile(word) || word.hasSuffix(".yaml") || word.hasSuffix(".yml") {
            self = .file(word)
        } else if TargetText.isTarget(word) {
            self = .target(word)
        } else {
            throw QuantityError(
                "'\(Redaction.hideURLSecrets(in: word))' is no file here, no server such as host:1884 or "
                    + "mqtt://host:1884, and no variable such as RATE=2000"
            )
        }
    }
}

/// A server, as `target:` of a scenario has it or shorter.
enum TargetText {
    private static let schemes: Set = ["mqtt", "mqtts", "ws", "wss", "xmpp", "xmpps"]

    /// `embedded`, `mqtt://host:1883`, or `host:1883`.
    static func isTarget(_ text: String) -> Bool {
        if text == "embedded" { return true }
        if let scheme = text.firstRange(of: "://") { return self.schemes.contains(String(text[..<scheme.lowerBound])) }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { return false }
        let host = text[..<colon]
        // Of an IPv6 address the brackets tell where it ends.
        return !host.isEmpty && (host.hasPrefix("[") ? host.hasSuffix("]") : !host.contains { ":/ @".contains($0) })
    }

    /// With the scheme of what it takes the place of, where it has none.
    static func whole(_ text: String, like other: String?) -> String {
        if text == "embedded" || text.contains("://") { return text }
        let scheme = other?.firstRange(of: "://").map { other?[..<$0.lowerBound] ?? "mqtt" } ?? "mqtt"
        return "\(scheme)://\(text)"
    }
}
