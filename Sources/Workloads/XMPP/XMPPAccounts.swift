/// What became of the account of a client that registers or removes it.
package enum AccountFate: UInt8, Hashable, Sendable {
    /// The server was asked for nothing.
    case untouched
    case created
    /// It was there before.
    case existed
    case refused
    /// The server was asked, and no answer came: it may have done it all the same.
    case unknown
    case removed
}

/// Why the server made, or removed, no account.
package struct AccountRefusal: Hashable, Sendable {
    /// Among the errors of a run.
    package var kind: String
    package var words: String

    package init(kind: String, words: String) {
        self.kind = kind
        self.words = words
    }
}

/// One account at the end of a run that makes or removes accounts.
package struct AccountResult: Hashable, Sendable {
    /// Of the client, in the run.
    package var number: Int
    package var fate: AccountFate
    /// Its turn had come.
    package var isBegun: Bool
    /// Of one that was neither made nor removed.
    package var refusal: AccountRefusal?
}
