import Foundation
import Scenario
import Synchronization

/// A load and how it passes, as `clamor run` takes it from a file.
///
/// Its keys are those of the guide Scenario keys.
public struct Scenario: Sendable {
    var options: ScenarioOptions
    /// Where the result directory is made; `nil`: `results/runs/TIME-NAME` in the current directory.
    public var directory: String? {
        get { self.options.common.outputDirectory }
        set { self.options.common.outputDirectory = newValue }
    }

    /// Reads the text of a scenario file.
    ///
    /// - Parameters:
    ///   - yaml: its text; files that it names are relative to the current directory.
    ///   - variables: values for `${NAME}`, before those of the environment and of `vars`.
    /// - Throws: all that is wrong, a line each; what is wrong with the text has its place.
    public init(_ yaml: String, variables: [String: String] = [:]) throws(ScenarioError) {
        let environment = ProcessInfo.processInfo.environment
        switch ScenarioReader.read(yaml, variables: variables, environment: environment) {
        case .scenario(let options): self.options = options
        case .wrong(let lines): throw ScenarioError(lines: lines)
        }
    }
}

/// The problems of a scenario.
public struct ScenarioError: Error, CustomStringConvertible {
    /// A line for each problem; one with the text has its place.
    public let lines: [String]
    /// The lines.
    public var description: String { self.lines.joined(separator: "\n") }
}

extension Run {
    /// Takes the scenario to the servers that it names.
    public init(_ scenario: Scenario) { self.init(RunPlan(scenario.options), in: .library) }

    /// Runs the scenario in this process and leaves its result directory; nothing is printed.
    ///
    /// Cancelling the task ends the load in good order, as the first SIGINT ends that of the command: what is on its
    /// way is awaited. The record says that the run was interrupted, unless its scenario has no end of its own.
    ///
    /// - Returns: the finished run, whatever its verdict and its thresholds say.
    /// - Throws: why it did not begin: a server that does not answer is no reason, a host that is too small is one.
    public func finished() async throws(RunRefusal) -> FinishedRun {
        let (cancels, cancel) = AsyncStream<Int32>.makeStream()
        let heard = Heard()
        var (plan, world) = (self.plan, self.world)
        plan.scenario.common.results.quiet = true
        for place in plan.scenario.groups.indices { plan.scenario.groups[place].work.options.results.quiet = true }
        plan.hears = { line in heard.lines.withLock { $0.append(line) } }
        world.signals = { cancels }
        // The run itself is not cancelled: it ends as its signals say, and saves what it has measured.
        let work = Task { [plan, world] () async -> Result<FinishedRun, RunRefusal> in
            do throws(RunRefusal) {
                return .success(try await RunSession(plan, in: world).finished())
            } catch {
                return .failure(error)
            }
        }
        let result = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            cancel.yield(SIGINT)
        }
        var run = try result.get()
        run.remarks = heard.lines.withLock(\.self) + run.remarks
        if plan.scenario.common.files.writesPage, case .warning(let line)? = PageSink().take(run) {
            run.remarks.append(line)
        }
        return run
    }

    private final class Heard: Sendable {
        let lines = Mutex<[String]>([])
    }
}
