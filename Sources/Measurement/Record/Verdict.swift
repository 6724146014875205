/// Whether a run's figures are valid, with every reason against it.
package struct Verdict: Hashable, Sendable, Codable {
    /// From best to worst; the worst state wins.
    package enum State: String, Hashable, Sendable, Codable, CaseIterable, Comparable {
        case valid
        case generatorLimited = "generator-limited"
        case unreconciled
        case aborted

        private var severity: Int { Self.allCases.firstIndex(of: self) ?? 0 }
        package static func < (left: State, right: State) -> Bool { left.severity < right.severity }
    }

    package struct Reason: Hashable, Sendable, Codable {
        /// A short, stable name for programs: `schedule-lag`, `ledger-overflow`.
        package var code: String
        /// One sentence for readers, with figures and units.
        package var text: String
        /// The figure that exceeded the limit, in the unit of ``text``.
        package var measured: Double?
        package var limit: Double?

        package init(code: String, text: String, measured: Double? = nil, limit: Double? = nil) {
            self.code = code
            self.text = text
            self.measured = measured
            self.limit = limit
        }

        /// The reason with the name of a group, a segment or a process as prefix.
        package func of(_ part: String?) -> Reason {
            var reason = self
            if let part { reason.text = "\(part): \(self.text)" }
            return reason
        }

        /// `text [code]`: readers look the code up.
        package var line: String { "\(self.text) [\(self.code)]" }
    }

    package private(set) var state = State.valid
    package private(set) var reasons: [Reason] = []

    package static let valid = Verdict()

    package init() {}

    /// Adds a reason, and sets the state if it is worse than the current one.
    package mutating func add(_ state: State, _ reason: Reason) {
        self.state = max(self.state, state)
        self.reasons.append(reason)
    }

    package mutating func add(_ state: State, _ reasons: some Sequence<Reason>) {
        for reason in reasons { self.add(state, reason) }
    }
}

extension Verdict.Reason {
    /// A signal ended the run.
    package static let signalCode = "interrupted"
    /// What was the limit, by the code: on a full host other work may have had the CPU.
    package var limited: String { "the \(self.code == "host-full" ? "host" : "generator") was the limit" }

    /// The server answered nothing more, which is a reason beside any verdict.
    package static let silentCode = "server-silent"
    /// A threshold with `abort` ended it.
    package static let thresholdCode = "threshold"

    package static func threshold(_ expression: String?) -> Self {
        let words = expression.map { ": \($0)" } ?? ""
        return Self(code: Self.thresholdCode, text: "a threshold that aborts was broken\(words)")
    }
}
