import LoadEngine
import Measurement
import NIOCore
import Scenario
import Transport
import Workloads

// The accounts of a run's clients: created before the run if requested, and removed after it.
extension XMPPGroup {
    func begin(_ load: XMPPWorkload, beside setting: RunSetting) async -> XMPPWorkload {
        self.accountLoad = (load.load, setting)
        guard self.run.registers else { return load }
        // Several clients may log in to one account.
        var seen: Set<String> = []
        let numbers = (0..<load.load.clients).filter { seen.insert(load.load.user($0).bare).inserted }
        let outcome = await self.perform(.before, load.load, numbers, setting)
        self.accounts.add(outcome.accounts, numbers: numbers, seconds: outcome.seconds)
        var begun = load.load
        for account in outcome.accounts where account.fate != .created && account.fate != .existed {
            // Clients do not log in to a missing account, but to one in an unknown state.
            guard account.fate != .unknown else { continue }
            begun.unregistered[load.load.user(numbers[account.number]).bare] =
                account.refusal
                ?? AccountRefusal(kind: "register", words: "the run was stopped before its account was created")
        }
        return XMPPWorkload(begun, metrics: load.metrics, tls: self.deferredTLS)
    }

    func clientsEnded(_ results: [XMPPResult]) async -> [String] {
        guard let (load, setting) = self.accountLoad else { return [] }
        if self.run.kind == .register {
            self.accounts.add(results.flatMap(\.accounts).sorted { $0.number < $1.number })
        }
        // Retries accounts in an unknown state once: a conflict means that they exist.
        if !self.accounts.unknown.isEmpty, setting.signals.count < 2 {
            self.accounts.decide(await self.perform(.check, load, self.accounts.unknown, setting))
        }
        await self.removeAccounts(load, setting)
        return self.accounts.lines(load)
    }

    private func removeAccounts(_ load: XMPPLoad, _ setting: RunSetting) async {
        guard !self.run.keepsAccounts, !self.accounts.created.isEmpty else { return }
        // The second signal stops at once.
        guard setting.signals.count < 2 else { return self.accounts.leave("the run was stopped by a second signal") }
        self.accounts.remove(await self.perform(.behind, load, self.accounts.created, setting))
    }

    private var screen: ProgressScreen { ProgressScreen(self.options) }

    /// The occasions of a pass, with the words shown in place of a phase.
    private enum Occasion: String {
        case before = "create"
        case check = "check"
        case behind = "remove"

        /// Shown because many accounts take time.
        var heading: String {
            switch self {
            case .before: "creating"
            case .check: "asking again for"
            case .behind: "removing"
            }
        }
    }

    /// Does a pass over the accounts of some clients, at the connect rate of the run's clients.
    private func perform(
        _ occasion: Occasion,
        _ load: XMPPLoad,
        _ numbers: [Int],
        _ setting: RunSetting
    ) async -> AccountPass.Outcome {
        let before = ProcessFacts.read(countingDescriptors: false).cpuNanoseconds ?? 0
        self.screen.show("  \(occasion.heading) \(Words.count(numbers.count, "account"))\n")
        var own = XMPPLoad(
            occasion == .behind ? .unregister : .register,
            clients: numbers.count,
            local: load.local,
            domain: load.domain,
            resource: load.resource,
            password: load.password,
            run: load.run,
            seed: load.seed,
            realtimeOffset: load.realtimeOffset
        )
        own.users = numbers.map { load.user($0) }
        own.tls = load.tls
        own.mechanism = load.mechanism
        own.allowsPlainWithoutTLS = load.allowsPlainWithoutTLS
        own.layers = load.layers
        own.ackTimeout = load.ackTimeout
        own.connectTimeout = load.connectTimeout
        // A lost connection does not tell the state of the account.
        own.connectRetries = occasion == .check ? 0 : max(2, load.connectRetries)
        var plan = LoadPlan(
            operators: numbers.count,
            connect: self.options.connectRate.map { .rate(perSecond: $0) } ?? .pending(64 * self.targets.count),
            pace: .idle,
            measure: nil,
            // Each request waits for its answer; otherwise the state of the account stays unknown.
            drain: load.ackTimeout
        )
        plan.endsWithConnects = true
        let pass = AccountPass(
            load: own,
            tls: self.deferredTLS,
            plan: plan,
            threads: min(setting.threads, numbers.count),
            readSize: self.options.readSize,
            connectors: self.connectors(from: setting.sources),
            progress: PassProgress(
                screen: self.screen,
                word: occasion.rawValue,
                accounts: numbers.count,
                isBehind: occasion != .before
            ),
            limit: occasion == .check ? .nanoseconds(self.options.drain) : nil
        )
        let outcome = await pass.perform(setting.signals)
        self.cpuBeside += (ProcessFacts.read(countingDescriptors: false).cpuNanoseconds ?? 0) - before
        return outcome
    }

    var notes: [Verdict.Reason] {
        guard let load = self.accountLoad?.load, self.run.registers || self.run.kind == .register else { return [] }
        return self.accounts.notes(load)
    }
}

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

    func notes(_ load: XMPPLoad) -> [Verdict.Reason] {
        var parts = ["\(Words.count(self.created.count, "account")) created"]
        if let seconds = self.secondsBefore {
            parts[0] += " before the run in \(Words.duration(seconds)), which is in no other figure"
        }
        if self.createdLate > 0 {
            parts[0] += ", \(Words.count(UInt64(self.createdLate))) of them when the server was asked again"
        }
        if self.existed > 0 { parts.append("\(Words.count(UInt64(self.existed))) existed already") }
        if self.notBegun > 0 { parts.append("\(Words.count(UInt64(self.notBegun))) not begun") }
        if self.keeps {
            parts.append("all kept")
        } else if let seconds = self.secondsBehind {
            let removed = Words.count(UInt64(self.created.count - self.left.count))
            parts.append("\(removed) removed after the run in \(Words.duration(seconds)), which is in no other figure")
        }
        return [Verdict.Reason(code: "accounts", text: parts.joined(separator: "; "))]
            + self.lines(load).map { Verdict.Reason(code: "accounts-left", text: $0) }
    }

    private static func were(_ count: Int) -> String { count == 1 ? "was" : "were" }
}
