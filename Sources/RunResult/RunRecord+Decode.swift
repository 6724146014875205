package import Measurement

package enum DecodeEnd: Hashable, Sendable {
    case planned
    case interrupted
    case thresholdBroken
    case connection(String)
    /// A lane decoded something other than what was encoded.
    case decoded(String)
}

/// The share of a core that a lane's thread used, for lanes without waits: other processes used the rest.
package struct LaneShare: Sendable {
    /// Below this share the measured rates are too low.
    private static let limit = 0.9

    package var lane: String
    /// The share, 0 to 1.
    package var share: Double
    package var words: String

    package init(lane: String, share: Double, words: String) {
        self.lane = lane
        self.share = share
        self.words = words
    }

    fileprivate var reason: Verdict.Reason? {
        guard self.share < Self.limit else { return nil }
        return Verdict.Reason(
            code: "core-shared",
            text: "\(self.lane): the decoding thread had a core for \(self.words) of its time, under 90 %; "
                + "rates are that much too low, times per packet or stanza count CPU time and are not",
            measured: self.share,
            limit: Self.limit
        )
    }
}

extension RunRecord {
    /// Adds the verdict of a decode, from its metrics.
    ///
    /// - Parameters:
    ///   - end: the reason for its end.
    ///   - thresholds: the thresholds to check.
    ///   - broken: the threshold that ended it.
    ///   - audit: the audit of the host.
    ///   - shares: the core shares of lanes in memory.
    package mutating func judge(
        _ end: DecodeEnd,
        by thresholds: [Threshold],
        broken: String?,
        _ audit: GeneratorAudit,
        shares: [LaneShare]
    ) {
        var verdict = Verdict()
        switch end {
        case .planned: break
        case .interrupted: verdict.add(.aborted, .signal)
        case .thresholdBroken: verdict.add(.aborted, .threshold(broken))
        case .connection(let words): verdict.add(.aborted, .connection(words))
        case .decoded(let words): verdict.add(.unreconciled, .decoded(words))
        }
        verdict.add(.generatorLimited, audit.reasons + shares.compactMap(\.reason))
        self.verdict = verdict
        self.thresholds = thresholds.results(in: self, broken: broken)
    }
}
