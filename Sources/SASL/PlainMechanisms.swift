/// A mechanism whose client says all it has to say at once.
///
/// It proves nothing of the server; what the server sends along has no meaning.
package protocol OneMessageMechanism: SASLMechanism {
    var message: [UInt8] { get }
}

extension OneMessageMechanism {
    package mutating func begin() throws(SASLError) -> [UInt8]? { self.message }

    package mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] {
        throw .malformed("a challenge comes, and \(self.name) has none")
    }

    package mutating func finish(_ data: [UInt8]?) throws(SASLError) {}
}

/// User name and password in clear.
///
/// Spec: RFC 4616.
package struct PLAINMechanism: OneMessageMechanism {
    package let message: [UInt8]

    package var name: String { "PLAIN" }

    /// - Parameters:
    ///   - user: 1...255 bytes without U+0000.
    ///   - password: the same.
    ///   - authorizationIdentity: the identity to act as, 0...255 bytes; empty for the user's own.
    /// - Throws: ``SASLError/credentials(_:)`` for what is too long, empty or holds U+0000.
    package init(user: String, password: String, authorizationIdentity: String = "") throws(SASLError) {
        for (what, text, minimum) in [
            ("user name", user, 1), ("password", password, 1), ("authorization identity", authorizationIdentity, 0),
        ] {
            guard (minimum...255).contains(text.utf8.count) else {
                throw .credentials("PLAIN needs a \(what) of \(minimum) to 255 bytes, and it has \(text.utf8.count)")
            }
            guard !text.utf8.contains(0) else {
                throw .credentials("the \(what) holds U+0000, which PLAIN cannot send")
            }
        }
        self.message = Array(authorizationIdentity.utf8) + [0] + Array(user.utf8) + [0] + Array(password.utf8)
    }
}

/// The identity comes from another layer, such as a client certificate.
///
/// Spec: RFC 4422 appendix A.
package struct EXTERNALMechanism: OneMessageMechanism {
    package let message: [UInt8]

    package var name: String { "EXTERNAL" }

    /// - Parameter authorizationIdentity: the identity to act as; empty for the one that the server derives.
    /// - Throws: ``SASLError/credentials(_:)`` for U+0000 in it.
    package init(authorizationIdentity: String = "") throws(SASLError) {
        guard !authorizationIdentity.utf8.contains(0) else {
            throw .credentials("the authorization identity holds U+0000, which EXTERNAL cannot send")
        }
        self.message = Array(authorizationIdentity.utf8)
    }
}

/// No identity at all.
///
/// Spec: RFC 4505.
package struct ANONYMOUSMechanism: OneMessageMechanism {
    package let message: [UInt8]

    package var name: String { "ANONYMOUS" }

    /// - Parameter trace: for the server's log; 0...255 characters (§2).
    /// - Throws: ``SASLError/credentials(_:)`` for more.
    package init(trace: String = "") throws(SASLError) {
        guard trace.unicodeScalars.count <= 255 else {
            throw .credentials("ANONYMOUS allows 255 characters, and there are \(trace.unicodeScalars.count)")
        }
        self.message = Array(trace.utf8)
    }
}
