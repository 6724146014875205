/// A host that serves a domain's XMPP clients.
package struct ServiceTarget: Hashable, Sendable {
    package let target: Target
    /// TLS begins at once (XEP-0368), not by STARTTLS.
    package let isDirectTLS: Bool

    package init(_ target: Target, isDirectTLS: Bool) {
        self.target = target
        self.isDirectTLS = isDirectTLS
    }
}

/// What the DNS says of one service of a domain.
package enum ServiceAnswer: Hashable, Sendable {
    case records([ServiceRecord])
    /// The one record's target is the root: RFC 2782, "decidedly not available".
    case notOffered
    /// There are no records.
    case nothing
    case failed(LookupFailure)
    /// Nobody asked.
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

/// Where to connect to for a domain, and in which order.
///
/// Spec: RFC 6120 §3.2.1, RFC 2782, XEP-0368 §5.
package enum ServiceTargets {
    /// Ports of a domain without records (RFC 6120 §3.2.2; the other by custom).
    package static let standardPort = 5222
    package static let directPort = 5223
    /// Targets that are tried at most: a connect has one deadline.
    static let limit = 16

    /// Merges both services, by priority, and by chance and weight within one.
    ///
    /// - Parameters:
    ///   - domain: of the JID, in ASCII.
    ///   - standard: what is said of `_xmpp-client._tcp`.
    ///   - direct: what is said of `_xmpps-client._tcp`.
    ///   - generator: chooses among equals.
    /// - Returns: the targets to try in turn, at least one.
    /// - Throws: why there is none.
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
                    Target(host: candidate.record.target, port: Int(candidate.record.port)),
                    isDirectTLS: candidate.isDirect
                )
            }
        }
        switch (standard, direct) {
        case (.notOffered, _), (.notWanted, .notOffered):
            // RFC 6120 §3.2.1: no fall-back; somebody has said that there is nothing.
            throw LookupFailure("\(domain) says in the DNS that it offers no XMPP to clients (an SRV target of \".\")")
        case (.notWanted, _):
            return [ServiceTarget(Target(host: domain, port: self.directPort), isDirectTLS: true)]
        default:
            return [ServiceTarget(Target(host: domain, port: self.standardPort), isDirectTLS: false)]
        }
    }

    private struct Candidate {
        let record: ServiceRecord
        let isDirect: Bool
    }

    /// RFC 2782: the lowest priority first; within it one after the other is drawn, by weight.
    private static func sorted(
        _ candidates: [Candidate],
        using generator: inout some RandomNumberGenerator
    ) -> [Candidate] {
        var sorted: [Candidate] = []
        for priority in Set(candidates.map(\.record.priority)).sorted() {
            // Those without weight stand in front, so that they have their small chance; among themselves by chance too.
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
