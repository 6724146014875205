import LoadEngine
import Measurement
import Report
import Transport
import Workloads

/// The accounts of a run: it removes those that it created.
///
/// Accounts that it did not create, or of unknown origin, stay.
struct RunAccounts {
    /// The created accounts, by client number.
    private(set) var created: [Int] = []
    private(set) var unknown: [Int] = []
    /// Accounts of unknown origin that a retry found on the server.
    private var found: [Int] = []
    private var createdLate = 0
    /// The refusal of a retry without a result.
    private var wordsAgain: String?
    private(set) var existed = 0
    private var notBegun = 0
    private(set) var left: [(number: Int, words: String)] = []
    private var secondsBefore: Double?
    private var secondsBehind: Double?
    private var keeps: Bool

    init(keeps: Bool) { self.keeps = keeps }

    /// Adds the results of a pass, or of the run itself.
    mutating func add(_ accounts: [AccountResult], numbers: [Int]? = nil, seconds: Double? = nil) {
        self.secondsBefore = seconds
        for account in accounts {
            let number = numbers?[account.number] ?? account.number
            if !account.isBegun { self.notBegun += 1 }
            switch account.fate {
            case .created: self.created.append(number)
            case .unknown: self.unknown.append(number)
            case .existed: self.existed += 1
            case .untouched, .refused, .removed: break
            }
        }
    }

    /// Adds the results of a retry for ``unknown``, in its order.
    ///
    /// An account created now did not exist. One that exists may be this run's or an older one: that stays unknown.
    mutating func decide(_ outcome: AccountPass.Outcome) {
        let asked = self.unknown
        var decided: Set<Int> = []
        for account in outcome.accounts {
            let number = asked[account.number]
            switch account.fate {
            case .created:
                self.created.append(number)
                self.createdLate += 1
            case .existed: self.found.append(number)
            case .untouched, .refused, .unknown, .removed:
                self.wordsAgain = self.wordsAgain ?? account.refusal?.words ?? "there was no time for it"
                continue
            }
            decided.insert(number)
        }
        self.unknown.removeAll { decided.contains($0) }
    }

    /// Adds the results of the removal of ``created``, in its order.
    mutating func remove(_ outcome: AccountPass.Outcome) {
        self.secondsBehind = outcome.seconds
        for account in outcome.accounts where account.fate != .removed {
            self.left.append((self.created[account.number], account.refusal?.words ?? "the server was not asked"))
        }
    }

    /// Records that no removal was tried.
    mutating func leave(_ words: String) { self.left = self.created.map { ($0, words) } }

    /// Lines for standard error about accounts that were not removed.
    func lines(_ load: XMPPLoad) -> [String] {
        var lines: [String] = []
        if let first = self.left.first {
            lines.append(
                "\(Words.count(self.left.count, "account")) that this run created \(Self.were(self.left.count)) not "
                    + "removed, such as \(load.user(first.number).bare): \(first.words)"
            )
        }
        if let first = self.found.first {
            let (exist, they) = self.found.count == 1 ? ("exists", "it") : ("exist", "they")
            lines.append(
                "\(Words.count(self.found.count, "account")) \(exist), and \(Self.were(self.found.count)) not removed, "
                    + "such as \(load.user(first).bare): the server did not answer, and said conflict when it was asked "
                    + "again; whether \(they) \(Self.were(self.found.count)) created by this run is not known"
            )
        }
        if let first = self.unknown.first {
            let again = self.wordsAgain.map { "; asked again: \($0)" } ?? ""
            lines.append(
                "\(Words.count(self.unknown.count, "account")) may have been created, and "
                    + "\(Self.were(self.unknown.count)) not removed, such as \(load.user(first).bare): the server was "
                    + "asked, and did not answer\(again)"
            )
        }
        return lines
    }

    /// Notes for the record.
    func notes(_ load: XMPPLoad) -> [Verdict.Reason] {
        var parts = ["\(Words.count(self.created.count, "account")) created"]
        if let seconds = self.secondsBefore {
            parts[0] += " before the run in \(Human.duration(seconds)), which is in no other figure"
        }
        if self.createdLate > 0 {
            parts[0] += ", \(Human.count(UInt64(self.createdLate))) of them when the server was asked again"
        }
        if self.existed > 0 { parts.append("\(Human.count(UInt64(self.existed))) existed already") }
        if self.notBegun > 0 { parts.append("\(Human.count(UInt64(self.notBegun))) not begun") }
        if self.keeps {
            parts.append("all kept")
        } else if let seconds = self.secondsBehind {
            let removed = Human.count(UInt64(self.created.count - self.left.count))
            parts.append("\(removed) removed after the run in \(Human.duration(seconds)), which is in no other figure")
        }
        return [Verdict.Reason(code: "accounts", text: parts.joined(separator: "; "))]
            + self.lines(load).map { Verdict.Reason(code: "accounts-left", text: $0) }
    }

    private static func were(_ count: Int) -> String { count == 1 ? "was" : "were" }
}
