import LoadEngine
import Measurement
import NIOCore
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
        await self.askAgain(load, setting)
        await self.removeAccounts(load, setting)
        return self.accounts.lines(load)
    }

    /// Retries accounts in an unknown state once: a conflict means that they exist.
    private func askAgain(_ load: XMPPLoad, _ setting: RunSetting) async {
        guard !self.accounts.unknown.isEmpty, setting.signals.count < 2 else { return }
        self.accounts.decide(await self.perform(.check, load, self.accounts.unknown, setting))
    }

    private func removeAccounts(_ load: XMPPLoad, _ setting: RunSetting) async {
        guard !self.run.keepsAccounts, !self.accounts.created.isEmpty else { return }
        // The second signal stops at once.
        guard setting.signals.count < 2 else { return self.accounts.leave("the run was stopped by a second signal") }
        self.accounts.remove(await self.perform(.behind, load, self.accounts.created, setting))
    }

    private var screen: ProgressScreen {
        ProgressScreen(self.options)
    }

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

    private func perform(
        _ occasion: Occasion,
        _ load: XMPPLoad,
        _ numbers: [Int],
        _ setting: RunSetting
    ) async -> AccountPass.Outcome {
        let before = ProcessFacts.read(countingDescriptors: false).cpuNanoseconds ?? 0
        self.screen.show("  \(occasion.heading) \(Words.count(numbers.count, "account"))\n")
        let outcome = await self.pass(occasion, load, numbers, setting).perform(setting.signals)
        self.cpuBeside += (ProcessFacts.read(countingDescriptors: false).cpuNanoseconds ?? 0) - before
        return outcome
    }

    var notes: [Verdict.Reason] {
        guard let load = self.accountLoad?.load, self.run.registers || self.run.kind == .register else { return [] }
        return self.accounts.notes(load)
    }

    /// A pass over the accounts of some clients, at the connect rate of the run's clients.
    private func pass(
        _ occasion: Occasion,
        _ load: XMPPLoad,
        _ numbers: [Int],
        _ setting: RunSetting
    ) -> AccountPass {
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
        return AccountPass(
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
    }
}
