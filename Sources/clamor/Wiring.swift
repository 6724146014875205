import Coordination
import MQTTCodec
import Measurement
import Report
import Workloads
import RunResult

/// The places where the command line meets the rest of the program.
enum Wiring {
    /// Checks that only other targets can make.
    static var checks: OptionChecks {
        var checks = OptionChecks()
        checks.threshold = { sentence, hasLedger in
            do throws(ThresholdError) {
                let threshold = try Threshold.parse(sentence)
                if let problem = AbsentMetric.problem(ofName: threshold.name) { return problem }
                let needsLedger = ["delivery_", "request"].contains { threshold.name.hasPrefix($0) }
                return needsLedger && !hasLedger
                    ? "\(threshold.name) needs \(AbsentMetric.ledger)"
                    : nil
            } catch {
                // The message already begins with the flag and its value.
                return error.problem
            }
        }
        checks.topicFilter = { filter in
            Self.problem { () throws(TopicError) in _ = try TopicFilter(validating: filter) }
        }
        checks.topicName = { topic in Self.problem { () throws(TopicError) in try TopicName.validate(topic) } }
        return checks
    }

    private static func problem(_ check: () throws(TopicError) -> Void) -> String? {
        do throws(TopicError) { try check() } catch { return error.words }
        return nil
    }

    static func run(_ work: ScenarioGroup.Work) async -> ExitStatus {
        var work = work
        work.options.segment.schedule = work.schedule
        let group = work.runGroup()
        guard work.options.segment.processes == nil else {
            return await ProcessesSession(work.options, [group]).perform().status
        }
        return await RunSession([group], work.options).perform().status
    }

    static func run(_ options: ScenarioOptions) async -> ExitStatus {
        guard !options.isCheck else { return ScenarioCheck(options).perform() }
        var options = options
        if options.common.segment.part != nil { options.common.segment.schedule = options.scheduleHash }
        guard let coordinator = options.common.segment.coordinator else { return await self.end(of: options).status }
        let screen = ProgressScreen(options.common)
        do throws(RunRefusal) {
            let plan = options.common.segment.schedule
            let segment = options.common.segment
            let joining = await Signals.cancelling {
                await CoordinatorLink.joined(coordinator, segment, plan: plan, screen)
            }
            let (link, welcome) = try joining.get()
            options.join(run: welcome.run, seed: welcome.seed, thresholds: welcome.thresholds)
            let end = await self.end(of: options, leader: link)
            await link.finish(end.status, directory: end.directory, words: end.words)
            return end.status
        } catch {
            return screen.refuse(error)
        }
    }

    private static func end(of options: ScenarioOptions, leader: (any RunLeader)? = nil) async -> SessionEnd {
        guard options.common.segment.processes == nil else {
            return await ProcessesSession(options.common, options.groups.map(\.runGroup), leader: leader).perform()
        }
        return await RunSession(options, leader: leader).perform()
    }
}
