import Measurement

extension RunRecord {
    /// The operations that did not come: `4,211 of 8,000 messages were not answered`; `nil` if all of it came.
    ///
    /// From the books, so a run that was cut has none.
    var outstandingWords: String? {
        func sum(_ column: (Books) -> UInt64?) -> UInt64 { self.books.reduce(0) { $0 + (column($1) ?? 0) } }
        let unsent = sum(\.notSent)
        let unanswered = sum { $0.outstanding ?? $0.notSent }
        if unanswered > 0 {
            let end = unsent == unanswered ? "sent" : "answered"
            return Self.words(unanswered, of: sum(\.offered), "messages", singular: "was not \(end)", "were not \(end)")
        }
        let owed = sum(\.deliveryOutstanding)
        if owed > 0 {
            let end = "not come when the drain ended"
            return Self.words(owed, of: sum(\.expected), "deliveries", singular: "had \(end)", "had \(end)")
        }
        let turns = self.turns
        guard turns.outstanding > 0 else { return nil }
        let noun = "changes of subscriptions"
        return Self.words(turns.outstanding, of: turns.due, noun, singular: "was not answered", "were not answered")
    }

    /// The SUBSCRIBE and UNSUBSCRIBE packets of a subscription churn, with the turns that were not begun.
    var turns: (due: UInt64, outstanding: UInt64) {
        self.whole("subscription_churn_duration").compactMap(\.duration).reduce((0, 0)) { sum, leg in
            (sum.0 &+ leg.count, sum.1 &+ (leg.unanswered?.outstanding ?? 0))
        }
    }

    private static func words(
        _ count: UInt64,
        of all: UInt64,
        _ noun: String,
        singular: String,
        _ plural: String
    ) -> String {
        "\(Words.count(count)) of \(Words.count(all)) \(noun) \(count == 1 ? singular : plural)"
    }
}
