import CPosix
import Coordination
import Measurement
import NIOCore
package import RunResult
package import Scenario

/// A watch of servers on this host, for a run whose load comes from others.
package struct WatchSession {
    let options: WatchOptions

    package init(_ options: WatchOptions) { self.options = options }

    /// Joins the run, and sends what the servers use each second until the run is over.
    package func perform() async -> ExitStatus {
        let screen = ProgressScreen(quiet: self.options.quiet, json: false)
        do throws(RunRefusal) {
            let servers = try await ServerMonitor(self.options.live, [], isAlone: false, screen)
            let status = await self.join(servers, screen)
            _ = await servers.end()
            return status
        } catch {
            return screen.refuse(error)
        }
    }

    private func join(_ servers: ServerMonitor, _ screen: ProgressScreen) async -> ExitStatus {
        do throws(RunRefusal) {
            let number = Coordinator.Address.watch
            var hello = SegmentHello(
                version: Version.tool.version,
                run: self.options.run,
                plan: "",
                segment: number + 1,
                segments: 0,
                host: HostFacts.name ?? "unknown host"
            )
            hello.watched = servers.found
            let link = try await Signals.cancelling { [hello, options] () async throws(RunRefusal) in
                try await CoordinatorLink.join(options.coordinator, hello, clock: OwnClock(), screen).link
            }
            screen.say("waiting for the begin of the run")
            guard let start = await link.start() else {
                await link.finish(.interrupted, directory: nil, words: nil)
                throw RunRefusal("the run was given up before it began", .interrupted)
            }
            let isOver = await self.follow(servers, link, from: start)
            guard isOver != nil else { throw RunRefusal("--coordinator: does not answer any more", .unavailable) }
            let status = isOver == true ? ExitStatus.success : .interrupted
            await link.finish(status, directory: nil, words: nil)
            return status
        } catch {
            return screen.refuse(error)
        }
    }

    /// Looks at the servers at the end of each second of the run, by the common clock.
    ///
    /// - Returns: whether the run is over; otherwise a signal ended the watch. `nil`: the coordinator is gone.
    private func follow(_ servers: ServerMonitor, _ link: CoordinatorLink, from start: Int64) async -> Bool? {
        let looking = Task {
            @Sendable func time() -> Int64 { clamor_monotonic_nanoseconds() + link.clockOffset - start }
            // It paces the looks, as the clock of a run does; an end cancels it.
            @Sendable func wait(until moment: Int64) async -> Bool {
                (try? await Task.sleep(for: .nanoseconds(max(0, moment - time())))) != nil
            }
            // CPU from before the begin is not of the run; a watch that is late begins in the middle of a second.
            guard await wait(until: 0) else { return }
            _ = await servers.look()
            var last = time()
            while !Task.isCancelled {
                let second = last / 1_000_000_000
                _ = await wait(until: (second + 1) * 1_000_000_000)
                let metrics = await servers.look()
                let now = time()
                let seconds = Double(now - last) / 1e9
                link.tell(
                    .interval(TimelineInterval(second: Int(second), phase: "watch", seconds: seconds, metrics: metrics))
                )
                last = max(now, last)
            }
        }
        let signals = Task {
            for await _ in Signals.stream() { looking.cancel() }
            looking.cancel()
        }
        let orders = Task { () -> Bool? in
            for await order in link.orders { if case .stop(let stop) = order { return stop == .over ? true : nil } }
            return false
        }
        let ending = Task {
            let isOver = await orders.value
            looking.cancel()
            return isOver
        }
        await looking.value
        signals.cancel()
        orders.cancel()
        return await ending.value
    }
}
