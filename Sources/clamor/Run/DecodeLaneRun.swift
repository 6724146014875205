import Foundation
import LoopContext
import Measurement
package import NIOCore
package import Scenario
import Synchronization
package import Workloads

/// A flag that asks an operation to end; may be set from any thread.
package final class StopFlag: Sendable {
    private let flag = Atomic(false)

    package init() {}

    var isSet: Bool { self.flag.load(ordering: .acquiring) }
    func set() { self.flag.store(true, ordering: .releasing) }
}

/// The streams of a decode, one for each path; created once for all forms.
package struct DecodeStreams: Sendable {
    /// Fits into the second-level cache, where the kernel has just written a client's reads.
    ///
    /// The C program of `make limits` uses the same size, so that the two can be compared.
    private static let memorySize = 4_096 * 88
    /// A writer stops at the end of its stream, and each fragment costs it microseconds.
    private static let socketSize = 262_144

    let memory: DecodeStream?
    let socket: DecodeStream?

    package init(memory: DecodeStream?, socket: DecodeStream?) {
        self.memory = memory
        self.socket = socket
    }

    init(_ options: DecodeOptions, seed: UInt64) {
        self.memory = options.paths.contains(.memory) ? options.stream(seed: seed, atLeast: Self.memorySize) : nil
        self.socket = options.paths.contains(.socket) ? options.stream(seed: seed, atLeast: Self.socketSize) : nil
    }
}

/// Measures one form on one path, on an event loop without other work.
package struct DecodeLaneRun {
    /// Receives the measurements of about one second; `false` ends the lane.
    package typealias Report = (DecodeInterval) async -> Bool

    private static let interval: Int64 = 1_000_000_000
    /// Timeout for one round over a socket.
    private static let patience: Int64 = 30_000_000_000

    let lane: DecodeLane
    let options: DecodeOptions
    let seed: UInt64
    let loop: any EventLoop
    let stop: StopFlag

    package init(lane: DecodeLane, options: DecodeOptions, seed: UInt64, loop: any EventLoop, stop: StopFlag) {
        self.lane = lane
        self.options = options
        self.seed = seed
        self.loop = loop
        self.stop = stop
    }

    package func perform(_ streams: DecodeStreams, report: Report) async throws {
        switch self.lane.path {
        case .memory: if let stream = streams.memory { try await self.inMemory(stream, report) }
        case .socket: if let stream = streams.socket { try await self.overSocket(stream, report) }
        }
    }

    private func inMemory(_ stream: DecodeStream, _ report: Report) async throws {
        let (lane, options, seed, loop, stop) = (self.lane, self.options, self.seed, self.loop, self.stop)
        let work = try await loop.submit {
            let work = DecodeInMemory(stream, metrics: DecodeMetrics(lane), seed: seed, copies: options.copies)
            return NIOLoopBound(work, eventLoop: loop)
        }.get()
        guard await report(try await loop.submit { try work.value.warmUp(options.warmup) }.get()) else { return }
        var left = options.duration
        while left > 0, !stop.isSet {
            let length = min(left, Self.interval)
            let interval = try await loop.submit {
                try work.value.measure(length) { stop.isSet }
            }.get()
            left -= interval.measured
            guard await report(interval) else { return }
        }
    }

    private func overSocket(_ stream: DecodeStream, _ report: Report) async throws {
        let (lane, options, loop) = (self.lane, self.options, self.loop)
        let writer = try DecodeWriter(stream, form: lane.form, seed: self.seed)
        Thread.detachNewThread { writer.run() }
        defer { writer.stop() }
        let socket = try await loop.submit {
            let socket = DecodeOverSocket(
                LoopContext(eventLoop: loop, readSize: options.readSize),
                port: writer.port,
                subject: stream.subject,
                metrics: DecodeMetrics(lane),
                copies: options.copies
            )
            return NIOLoopBound(socket, eventLoop: loop)
        }.get()
        let end = try await loop.submit { socket.value.start(warmUp: options.warmup) }.get()
        var left = options.duration
        var waited: Int64 = 0
        var wait = options.warmup
        while left > 0, waited < Self.patience, !self.stop.isSet {
            // A signal cancels the task.
            try? await Task.sleep(for: .nanoseconds(wait))
            let (interval, isOver) = try await loop.submit { (socket.value.take(), socket.value.isOver) }.get()
            waited = interval.measured > 0 ? 0 : waited + wait
            left -= interval.measured
            guard await report(interval), !isOver else { break }
            wait = min(max(left, 100_000_000), Self.interval)
        }
        writer.stop()
        if waited >= Self.patience, !self.stop.isSet {
            throw DecodeFault.connection("no round within \(Self.patience / 1_000_000_000) s")
        }
        let decoded = try await end.get()
        _ = await report(try await loop.submit { socket.value.take() }.get())
        let encoded = writer.checksum
        if decoded != encoded { throw DecodeFault.mismatch(stream.subject, encoded: encoded, decoded: decoded) }
    }
}

struct DecodeLaneResult {
    let lane: DecodeLane
    private var accumulator: RunAccumulator
    private var picoseconds = Histogram()
    private var last: Int64?
    /// Nanoseconds of the measured rounds.
    private(set) var measured: Int64 = 0
    /// Seconds from the start of the run to the first measured round.
    private(set) var start: Double?

    init(_ lane: DecodeLane) {
        self.lane = lane
        self.accumulator = RunAccumulator(catalog: DecodeMetrics(lane).catalog)
    }

    private func phase(of interval: DecodeInterval) -> String {
        if interval.measured > 0 { return self.lane.name }
        return self.measured > 0 ? "drain" : "warmup"
    }

    /// Adds an interval; `began` is its start in seconds from the start of the run.
    mutating func add(_ interval: DecodeInterval, began: Double) -> TimelineInterval {
        let phase = self.phase(of: interval)
        if interval.measured > 0, self.start == nil { self.start = began }
        self.measured += interval.measured
        self.picoseconds.merge(interval.picoseconds)
        self.last = interval.lastPicoseconds ?? self.last
        var row = self.accumulator.add(
            second: Int(began),
            phase: phase,
            seconds: Double(interval.wall) / 1e9,
            samples: [interval.sample]
        )
        if let median = interval.picoseconds.percentile(50) {
            row.metrics.append(self.packetTime(GaugeReading(value: Self.seconds(Double(median)))))
        }
        return row
    }

    /// CPU time of the thread as a share of the measured time.
    var cpuShare: Double? { self.metrics.first { $0.isOf(.decodeTime) }?.counter?.rate }

    var metrics: [Metric] {
        let seconds = Double(self.measured) / 1e9
        var metrics = self.accumulator.metrics(measuredSeconds: seconds > 0 ? seconds : nil)
        if let last = self.last, let min = self.picoseconds.min, let max = self.picoseconds.max,
            let mean = self.picoseconds.mean, let median = self.picoseconds.percentile(50)
        {
            let reading = GaugeReading(
                value: Self.seconds(Double(last)),
                min: Self.seconds(Double(min)),
                mean: Self.seconds(mean),
                median: Self.seconds(Double(median)),
                max: Self.seconds(Double(max))
            )
            metrics.append(self.packetTime(reading))
        }
        return metrics
    }

    private func packetTime(_ reading: GaugeReading) -> Metric {
        Metric(DecodeMetrics.packetTime, labels: self.lane.labels, reading: .gauge(reading))
    }

    private static func seconds(_ picoseconds: Double) -> Double { picoseconds / 1e12 }
}
