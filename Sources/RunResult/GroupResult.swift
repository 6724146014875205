package import Measurement

/// The outcome of a group, after all its clients have stopped.
package struct GroupResult: Sendable {
    /// `nil` in a run of one command.
    package let name: String?
    /// Its metrics, books and reasons contain the group's name.
    package let account: LoadAccount
    let mismatches: [Verdict.Reason]
    let notes: [Verdict.Reason]
    let clock: ClockRecord?
    let nothingCameUp: String
    package static let unconnected = "every connect attempt failed"
    /// The client id for a client's number.
    package let clientID: @Sendable (_ number: Int) -> String

    /// - Parameters:
    ///   - name: the name of the group, in a run of several.
    ///   - account: the account as if the group were alone.
    ///   - mismatches: counts of the run's own server that differ from the books.
    ///   - notes: notes in addition to those of the account.
    ///   - clock: the clock of the messages' time stamps, if other segments receive them.
    ///   - nothingCameUp: the reason to print if no client of the group connected.
    ///   - clientID: the client id for a client's number.
    package init(
        _ name: String?,
        _ account: LoadAccount,
        mismatches: [Verdict.Reason] = [],
        notes: [Verdict.Reason] = [],
        clock: ClockRecord? = nil,
        nothingCameUp: String = Self.unconnected,
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
    /// The account with the group's name, for a run of several groups.
    fileprivate func of(group: String) -> LoadAccount {
        var account = self
        for index in account.metrics.indices {
            let metric = account.metrics[index]
            account.metrics[index].labels = metric.labels.of(group: group, metric: metric.name)
        }
        for index in account.absent.indices {
            account.absent[index].labels = account.absent[index].labels.adding(Labels.group, group)
        }
        for index in account.books.indices { account.books[index].group = group }
        account.unreconciled = account.unreconciled.map { $0.of(group: group) }
        account.limited = account.limited.map { $0.of(group: group) }
        return account
    }
}
