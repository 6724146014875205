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
