/// A host that serves a domain's XMPP clients.
package struct ServiceTarget: Hashable, Sendable {
    package let target: Target
    /// TLS begins at once (XEP-0368), without STARTTLS.
    package let isDirectTLS: Bool
}

/// The DNS's answer for one service of a domain.
package enum ServiceAnswer: Hashable, Sendable {
    case records([ServiceRecord])
    /// The only record's target is the root: RFC 2782, "decidedly not available".
    case notOffered
    /// The domain has no records.
    case nothing
    case failed(LookupFailure)
    /// No query was sent.
    case notWanted

    init(_ outcome: DNSOutcome) {
        switch outcome {
        case .nothing: self = .nothing
        case .failed(let failure): self = .failed(failure)
        case .records(let records, _):
            let services = records.compactMap { record in
                if case .service(let service) = record.content { service } else { nil }
            }
            let usable = services.filter { !$0.target.isEmpty && $0.port != 0 }
            self = usable.isEmpty ? .notOffered : .records(usable)
        }
    }
}

/// The targets of a domain, in the order to try them.
///
/// Spec: RFC 6120 §3.2.1, RFC 2782, XEP-0368 §5.
package enum ServiceTargets {
    /// Port of a domain without records (RFC 6120 §3.2.2); the direct one is customary.
    package static let standardPort = 5222
    package static let directPort = 5223
    /// Targets to try at most: a connect has one deadline.
    static let limit = 16

    /// Merges both services by priority; equal priorities are drawn at random by weight.
    ///
    /// - Parameters:
    ///   - domain: the domain of the JID, in ASCII.
    ///   - standard: the answer for `_xmpp-client._tcp`.
    ///   - direct: the answer for `_xmpps-client._tcp`.
    ///   - generator: draws among equal priorities.
    /// - Returns: the targets to try in turn, at least one.
    /// - Throws: the reason why there is none.
    package static func order(
        domain: String,
        standard: ServiceAnswer,
        direct: ServiceAnswer,
        using generator: inout some RandomNumberGenerator
    ) throws(LookupFailure) -> [ServiceTarget] {
        var candidates: [Candidate] = []
        for (answer, isDirect) in [(standard, false), (direct, true)] {
            guard case .records(let records) = answer else { continue }
            candidates += records.map { Candidate(record: $0, isDirect: isDirect) }
        }
        if !candidates.isEmpty {
            return self.sorted(candidates, using: &generator).prefix(self.limit).map { candidate in
                ServiceTarget(
                    target: Target(host: candidate.record.target, port: Int(candidate.record.port)),
                    isDirectTLS: candidate.isDirect
                )
            }
        }
        switch (standard, direct) {
        case (.notOffered, _), (.notWanted, .notOffered):
            // No fallback, because the domain declares that it has no service (RFC 6120 §3.2.1).
            throw LookupFailure("\(domain) says in the DNS that it offers no XMPP to clients (an SRV target of \".\")")
        case (.notWanted, _):
            return [ServiceTarget(target: Target(host: domain, port: self.directPort), isDirectTLS: true)]
        default:
            return [ServiceTarget(target: Target(host: domain, port: self.standardPort), isDirectTLS: false)]
        }
    }

    private struct Candidate {
        let record: ServiceRecord
        let isDirect: Bool
    }

    /// Sorts by priority, lowest first; equal priorities are drawn one after another, by weight (RFC 2782).
    private static func sorted(
        _ candidates: [Candidate],
        using generator: inout some RandomNumberGenerator
    ) -> [Candidate] {
        var sorted: [Candidate] = []
        for priority in Set(candidates.map(\.record.priority)).sorted() {
            // Targets of weight 0 come first, in random order, so that they keep their small chance.
            let group = candidates.filter { $0.record.priority == priority }
            var left = group.filter { $0.record.weight == 0 }.shuffled(using: &generator)
            left += group.filter { $0.record.weight != 0 }
            while !left.isEmpty {
                let total = left.reduce(0) { $0 + Int($1.record.weight) }
                let drawn = Int.random(in: 0...total, using: &generator)
                var sum = 0
                let index = left.firstIndex { candidate in
                    sum += Int(candidate.record.weight)
                    return sum >= drawn
                }
                sorted.append(left.remove(at: index ?? left.startIndex))
            }
        }
        return sorted
    }
}
