import HostFit
import Measurement
import NIOCore
import Report
import RunResult

/// `clamor doctor`: runs the host checks that precede every run, and prints all results.
struct DoctorSession {
    private let options: DoctorOptions
    private let screen: ProgressScreen

    init(_ options: DoctorOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: options.json)
    }

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let steal = await self.steal()
        var limits = HostLimits.read()
        limits.stealShare = steal
        if let scenario = self.options.scenario {
            return MachinesSession(scenario, self.options, limits: limits, screen: self.screen).perform()
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
            descriptorsBeside: Descriptors.beside(load.common, threads: threads)
        )
        let plan = load.common.plan(targets: 1, seed: 0)
        fit.split = { SegmentOptions().split(plan, of: $0) { _ in true } }
        let words = load.common.loadWords(own: 0)
        let record = DoctorRecord(fit, of: words, targets: load.targetNames, sources: load.sourceAddresses)
        if self.options.json {
            if let text = try? record.json() { self.screen.write(text) }
        } else {
            self.screen.show(record.text(self.screen.style))
        }
        let problems = fit.sentences(of: words, isFile: false)
        guard !problems.isEmpty else { return .success }
        self.screen.warn(problems.joined(separator: "; "))
        return .usage
    }

    /// CPU steal within half a second: about 100 ticks on two cores, so a resolution of one per cent.
    private func steal() async -> Double? {
        let before = CPUSample.read()
        try? await Task.sleep(for: .milliseconds(500))
        return CPUSample.read().flatMap { now in before.flatMap { now.stealShare(since: $0) } }
    }
}
