/// Why an authentication was given up.
package enum SASLError: Error, Hashable, Sendable {
    /// The server's message is not what the mechanism wants there; the words say what is wrong.
    case malformed(String)
    /// The server did not prove that it knows the secret (RFC 5802 §3: a missing or wrong `v=`).
    case serverNotVerified
    /// The server refused, with this `e=` (RFC 5802 §7).
    case refused(String)
    /// The server asks for more or fewer rounds of the password's hash than are allowed.
    case iterations(Int, allowed: ClosedRange<Int>)
    /// The user name or password given cannot be used with the mechanism; the words say which and why.
    case credentials(String)

    /// One line for the user, whatever the server says; it shows no secret.
    package var words: String {
        switch self {
        case .malformed(let what): "the server's authentication data is wrong: \(Self.inOneLine(what))"
        case .serverNotVerified: "the server did not prove that it knows the password"
        case .refused(let error): "the server refused the authentication: \(Self.inOneLine(error))"
        case .iterations(let asked, let allowed) where asked < allowed.lowerBound:
            "the server asks for \(asked) rounds of the password's hash, and fewer than \(allowed.lowerBound) are unsafe"
        case .iterations(let asked, let allowed):
            "the server asks for \(asked) rounds of the password's hash, and more than \(allowed.upperBound) are refused"
        case .credentials(let what): what
        }
    }

    /// Writes control characters, line ends and bidirectional controls as `\u{…}`.
    static func inOneLine(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                line += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}

extension SASLError: CustomStringConvertible {
    package var description: String { self.words }
}
