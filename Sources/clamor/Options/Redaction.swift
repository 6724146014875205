/// Keeps secrets out of everything that is shown or written.
package enum Redaction {
    package static let mask = "***"
    private static let longFlags: Set = ["--password"]

    /// The command line with every secret replaced; for `run.json`.
    package static func command(_ arguments: [String]) -> [String] {
        var result: [String] = []
        var isValue = false
        for argument in arguments {
            if isValue {
                result.append(self.mask)
                isValue = false
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

    /// Replaces what stands between the user's colon and the last `@` before the path of each URL in `text`.
    package static func hideURLSecrets(in text: String) -> String {
        var result = ""
        var rest = text[...]
        while let scheme = rest.firstRange(of: "://") {
            result += rest[..<scheme.upperBound]
            rest = rest[scheme.upperBound...]
            // A password may hold a raw "/" or "?" by mistake: what comes before the last @ of the word is hidden.
            let word = rest.prefix { !$0.isWhitespace && $0 != "'" }
            guard let at = word.lastIndex(of: "@"), let colon = word[..<at].firstIndex(of: ":") else { continue }
            result += "\(word[..<colon]):\(self.mask)"
            rest = rest[at...]
        }
        return result + rest
    }
}
