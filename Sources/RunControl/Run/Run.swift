import Coordination
import LoadEngine
import Measurement
package import RunResult
import Scenario

/// One run of a plan: in this process, in several of this host, and as a segment of a coordinator's run.
public struct Run: Sendable {
    let plan: RunPlan
    let world: RunWorld

    package init(_ plan: RunPlan, in world: RunWorld = .host) {
        self.plan = plan
        self.world = world
    }

    /// Runs it, and leaves and shows its results.
    package func perform() async -> ExitStatus {
        let segment = self.plan.scenario.common.segment
        guard let coordinator = segment.coordinator else { return await self.end(of: self.plan).status }
        let screen = ProgressScreen(self.plan.scenario.common)
        do throws(RunRefusal) {
            let (link, welcome) = try await Signals.cancelling { () async throws(RunRefusal) in
                let hello = SegmentHello(
                    version: Version.tool.version,
                    run: segment.run,
                    plan: segment.schedule,
                    segment: (segment.part?.index ?? 0) + 1,
                    segments: segment.part?.count ?? 1,
                    host: HostFacts.name ?? "unknown host",
                    processes: segment.processes?.count ?? 1
                )
                return try await CoordinatorLink.join(coordinator, hello, clock: segment.clock, screen)
            }
            var plan = self.plan
            plan.scenario.join(run: welcome.run, seed: welcome.seed, thresholds: welcome.thresholds)
            let end = await self.end(of: plan, leader: link)
            await link.finish(end.status, directory: end.directory, words: end.words)
            return end.status
        } catch {
            return screen.refuse(error)
        }
    }

    private func end(of plan: RunPlan, leader: (any RunLeader)? = nil) async -> SessionEnd {
        guard plan.scenario.common.segment.processes == nil else {
            return await ProcessesSession(plan, leader: leader, in: self.world).perform()
        }
        return await RunSession(plan, leader: leader, in: self.world).perform()
    }
}
