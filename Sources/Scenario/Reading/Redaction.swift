/// Keeps secrets out of everything that is shown or written.
package enum Redaction {
    /// The text that replaces a secret.
    package static let mask = "***"

    /// The command line with every secret replaced; for `run.json`.
    ///
    /// Options of other commands with secrets count as well: a command line that is refused is shown too, and that of
    /// `capacity` ends with another command.
    package static func command(_ arguments: [String]) -> [String] {
        let own = CommandName(arguments: arguments).map { OptionTable.specs(of: $0) } ?? []
        let others = OptionTable.all.filter { if case .none = $0.secrecy { false } else { true } }
        var words = arguments.map(self.hideURLSecrets)
        for option in CommandLineWords(arguments, own + others, passesEnd: true).options {
            guard let value = option.value, let hidden = self.hidden(value, option.spec.secrecy) else { continue }
            let isLong = option.name.hasPrefix("--")
            words[option.range.upperBound - 1] =
                option.isJoined ? option.name + (isLong ? "=" : "") + hidden : hidden
        }
        return words
    }

    /// Keys of a scenario file whose values are shown nowhere, or not as a whole.
    static let secretKeys = Set(
        OptionTable.all.compactMap { spec -> String? in
            if case .none = spec.secrecy { return nil }
            return spec.key?.split(separator: ".").last.map(String.init)
        }
    )

    /// Whether a text of any key may have a secret: an address has a password or a query.
    static func mayHaveSecret(_ text: String) -> Bool { text.contains("://") && text.contains { "@?".contains($0) } }

    /// The value without what is secret of it.
    private static func hidden(_ value: String, _ secrecy: Secrecy) -> String? {
        switch secrecy {
        case .none: nil
        case .whole: self.mask
        case .part(let hide): hide(value)
        }
    }

    /// A header's name stays.
    static func hideHeaderValue(_ header: String) -> String {
        header.firstIndex(of: ":").map { "\(header[..<$0]): \(self.mask)" } ?? self.mask
    }

    /// A value whose name says that it is secret, or one that `--print-scenario` put a variable for.
    static func hideVariable(_ variable: String) -> String {
        let name = variable.prefix { $0 != "=" }
        let words = ["PASS", "SECRET", "TOKEN", "KEY", "PSK", "JWT", "AUTH", "CRED"]
        let isSecret = name.hasPrefix("CLAMOR_") || words.contains { name.uppercased().contains($0) }
        return isSecret ? "\(name)=\(self.mask)" : self.hideURLSecrets(in: variable)
    }

    /// `NAME=VALUE`, alone or joined to its option, without the value of a secret variable.
    ///
    /// Which variables are secret only the file knows.
    package static func hideSetting(_ word: String, where isSecret: ((String) -> Bool)? = nil) -> String {
        let given = word.hasPrefix("--") ? word.drop { $0 != "=" }.dropFirst() : word[...]
        let name = String(given.prefix { $0 != "=" })
        guard given.contains("="), isSecret?(name) ?? ScenarioVariables.isName(name) else { return word }
        return "\(word[..<given.startIndex])\(name)=\(self.mask)"
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
        return self.hideUserInfo(in: result + rest)
    }

    /// Replaces the password of `user:password@host` without a scheme, which is no server but may be given as one.
    private static func hideUserInfo(in text: String) -> String {
        // A file may have as many errors as keys, and few of them an address.
        guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
        return text.replacing(/(^|[\s'",=])([^\s'"@:\/,=]+):(?!\/\/)[^\s'"@]*@/) { "\($0.1)\($0.2):\(self.mask)@" }
    }
}
