/// Why no mechanism could be chosen: one line that says what was offered and what can be done.
package enum SASLChoiceError: Error, Hashable, Sendable {
    case nothingOffered
    /// None of these can be used with the credentials given.
    case noneShared(offered: [String])
    /// The mechanism asked for is not among these.
    case notOffered(String, offered: [String])
    /// The mechanism asked for is not known here.
    case unknown(String)
    /// Only PLAIN is left, and the connection is not encrypted.
    case plainWithoutTLS
    case noPassword(String)
    /// Channel binding is wanted, and there is none that both sides have.
    case noBinding(offered: [String])
    /// The server offers types of channel binding but no mechanism for them: its list was tampered with.
    case bindingStripped([String])
    /// User name or password cannot be used with the mechanism.
    case credentials(SASLError)
}

extension SASLChoiceError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .nothingOffered: "the server offers no way to log in"
        case .noneShared(let offered): "the server offers \(Self.listed(offered)), and none of it can be used here"
        case .notOffered(let name, let offered):
            "\(SASLError.inOneLine(name)) was asked for, and the server offers \(Self.listed(offered))"
        case .unknown(let name): "\(SASLError.inOneLine(name)) is no mechanism that is known here"
        case .plainWithoutTLS:
            "the server wants the password in clear, and there is no TLS: require TLS, or allow PLAIN without it"
        case .noPassword(let name): "\(SASLError.inOneLine(name)) wants a password, and there is none"
        case .noBinding(let offered):
            "channel binding is wanted, and with \(Self.listed(offered)) there is none that both sides have"
        case .bindingStripped(let types):
            "the server knows channel binding (\(Self.listed(types))) and offers no -PLUS mechanism: its list was cut"
        case .credentials(let error): error.words
        }
    }

    private static func listed(_ names: [String]) -> String {
        guard !names.isEmpty else { return "nothing" }
        let shown = names.prefix(12).map { SASLError.inOneLine(String($0.prefix(40))) }.joined(separator: ", ")
        return names.count > 12 ? "\(shown) and \(names.count - 12) more" : shown
    }
}
