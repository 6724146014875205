import DataEncodings

/// Why an authentication was given up.
package enum SASLError: Error, Hashable, Sendable {
    /// The server's message is invalid at this step; the text gives the reason.
    case malformed(String)
    /// The server did not prove that it knows the secret (RFC 5802 §3: a missing or wrong `v=`).
    case serverNotVerified
    /// The server refused, with this `e=` (RFC 5802 §7).
    case refused(String)
    /// The server's iteration count of the password hash is outside the limits.
    case iterations(Int, allowed: ClosedRange<Int>)
    /// The given user name or password cannot be used with the mechanism; the text gives the reason.
    case credentials(String)

    /// The error in one line; it contains no secret.
    package var words: String {
        switch self {
        case .malformed(let what): "the server's authentication data is wrong: \(OneLine.of(what))"
        case .serverNotVerified: "the server did not prove that it knows the password"
        case .refused(let error): "the server refused the authentication: \(OneLine.of(error))"
        case .iterations(let asked, let allowed) where asked < allowed.lowerBound:
            "the server asks for \(asked) rounds of the password's hash, and fewer than \(allowed.lowerBound) are unsafe"
        case .iterations(let asked, let allowed):
            "the server asks for \(asked) rounds of the password's hash, and more than \(allowed.upperBound) are refused"
        case .credentials(let what): what
        }
    }
}

extension SASLError: CustomStringConvertible {
    package var description: String { self.words }
}

/// The reason why no mechanism could be chosen: one line with the server's offer and the remedy.
package enum SASLChoiceError: Error, Hashable, Sendable {
    case nothingOffered
    /// None of the offered mechanisms can be used with the given credentials.
    case noneShared(offered: [String])
    case notOffered(String, offered: [String])
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
