package import LoadEngine
package import Measurement

/// The exit status of the program.
///
/// Scripts depend on the codes (`man sysexits`, and k6 for 97 to 105).
///
/// If several apply, the first in the order of declaration is used.
package enum ExitStatus: Int32, Sendable, CaseIterable {
    /// Wrong usage, an unreadable input, or a load that is too large for this host.
    case usage = 64
    /// An invalid scenario or result file.
    case dataError = 65
    /// Results cannot be written; detected before the first socket is opened.
    case cannotCreate = 73
    /// Every connect attempt failed, all connections were lost and no reconnect succeeded, or the server stopped
    /// answering for good.
    case unavailable = 69
    /// SIGINT, SIGTERM or SIGHUP before the planned end.
    case interrupted = 105
    /// With `--strict`: the ledger could not account for every message.
    case unreconciled = 97
    /// With `--strict`: the generator, not the server, limited the load.
    case generatorLimited = 98
    case thresholdFailed = 99
    /// All checks passed.
    case success = 0

    /// The status to use if several apply.
    package static func first(_ statuses: [ExitStatus]) -> ExitStatus {
        self.allCases.first { statuses.contains($0) } ?? .success
    }

    /// The first status that applies to a run, to merged segments or to a decode, in the order of declaration.
    ///
    /// - Parameters:
    ///   - record: the finished record, with verdict and thresholds.
    ///   - isStrict: `--strict`.
    ///   - isWritten: all result files are on disk.
    package init(of record: RunRecord, isStrict: Bool, isWritten: Bool = true) {
        let codes = Set(record.verdict?.reasons.map(\.code) ?? [])
        let isSilent = codes.contains(Verdict.Reason.silentCode)
        let answered: ExitStatus = isSilent ? .unavailable : .success
        let held: ExitStatus = record.thresholds.allSatisfy(\.ok) ? answered : .thresholdFailed
        guard isWritten else {
            self = .cannotCreate
            return
        }
        switch record.verdict?.state {
        case .aborted where !codes.isDisjoint(with: Verdict.Reason.unavailableCodes): self = .unavailable
        case .aborted where codes.contains(Verdict.Reason.thresholdCode) && !codes.contains(Verdict.Reason.signalCode):
            self = held
        // A segment that ended early did not measure the whole plan, whatever the cause.
        case .aborted: self = .interrupted
        // The speed of a decoder that loses packets has no meaning, so this does not need --strict.
        case .unreconciled where isStrict || codes.contains(Verdict.Reason.decodedCode): self = .unreconciled
        case .generatorLimited where isStrict && !isSilent: self = .generatorLimited
        case .unreconciled, .generatorLimited, .valid, nil: self = held
        }
    }

    /// The status for a segment without results.
    ///
    /// - Parameters:
    ///   - code: the exit status or signal number of its process.
    ///   - isSignal: whether `code` is a signal number.
    package init(ofLostSegment code: Int32, isSignal: Bool) {
        let known = isSignal ? nil : ExitStatus(rawValue: code)
        self = known == .success ? .dataError : known ?? .dataError
    }

    /// The status of a search for the largest load.
    ///
    /// - Parameters:
    ///   - answer: `nil` if the search did not finish.
    ///   - isStopped: whether a signal stopped it.
    ///   - failure: the status of a step that did not run.
    ///   - isStrict: `--strict`.
    package init(of answer: CapacityAnswer?, isStopped: Bool, failure: ExitStatus?, isStrict: Bool) {
        if isStopped {
            self = .interrupted
            return
        }
        if let failure {
            self = failure
            return
        }
        switch answer {
        case .generatorLimited where isStrict: self = .generatorLimited
        case .nothingHolds: self = .thresholdFailed
        case .found, .atLeast, .generatorLimited, nil: self = .success
        }
    }

    package init(hasRegressed: Bool) { self = hasRegressed ? .thresholdFailed : .success }

    package init(isCalibrated: Bool) { self = isCalibrated ? .success : .thresholdFailed }

    /// Whether a run with this status reached its planned end.
    package var leavesWholeRun: Bool {
        switch self {
        case .success, .thresholdFailed, .generatorLimited, .unreconciled: true
        case .usage, .dataError, .cannotCreate, .unavailable, .interrupted: false
        }
    }

    /// One line for standard error about a finished run; `nil` on success.
    package func lastWord(of record: RunRecord) -> String? {
        switch self {
        case .success, .usage, .dataError, .cannotCreate: return nil
        case .unavailable, .interrupted:
            let silent = record.verdict?.reasons.last { $0.code == Verdict.Reason.silentCode }
            return (record.verdict?.state == .aborted ? nil : silent)?.text ?? record.verdict?.reasons.first?.text
        case .unreconciled, .generatorLimited: return record.verdict?.reasons.first?.line
        case .thresholdFailed:
            let states: [(String, ThresholdResult.State)] = [("failed", .broken), ("undecided", .undecided)]
            let words = states.compactMap { word, state -> String? in
                let own = record.thresholds.filter { $0.state == state }.map { "'\($0.expression)'" }
                return own.isEmpty ? nil : "threshold \(word): " + own.joined(separator: ", ")
            }
            return words.joined(separator: "; ")
        }
    }
}
