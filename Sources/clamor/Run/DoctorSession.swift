import HostFit
import LoadEngine
import Measurement
import NIOCore
import Report
import RunControl
import RunResult
import Scenario

/// `clamor doctor`: runs the host checks that precede every run, and prints all results.
struct DoctorSession {
    let options: DoctorOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let steal = await self.steal()
        var limits = HostLimits.read()
        limits.stealShare = steal
        if let scenario = self.options.scenario {
            let hosts = self.options.hosts
            return MachinesSession(scenario: scenario, hosts: hosts, limits: limits, screen: self.screen).perform()
        }
        let load = self.options.load
        let threads =
            load.threads
            ?? LoadOptions.defaultThreads(cores: limits.cores ?? System.coreCount, loopback: load.isLoopback)
        var fit = load.common.fit(
            clients: self.options.clients,
            deliveries: load.deliveries,
            limits: limits,
            threads: threads,
            descriptorsBeside: Descriptors.beside([load.common], threads: threads)
        )
        let plan = load.common.plan(targets: 1, seed: 0)
        fit.split = { SegmentOptions().split(plan, of: $0) { _ in true } }
        let words = load.common.loadWords(own: 0)
        let record = DoctorRecord(fit, of: words, targets: load.targetNames, sources: load.sourceAddresses)
        let problems = fit.sentences(of: words, .flags)
        return self.screen.show(record, problem: problems.isEmpty ? nil : problems.joined(separator: "; "))
    }

    /// CPU steal within half a second: about 100 ticks on two cores, so a resolution of one per cent.
    private func steal() async -> Double? {
        let before = CPUSample.read()
        try? await Task.sleep(for: .milliseconds(500))
        return CPUSample.read().flatMap { now in before.flatMap { now.stealShare(since: $0) } }
    }
}

/// `clamor doctor FILE`: how many hosts like this one carry a scenario, or whether a number of them does.
struct MachinesSession {
    let scenario: ScenarioOptions
    let hosts: Int?
    let limits: HostLimits
    let screen: ProgressScreen

    func perform() -> ExitStatus {
        let smallest = HostShare.smallest { self.share(of: $0) }
        let share = self.hosts.map { self.share(of: $0) } ?? smallest?.share ?? self.share(of: 1)
        let record = DoctorRecord(
            share,
            of: self.scenario,
            smallest: smallest?.share.hosts,
            limit: smallest?.limit?.name ?? share.problems.first?.name
        )
        let problem = share.refusal(of: self.scenario.name, smallest: smallest?.share.hosts)
        return self.screen.show(record, problem: problem)
    }

    // MARK: - Shares

    /// The largest share of so many hosts: that of segment 1.
    private func share(of hosts: Int) -> HostShare {
        let part = PlanSegment(index: 0, of: hosts)
        let groups = self.scenario.with(part: part).runGroups()
        let all = self.scenario.common.threads ?? LoadOptions.defaultThreads(groups, cores: self.limits.cores)
        let beside = HostQuestion(groups: groups, limits: self.limits, threads: all).fits.first?.descriptorsBeside ?? 0
        let most = self.limits.descriptorsSoft.map { Int(clamping: $0) - beside } ?? .max
        let clients = groups.reduce(0) { $0 + $1.clients }
        let processes = self.processes(on: hosts, clients: clients, most: most)
        let loops = self.scenario.common.threads ?? max(1, all / processes)
        let question = HostQuestion(groups: groups, limits: self.limits, threads: loops * processes)
        var share = HostShare(
            hosts: hosts,
            processes: processes,
            loops: loops,
            clientsOfProcess: self.clients(of: hosts * processes),
            groups: self.scenario.work(of: part),
            fits: question.fits
        )
        for index in share.fits.indices { share.fits[index].descriptorsBeside = beside }
        share.seconds = self.scenario.common.loadLength.map { Double($0) / 1e9 }
        share.isDivisible = hosts * processes == 1 || self.isDivisible(into: hosts * processes)
        return share
    }

    /// The fewest processes of a host of which each has descriptors for its clients.
    private func processes(on hosts: Int, clients: Int, most: Int) -> Int {
        guard most > 0 else { return 1 }
        let least = max(1, (clients + most - 1) / most)
        // Groups round their clients up, each by one at most.
        let last = min(SegmentOptions.mostProcesses, least + self.scenario.groups.count)
        guard least <= last else { return SegmentOptions.mostProcesses }
        return (least...last).first { self.clients(of: hosts * $0) <= most } ?? last
    }

    /// Clients of the largest of so many segments.
    private func clients(of segments: Int) -> Int {
        self.scenario.with(part: PlanSegment(index: 0, of: segments)).runGroups().reduce(0) { $0 + $1.clients }
    }

    private func isDivisible(into segments: Int) -> Bool {
        var options = self.scenario.common.segment
        options.part = PlanSegment(index: 0, of: segments)
        return self.scenario.runGroups().allSatisfy { $0.isDivisible(options) }
    }
}

extension ProgressScreen {
    /// Shows what this host allows, and why it does not suffice.
    fileprivate func show(_ record: DoctorRecord, problem: String?) -> ExitStatus {
        if !self.isJSON {
            self.show(record.text(self.style))
        } else if let text = try? record.json() {
            self.write(text)
        }
        guard let problem else { return .success }
        self.warn(problem)
        return .usage
    }
}

extension HostShare {
    /// One line with the reasons why these hosts do not carry a scenario, and the remedy; `nil` if they do.
    package func refusal(of name: String, smallest: Int?) -> String? {
        let problems = self.problems
        guard !problems.isEmpty else { return nil }
        let words = problems.map { check in
            check.needs.map { "\(check.name) needs \($0), \(check.found)" } ?? "\(check.name): \(check.found)"
        }
        let remedy: String
        if let smallest, smallest > self.hosts {
            remedy = "take more hosts (--hosts \(smallest))"
        } else {
            let changes = problems.compactMap { $0.change(.keys) }
            remedy = changes.isEmpty ? "take another number of hosts (--hosts)" : changes.joined(separator: "; ")
        }
        let hosts = "\(Words.count(self.hosts)) \(self.hosts == 1 ? "host" : "hosts") like this one"
        return "\(name) on \(hosts): \(words.joined(separator: "; ")): \(remedy)"
    }
}
