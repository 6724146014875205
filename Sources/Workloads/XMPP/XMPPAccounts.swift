/// The outcome of a client's registration or removal of its account.
package enum AccountFate: UInt8, Hashable, Sendable {
    /// No request was sent to the server.
    case untouched
    case created
    case existed
    case refused
    /// The request was sent and not answered, so the server may have carried it out.
    case unknown
    case removed
}

/// The server's reason for not registering or removing an account.
package struct AccountRefusal: Hashable, Sendable {
    /// The kind among the errors of a run.
    package var kind: String
    package var words: String

    package init(kind: String, words: String) {
        self.kind = kind
        self.words = words
    }
}

/// One account at the end of a run that registers or removes accounts.
package struct AccountResult: Hashable, Sendable {
    /// The client's number in the run.
    package var number: Int
    package var fate: AccountFate
    /// The client was started.
    package var isBegun: Bool
    /// Set if the account was neither registered nor removed.
    package var refusal: AccountRefusal?
}
