import Foundation
import NIOCore
import NIOPosix
import Workloads
import RunResult

/// Measures bytes allocated per packet in a child process with jemalloc.
///
/// No other allocator counts the allocations of a thread.
///
/// Separate from the timing, so that times are measured with the default allocator.
enum AllocationPass {
    /// Nanoseconds per lane: allocations are counted, not timed.
    private static let duration: Int64 = 100_000_000

    /// Runs the lanes of a command line in a process with jemalloc.
    ///
    /// - Returns: bytes per packet by the name of the lane; `nil` if jemalloc is not installed.
    static func ask(_ arguments: [String]) async -> [String: Double]? {
        let environment = ProcessInfo.processInfo.environment
        let libraries = [environment["CLAMOR_JEMALLOC"] ?? "libjemalloc.so.2", environment["LD_PRELOAD"]]
        // If the library is missing, the dynamic linker reports this on standard error.
        guard
            let process = try? SelfProcess(
                arguments + ["--allocation-pass"],
                output: .piped,
                environment: ["LD_PRELOAD": libraries.compactMap(\.self).joined(separator: ":")]
            )
        else { return nil }
        return await SelfProcess.onThread {
            let data = (try? process.output?.readToEnd()) ?? Data()
            guard process.wait().status == 0 else { return nil }
            let answer = try? JSONDecoder().decode([String: Double].self, from: data)
            return answer.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    /// The child's part: measures and prints the allocations; prints nothing without jemalloc.
    static func answer(_ options: DecodeOptions) async -> ExitStatus {
        var options = options
        options.duration = self.duration
        var allocations: [String: Double] = [:]
        if AllocationMeter.threadBytes != nil {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let seed = options.seed ?? 1
            let streams = DecodeStreams(options, seed: seed)
            for lane in options.lanes {
                var result = DecodeLaneResult(lane)
                let run = DecodeLaneRun(
                    lane: lane,
                    options: options,
                    seed: seed,
                    loop: group.next(),
                    stop: StopFlag()
                )
                do {
                    try await run.perform(streams) { interval in
                        _ = result.add(interval, began: 0)
                        return true
                    }
                } catch {
                    return .unreconciled
                }
                allocations[lane.name] = result.allocation
            }
            try? await group.shutdownGracefully()
        }
        guard let data = try? JSONEncoder().encode(allocations) else { return .unreconciled }
        try? FileHandle.standardOutput.write(contentsOf: data)
        return .success
    }
}
