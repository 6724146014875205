/// How the program ends.
///
/// The codes are a contract with scripts (`man sysexits`, and k6 for 97 to 105).
///
/// Where several apply, the first in the order of declaration is the one given.
package enum ExitStatus: Int32, Sendable, CaseIterable {
    /// Wrong usage, an unreadable input, or a load that this host cannot carry.
    case usage = 64
    /// A scenario or result file that is not what it should be.
    case dataError = 65
    /// Results cannot be written; found out before the first socket.
    case cannotCreate = 73
    /// Every connect attempt failed, or all connections were lost and none came back.
    case unavailable = 69
    /// SIGINT or SIGTERM before the planned end.
    case interrupted = 105
    /// With `--strict`: the ledger could not tell what became of every message.
    case unreconciled = 97
    /// With `--strict`: the generator, not the server, was the limit.
    case generatorLimited = 98
    /// A threshold failed.
    case thresholdFailed = 99
    /// Everything held.
    case success = 0
}

extension ExitStatus {
    /// Of several the one that is given.
    package static func first(_ statuses: [ExitStatus]) -> ExitStatus {
        self.allCases.first { statuses.contains($0) } ?? .success
    }
}
