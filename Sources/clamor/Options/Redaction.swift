/// Keeps secrets out of everything that is shown or written.
package enum Redaction {
    package static let mask = "***"
    private static let longFlags: Set = ["--password", "--psk"]
    /// Values that are secret in part.
    private static let partlySecret: [String: @Sendable (String) -> String] = [
        "--header": Self.hideHeaderValue, "--ws-headers": Self.hideHeaderValue,
        "--set": Self.hideVariable, "--against": Self.hideVariable, "--path": Self.hideQuery(in:),
        "--raw": { $0.hasPrefix("@") ? $0 : Self.mask },
    ]

    /// The command line with every secret replaced; for `run.json`.
    package static func command(_ arguments: [String]) -> [String] {
        var result: [String] = []
        var isValue = false
        var hide: (@Sendable (String) -> String)?
        for argument in arguments {
            if isValue {
                result.append(self.mask)
                isValue = false
            } else if let hideValue = hide {
                result.append(hideValue(argument))
                hide = nil
            } else if let hideNext = self.partlySecret[argument] {
                result.append(argument)
                hide = hideNext
            } else if let equals = argument.firstIndex(of: "="),
                let hideValue = self.partlySecret[String(argument[..<equals])]
            {
                result.append(argument[...equals] + hideValue(String(argument[argument.index(after: equals)...])))
            } else if argument == "-P" || self.longFlags.contains(argument) {
                result.append(argument)
                isValue = true
            } else if argument.hasPrefix("-P") {
                result.append("-P\(self.mask)")
            } else if let flag = self.longFlags.first(where: { argument.hasPrefix("\($0)=") }) {
                result.append("\(flag)=\(self.mask)")
            } else {
                result.append(self.hideURLSecrets(in: argument))
            }
        }
        return result
    }

    /// A header's name stays.
    private static func hideHeaderValue(_ header: String) -> String {
        header.firstIndex(of: ":").map { "\(header[..<$0]): \(self.mask)" } ?? self.mask
    }

    /// A value whose name says that it is secret, or one that `--print-scenario` put a variable for.
    private static func hideVariable(_ variable: String) -> String {
        let name = variable.prefix { $0 != "=" }
        let isSecret =
            name.hasPrefix("CLAMOR_")
            || ["PASS", "SECRET", "TOKEN", "KEY", "PSK"].contains { name.uppercased().contains($0) }
        return isSecret ? "\(name)=\(self.mask)" : self.hideURLSecrets(in: variable)
    }

    /// Signed URLs carry their signature in the query.
    static func hideQuery(in path: String) -> String {
        path.firstIndex(of: "?").map { "\(path[..<$0])?\(self.mask)" } ?? path
    }

    /// Replaces what stands between the user's colon and the last `@` before the path of each URL in `text`,
    /// and its query.
    package static func hideURLSecrets(in text: String) -> String {
        var result = ""
        var rest = text[...]
        while let scheme = rest.firstRange(of: "://") {
            result += rest[..<scheme.upperBound]
            rest = rest[scheme.upperBound...]
            // A password may hold a raw "/" or "?" by mistake: what comes before the last @ of the word is hidden.
            let word = rest.prefix { !$0.isWhitespace && $0 != "'" }
            guard let at = word.lastIndex(of: "@"), let colon = word[..<at].firstIndex(of: ":") else {
                result += self.hideQuery(in: String(word))
                rest = rest[word.endIndex...]
                continue
            }
            result += "\(word[..<colon]):\(self.mask)" + self.hideQuery(in: String(word[at...]))
            rest = rest[word.endIndex...]
        }
        return result + rest
    }
}
