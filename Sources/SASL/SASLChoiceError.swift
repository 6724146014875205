import DataEncodings

/// The reason why no mechanism could be chosen: one line with the server's offer and the remedy.
package enum SASLChoiceError: Error, Hashable, Sendable {
    case nothingOffered
    /// None of the offered mechanisms can be used with the given credentials.
    case noneShared(offered: [String])
    /// The requested mechanism is not offered.
    case notOffered(String, offered: [String])
    /// The requested mechanism is unknown.
    case unknown(String)
    /// Only PLAIN is left, and the connection is not encrypted.
    case plainWithoutTLS
    case noPassword(String)
    /// Channel binding is required, and both sides have none in common.
    case noBinding(offered: [String])
    /// The server offers types of channel binding but no mechanism for them: its list was tampered with.
    case bindingStripped([String])
    /// The server offers bound mechanisms but no types of channel binding: its list was tampered with.
    case bindingTypesStripped
    /// User name or password cannot be used with the mechanism.
    case credentials(SASLError)
}

extension SASLChoiceError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .nothingOffered: "the server offers no way to log in"
        case .noneShared(let offered): "the server offers \(Self.listed(offered)), none of which can be used here"
        case .notOffered(let name, let offered):
            "\(OneLine.of(name)) was requested, but the server offers \(Self.listed(offered))"
        case .unknown(let name): "\(OneLine.of(name)) is an unknown mechanism"
        case .plainWithoutTLS:
            "the server accepts the password only in clear, and there is no TLS: require TLS, or allow PLAIN without it"
        case .noPassword(let name): "\(OneLine.of(name)) needs a password, and none is given"
        case .noBinding(let offered):
            "channel binding is required, and with \(Self.listed(offered)) both sides have none in common"
        case .bindingStripped(let types):
            "the server supports channel binding (\(Self.listed(types))) but no -PLUS mechanism: its list was cut"
        case .bindingTypesStripped:
            "the server offers -PLUS mechanisms but no types of channel binding: its list was cut"
        case .credentials(let error): error.words
        }
    }

    private static func listed(_ names: [String]) -> String {
        guard !names.isEmpty else { return "nothing" }
        let shown = names.prefix(12).map { OneLine.of(String($0.prefix(40))) }.joined(separator: ", ")
        return names.count > 12 ? "\(shown) and \(names.count - 12) more" : shown
    }
}
