import CPosix
import Coordination
import Measurement
import NIOCore
import NIOSSL
import Report
package import RunResult
package import Scenario
import Transport

/// One run over many machines: begins it, shows it, fetches the results of all segments and merges them.
package final class CoordinateSession {
    private let options: CoordinateOptions
    private let run: SegmentedRun
    private var screen: ProgressScreen { self.run.screen }
    private let seed: UInt64
    private let clock = OwnClock()
    private var coordinator: Coordinator
    private var uploads: [Int: Upload] = [:]
    private var fetched: [Int: String] = [:]
    /// From the begin on: a signal that no stream takes has no effect.
    private let interrupts = Signals.stream()
    private var signals = 0
    /// When the coordinator stops waiting for segments that were ended.
    private var patience: NIODeadline?
    private var isOver = false

    /// Time for a part of a file to come, and how often it is asked for.
    private static let (partWait, partAttempts) = (TimeAmount.seconds(10), 3)
    /// Time for segments to end after a second signal, or before the begin.
    private static let lastWait = TimeAmount.seconds(10)
    /// From this number of segments on histograms come every ten seconds.
    private static let many = 20

    /// The files of a segment that are being fetched.
    private struct Upload {
        let collector: ResultCollector
        let address: Coordinator.Address
        /// The last request, its time, and its number of attempts.
        var want = SegmentOrder.done
        var asked = NIODeadline.now()
        var times = 0
    }

    private enum Event: Sendable {
        case server(CoordinatorServer.Event)
        case tick(wrongLogins: String?)
        case signal
    }

    package init(_ options: CoordinateOptions, _ plan: RunPlan) {
        self.options = options
        let scenario = plan.scenario
        let seed = scenario.common.seed ?? UInt64.random(in: 1...(1 << 53))
        self.seed = seed
        self.run = SegmentedRun(plan, count: options.segments)
        let name = options.run.isEmpty ? "run" : options.run
        let salt = String(UInt32.random(in: 1...UInt32.max), radix: 16)
        var terms = Coordinator.Terms(
            version: Version.tool.version,
            run: options.run,
            plan: scenario.common.segment.schedule,
            segments: options.segments,
            welcome: SegmentWelcome(
                run: "\(name)-\(salt)",
                seed: seed,
                clock: self.clock.identity,
                histogramSeconds: options.segments < Self.many ? 1 : 10,
                thresholds: scenario.common.thresholds
            ),
            joinBy: .now() + .nanoseconds(options.joinTimeout),
            continuesWithoutLost: options.onLost == .continue
        )
        terms.watches = options.watches
        let common = scenario.common
        terms.longest = common.duration.map { .nanoseconds(common.warmup + $0 + common.drain + options.joinTimeout) }
        terms.names = (plan.names.text("\(\.joinTimeout)"), plan.names.text("\(\.onLost, "abort")"))
        terms.leastClients = scenario.common.leastClients?.present(of: self.run.clients)
        self.coordinator = Coordinator(terms)
    }

    package func perform() async -> ExitStatus {
        do throws(RunRefusal) {
            try self.run.options.files.check()
            let server = try await self.listen()
            let directory: ResultDirectory
            do throws(RunRefusal) {
                directory = try .open(self.run.options.outputDirectory, name: self.run.options.directoryName)
            } catch {
                await server.close()
                throw error
            }
            await self.run.open(self.seed)
            let terminal = self.screen.followTerminal()
            await self.follow(server, directory)
            terminal?.cancel()
            self.screen.endProgress()
            await server.close()
            return await self.end(directory)
        } catch {
            return self.screen.refuse(error)
        }
    }

    private func listen() async throws(RunRefusal) -> CoordinatorServer {
        let place = self.options.listen
        let token = self.options.credentials == nil ? CoordinationCredentials.makeSecret() : nil
        do {
            let files = TLSServer(certificateFile: self.options.certificateFile, keyFile: self.options.keyFile)
            let server = try await CoordinatorServer.start(
                host: place.host,
                port: Int(place.port),
                tls: self.options.certificateFile == nil ? nil : try files.makeContext(),
                credentials: self.options.credentials ?? CoordinationCredentials(password: token ?? "")
            )
            var bound = CoordinatorPlace(host: place.host, port: UInt16(server.port))
            let line = "waiting for \(Words.count(self.options.segments, "segment")) at \(bound.text)"
            // A free port is known to nothing else, and neither is a token.
            if place.port == 0 { self.screen.announce(line) } else { self.screen.say(line) }
            if let token {
                if ["0.0.0.0", "::"].contains(bound.host) { bound.host = "HOST" }
                let url = (self.options.certificateFile == nil ? "mqtt://" : "mqtts://") + bound.text
                self.screen.announce(
                    "start each with CLAMOR_COORDINATOR_PASSWORD=\(token) clamor run FILE --coordinator \(url) "
                        + "--segment I/\(self.options.segments)"
                )
            }
            return server
        } catch {
            throw RunRefusal("--listen: \(error)")
        }
    }

    // MARK: - During the run

    private func follow(_ server: CoordinatorServer, _ directory: ResultDirectory) async {
        let (events, continuation) = AsyncStream<Event>.makeStream()
        let tasks = [
            Task { for await event in server.events { continuation.yield(.server(event)) } },
            Task { [interrupts] in for await _ in interrupts { continuation.yield(.signal) } },
            Task {
                // The coordinator's time limits are judged at each tick, and its log has a line of wrong logins at most.
                while (try? await Task.sleep(for: .seconds(1))) != nil {
                    continuation.yield(.tick(wrongLogins: await server.wrongLogins()))
                }
            },
        ]
        defer { for task in tasks { task.cancel() } }
        for await event in events {
            let actions: [Coordinator.Action]
            switch event {
            case .server(.report(let report, let address)):
                actions = self.coordinator.receive(report, from: address, at: self.now)
            case .server(.part(let file, let offset, let bytes, let address)):
                // Another process with the same index has no part in the segment's files.
                let upload = self.uploads[address.index]
                let step = upload?.address == address ? upload?.collector.add(bytes, of: file, at: offset) : nil
                if step != nil, self.patience != nil { self.patience = .now() + Self.lastWait }
                actions = self.collect(step, address, server)
            case .tick(let line):
                if let line { self.screen.warn(line) }
                actions = self.coordinator.tick(self.now) + self.askAgain(server) + self.abandoned()
            case .signal: actions = self.signal()
            }
            self.perform(actions, server, directory)
            if self.isOver { break }
        }
    }

    private var now: Coordinator.Now { Coordinator.Now(uptime: .now(), realtime: self.clock.now) }

    private func perform(_ actions: [Coordinator.Action], _ server: CoordinatorServer, _ directory: ResultDirectory) {
        for action in actions {
            switch action {
            case .tell(let order, let address): server.send(order, to: address)
            case .say(let line): self.screen.say(line)
            case .warn(let line): self.screen.warn(line)
            case .show(let interval, let index): self.broke(self.run.add(interval, of: index), server, directory)
            case .left(let index): self.broke(self.run.end(of: index), server, directory)
            case .collect(let ending, let address):
                let path = "\(directory.partial)/segments/\(address.index + 1)"
                self.fetched[address.index] = path
                let collector = ResultCollector(ending.files, into: path)
                self.uploads[address.index] = Upload(collector: collector, address: address)
                self.perform(self.collect(collector.begin(), address, server), server, directory)
            case .over: self.isOver = true
            }
        }
    }

    private func collect(
        _ step: ResultCollector.Step?,
        _ address: Coordinator.Address,
        _ server: CoordinatorServer
    ) -> [Coordinator.Action] {
        switch step {
        case nil: return []
        case .want(let file, let offset):
            let order = SegmentOrder.want(file: file, offset: offset)
            self.uploads[address.index]?.want = order
            self.uploads[address.index]?.asked = .now()
            self.uploads[address.index]?.times = 1
            server.send(order, to: address)
            return []
        case .done:
            self.uploads[address.index] = nil
            return self.coordinator.collected(address.index, words: nil, at: self.now)
        case .failed(let words):
            self.uploads[address.index] = nil
            self.fetched[address.index] = nil
            return self.coordinator.collected(address.index, words: "its results did not come: \(words)", at: self.now)
        }
    }

    /// Asks again for parts that did not come, and gives up on those that do not come at all.
    private func askAgain(_ server: CoordinatorServer) -> [Coordinator.Action] {
        var actions: [Coordinator.Action] = []
        for (index, upload) in self.uploads where .now() - upload.asked >= Self.partWait {
            guard upload.times < Self.partAttempts else {
                let seconds = Self.partWait.nanoseconds / 1_000_000_000 * Int64(Self.partAttempts)
                actions += self.collect(.failed("no part came for \(seconds) s"), upload.address, server)
                continue
            }
            self.uploads[index]?.times += 1
            self.uploads[index]?.asked = .now()
            server.send(upload.want, to: upload.address)
        }
        return actions
    }

    private func broke(_ threshold: String?, _ server: CoordinatorServer, _ directory: ResultDirectory) {
        guard let threshold else { return }
        self.perform(self.coordinator.end(.threshold(threshold)), server, directory)
    }

    private func signal() -> [Coordinator.Action] {
        self.signals += 1
        if self.signals > 1, self.patience == nil { self.patience = .now() + Self.lastWait }
        return self.coordinator.end(.ordered)
    }

    /// Ends the wait for segments that do not end after a stop.
    private func abandoned() -> [Coordinator.Action] {
        if self.patience == nil, self.coordinator.failure != nil { self.patience = .now() + Self.lastWait }
        guard let patience = self.patience, .now() >= patience else { return [] }
        return self.coordinator.abandon()
    }

    // MARK: - The end

    private func end(_ directory: ResultDirectory) async -> ExitStatus {
        guard self.coordinator.hasBegun, self.coordinator.failure == nil else {
            // Nothing was measured: removes the created directories if they are empty.
            directory.removeIfEmpty("segments")
            let status = self.coordinator.failure.flatMap { ExitStatus(rawValue: $0.status) } ?? .usage
            if status == .interrupted { self.screen.warn("the run was given up before it began") }
            return status == .success ? .dataError : status
        }
        let paths = self.fetched.filter { self.coordinator.lost[$0.key] == nil }.sorted { $0.key < $1.key }
        let lost = self.coordinator.lost.sorted { $0.key < $1.key }.map {
            LostSegment(index: $0.key + 1, words: $0.value)
        }
        if let status = await self.run.finish(paths.map(\.value), without: lost, in: directory) { return status }
        self.screen.warn("\(directory.partial): the segments are not merged; those that came are in segments/")
        return .dataError
    }
}
