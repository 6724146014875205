/// A login by a token that the server gave out before: one message each way, and both sides prove that they know it.
///
/// Spec: draft-schmaus-kitten-sasl-ht-08, which XEP-0484 uses.
package struct HashedTokenMechanism: SASLMechanism {
    /// The known mechanisms of the family, the preferred one first (XEP-0484 §6).
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Bound to the server's certificate.
        case endPoint = "HT-SHA-256-ENDP"
        /// Bound to nothing.
        case unbound = "HT-SHA-256-NONE"

        /// The data of its channel binding; `nil` where TLS has none of its type.
        func data(in available: [SASLChannelBinding]) -> [UInt8]? {
            switch self {
            case .endPoint: available.first { $0.kind == .tlsServerEndPoint }?.data
            case .unbound: []
            }
        }

        /// Whether a login by it is bound to the TLS session.
        package var isBound: Bool { self == .endPoint }

        /// The best of the offered mechanisms.
        ///
        /// - Parameters:
        ///   - offered: names, in any order; unknown ones are passed over.
        ///   - available: the channel bindings of this TLS session.
        ///   - requiresBinding: whether unbound ones are left out.
        /// - Returns: `nil` where none can be used.
        package static func best(
            of offered: [String],
            available: [SASLChannelBinding],
            requiresBinding: Bool = false
        ) -> Kind? {
            self.allCases.first { kind in
                offered.contains(kind.rawValue) && kind.data(in: available) != nil && (kind.isBound || !requiresBinding)
            }
        }
    }

    private enum State {
        case idle
        case awaitsProof([UInt8])
    }

    private let kind: Kind
    private let user: [UInt8]
    private let token: [UInt8]
    private let binding: [UInt8]
    private var state = State.idle

    package var name: String { self.kind.rawValue }

    /// - Parameters:
    ///   - kind: the mechanism that the token was given out for.
    ///   - user: the account's local part; not empty, without U+0000.
    ///   - token: as the server gave it out; not empty.
    ///   - available: the channel bindings of this TLS session.
    /// - Throws: ``SASLError/credentials(_:)`` for an empty text, U+0000 in the user name, or a missing binding.
    package init(_ kind: Kind, user: String, token: String, available: [SASLChannelBinding] = []) throws(SASLError) {
        guard !user.isEmpty, !user.utf8.contains(0) else {
            throw .credentials("\(kind.rawValue) needs a user name without U+0000")
        }
        guard !token.isEmpty else { throw .credentials("\(kind.rawValue) needs a token, and it is empty") }
        guard let binding = kind.data(in: available) else {
            throw .credentials("\(kind.rawValue) needs a channel binding, and the connection has none")
        }
        self.kind = kind
        self.user = Array(user.utf8)
        self.token = Array(token.utf8)
        self.binding = binding
    }

    package mutating func begin() throws(SASLError) -> [UInt8]? {
        self.state = .awaitsProof(self.code("Responder"))
        return self.user + [0] + self.code("Initiator")
    }

    package mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] {
        throw .malformed("a challenge comes, and \(self.name) has none")
    }

    package mutating func finish(_ data: [UInt8]?) throws(SASLError) {
        guard case .awaitsProof(let expected) = self.state, let data, data.equalsInConstantTime(expected) else {
            throw .serverNotVerified
        }
        self.state = .idle
    }

    private func code(_ side: String) -> [UInt8] {
        SCRAMHash.sha256.authenticationCode(of: Array(side.utf8) + self.binding, key: self.token)
    }
}
