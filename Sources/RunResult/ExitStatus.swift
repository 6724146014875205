package import LoadEngine
package import Measurement

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

extension ExitStatus {
    /// The first status that applies to a run, to merged segments or to a decode, in the order of the design.
    ///
    /// - Parameters:
    ///   - record: finished, with verdict and thresholds.
    ///   - isStrict: `--strict`.
    ///   - isWritten: all result files are on disk.
    package init(of record: RunRecord, isStrict: Bool, isWritten: Bool = true) {
        let codes = Set(record.verdict?.reasons.map(\.code) ?? [])
        let held: ExitStatus = record.thresholds.allSatisfy(\.ok) ? .success : .thresholdFailed
        guard isWritten else {
            self = .cannotCreate
            return
        }
        switch record.verdict?.state {
        case .aborted where !codes.isDisjoint(with: Verdict.Reason.unavailableCodes): self = .unavailable
        case .aborted where codes.contains(Verdict.Reason.thresholdCode) && !codes.contains(Verdict.Reason.signalCode):
            self = held
        // Whatever else ended a segment before its plan did it is not all that was to be measured.
        case .aborted: self = .interrupted
        // The speed of a decoder that loses packets is worth nothing, so this needs no --strict.
        case .unreconciled where isStrict || codes.contains(Verdict.Reason.decodedCode): self = .unreconciled
        case .generatorLimited where isStrict: self = .generatorLimited
        case .unreconciled, .generatorLimited, .valid, nil: self = held
        }
    }

    /// Of a segment that left no results.
    ///
    /// - Parameters:
    ///   - code: how it ended: an exit status, or a signal's number.
    ///   - isSignal: whether `code` is a signal's.
    package init(ofLostSegment code: Int32, isSignal: Bool) {
        let known = isSignal ? nil : ExitStatus(rawValue: code)
        self = known == .success ? .dataError : known ?? .dataError
    }

    /// Of a search for the largest load.
    ///
    /// - Parameters:
    ///   - answer: `nil` where the search did not come to its end.
    ///   - isStopped: by a signal.
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

    /// Of a comparison.
    package init(hasRegressed: Bool) { self = hasRegressed ? .thresholdFailed : .success }

    /// Whether a run with this status came to its planned end, whatever was found there.
    package var leavesWholeRun: Bool {
        switch self {
        case .success, .thresholdFailed, .generatorLimited, .unreconciled: true
        case .usage, .dataError, .cannotCreate, .unavailable, .interrupted: false
        }
    }

    /// One line for standard error about a finished run, where the status is not success.
    package func lastWord(of record: RunRecord) -> String? {
        switch self {
        case .success, .usage, .dataError, .cannotCreate: return nil
        case .unavailable, .interrupted, .unreconciled, .generatorLimited: return record.verdict?.reasons.first?.text
        case .thresholdFailed:
            let failed = record.thresholds.filter { !$0.ok }.map { "'\($0.expression)'" }
            return "threshold failed: " + failed.joined(separator: ", ")
        }
    }
}
