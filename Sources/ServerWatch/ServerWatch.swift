import LoopContext
package import Measurement
import NIOCore
import NIOPosix
import Synchronization
import Transport

/// The reason why a server cannot be watched as requested.
package enum ServerWatchError: Error {
    case process(ProcessWatchError)
    /// The TLS settings of an exporter.
    case exporter(ExporterAddress, String)
}

/// The kind of source that a line for the user is about; the user has words of their own for each.
package enum WatchSource: Sendable {
    case process, exporter, sys
}

/// The findings of a watch at the end of a run.
package struct ServerWatchResult: Sendable {
    /// `nil` without `$SYS`, for a broker that has none, and after a loss of the connection.
    package var books: SysBooks?
    /// The server by `$SYS`; `nil` if it did not tell.
    package var server: ServerRecord?
    /// `server_sys` from the last interval to the broker's last update: a part of the run's totals, not of the time
    /// line.
    package var last: [Metric] = []
}

/// Watches the server under test while a run goes on, on one event loop and thread of its own.
///
/// A server that does not answer delays nothing: its metrics are absent, and a line says so once.
package final class ServerWatch: Sendable {
    package struct Settings: Sendable {
        /// Numbers or names of processes.
        package var processes: [String] = []
        package var exporters: [PrometheusSettings] = []
        package var sys: SysWatch.Settings?
        /// The source of process data, which tests replace.
        package var files = ProcessFiles.system

        package init() {}
    }

    /// The state that belongs to the event loop.
    private struct Sources {
        var processes: ProcessWatch?
        var exporters: [PrometheusWatch] = []
    }

    private let settings: Settings
    private let warn: @Sendable (WatchSource, String) -> Void
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let eventLoop: any EventLoop
    private let sources: NIOLoopBoundBox<Sources>
    private let sys: SysWatch?
    /// Whether the event loop is gone.
    private let hasEnded = Mutex(false)

    /// Starts nothing yet.
    ///
    /// - Parameters:
    ///   - settings: the servers, each by its sources.
    ///   - warn: gets lines for the user, from any thread.
    package init(_ settings: Settings, warn: @escaping @Sendable (WatchSource, String) -> Void) {
        self.settings = settings
        self.warn = warn
        self.eventLoop = self.group.next()
        self.sources = .makeBoxSendingValue(Sources(), eventLoop: self.eventLoop)
        self.sys = settings.sys.map { [group] in SysWatch($0, on: group) { warn(.sys, $0) } }
    }

    /// Finds the processes, and reads everything for the first time, before the first client connects.
    ///
    /// Takes about 2 s at most, plus the connect to a broker that is slow to accept. ``end()`` is due after an error
    /// too.
    ///
    /// - Parameter nanoseconds: monotonic.
    /// - Returns: the watched processes, a line for each server.
    /// - Throws: an error if a process cannot be watched, or TLS of an exporter cannot be set up.
    @discardableResult
    package func begin(at nanoseconds: Int64) async throws(ServerWatchError) -> [String] {
        let sources = self.sources
        let settings = self.settings
        let warn = self.warn
        let eventLoop = self.eventLoop
        let started: Result<[String], ServerWatchError> =
            await self.onLoop {
                do throws(ServerWatchError) {
                    try Self.start(sources, settings, eventLoop, at: nanoseconds, warn)
                    return .success(sources.value.processes?.found ?? [])
                } catch {
                    return .failure(error)
                }
            } ?? .success([])
        let found = try started.get()
        async let sys: Void? = self.sys?.begin()
        try? await eventLoop.flatSubmit {
            let first = sources.value.exporters.map { exporter in
                let promise = eventLoop.makePromise(of: Void.self)
                exporter.begin { promise.succeed() }
                return promise.futureResult
            }
            return EventLoopFuture.andAllComplete(first, on: eventLoop)
        }.get()
        _ = await sys
        return found
    }

    private static func start(
        _ sources: NIOLoopBoundBox<Sources>,
        _ settings: Settings,
        _ eventLoop: any EventLoop,
        at nanoseconds: Int64,
        _ warn: @escaping @Sendable (WatchSource, String) -> Void
    ) throws(ServerWatchError) {
        if !settings.processes.isEmpty {
            do throws(ProcessWatchError) {
                sources.value.processes = try ProcessWatch(settings.processes, at: nanoseconds, files: settings.files)
            } catch {
                throw .process(error)
            }
        }
        let context = LoopContext(eventLoop: eventLoop)
        for (exporter, page) in PrometheusSettings.pages(settings.exporters) {
            do throws(TLSSettingsError) {
                let watch = try PrometheusWatch(exporter, page: page, context) { warn(.exporter, $0) }
                sources.value.exporters.append(watch)
            } catch {
                throw .exporter(exporter.address, "\(error)")
            }
        }
    }

    /// Ends an interval of the time line, and returns at once.
    ///
    /// - Parameter nanoseconds: monotonic.
    /// - Returns: the metrics of the interval.
    package func look(at nanoseconds: Int64) async -> [Metric] {
        let sources = self.sources
        let sys = self.sys
        let warn = self.warn
        return await self.onLoop {
            var metrics: [Metric] = []
            if let look = sources.value.processes?.look(at: nanoseconds) {
                metrics += look.metrics
                for line in look.warnings { warn(.process, line) }
            }
            for exporter in sources.value.exporters { metrics += exporter.look() }
            metrics += sys?.look() ?? []
            return metrics
        } ?? []
    }

    /// The cores that the first watched process may use; `nil` if they are unknown.
    package func cores() async -> Double? {
        let sources = self.sources
        return await self.onLoop { sources.value.processes?.cores } ?? nil
    }

    /// Ends the watch after the last client has left; with `$SYS` this takes up to 25 s.
    package func end() async -> ServerWatchResult {
        let sources = self.sources
        _ = await self.onLoop {
            for exporter in sources.value.exporters { exporter.end() }
            sources.value.exporters = []
        }
        let sys = await self.sys?.end()
        let isFirst = self.hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
        if isFirst { try? await self.group.shutdownGracefully() }
        return ServerWatchResult(books: sys?.books, server: self.sys?.record, last: sys?.last ?? [])
    }

    /// `nil` after ``end()``.
    private func onLoop<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        guard !self.hasEnded.withLock({ $0 }) else { return nil }
        return try? await self.eventLoop.submit(body).get()
    }
}
