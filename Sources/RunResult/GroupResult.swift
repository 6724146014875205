package import Ledger
package import Measurement

/// What became of a group, once everything has stopped.
package struct GroupResult: Sendable {
    /// `nil` in a run of one command.
    package let name: String?
    /// Its metrics, books and reasons name the group.
    package let account: LoadAccount
    let mismatches: [Verdict.Reason]
    let notes: [Verdict.Reason]
    let clock: ClockRecord?
    let nothingCameUp: String
    /// What a client is called, by its number.
    package let clientID: @Sendable (_ number: Int) -> String

    /// - Parameters:
    ///   - name: of the group, in a run of several.
    ///   - account: as if the group were alone.
    ///   - mismatches: counts of the run's own server that differ from the books.
    ///   - notes: beside those of the account.
    ///   - clock: by which messages were stamped, where other segments hear them.
    ///   - nothingCameUp: the words for a group of which no client came up.
    ///   - clientID: what a client is called, by its number.
    package init(
        _ name: String?,
        _ account: LoadAccount,
        mismatches: [Verdict.Reason] = [],
        notes: [Verdict.Reason] = [],
        clock: ClockRecord? = nil,
        nothingCameUp: String = "every connect attempt failed",
        clientID: @escaping @Sendable (Int) -> String
    ) {
        self.name = name
        self.account = name.map { account.of(group: $0) } ?? account
        self.mismatches = mismatches.map { $0.of(group: name) }
        self.notes = (notes + account.notes).map { $0.of(group: name) }
        self.clock = clock
        self.nothingCameUp = nothingCameUp
        self.clientID = clientID
    }
}

extension LoadAccount {
    /// The account as it stands among those of other groups.
    fileprivate func of(group: String) -> LoadAccount {
        var account = self
        for index in account.metrics.indices {
            let metric = account.metrics[index]
            account.metrics[index].labels = metric.labels.of(group: group, metric: metric.name)
        }
        for index in account.books.indices { account.books[index].group = group }
        account.segment?.group = group
        account.unreconciled = account.unreconciled.map { $0.of(group: group) }
        account.limited = account.limited.map { $0.of(group: group) }
        return account
    }
}
