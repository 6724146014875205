import CPosix
import LoadEngine
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import Scenario
import Transport
import Workloads

/// The offset of this host's clock to that of segment 1, measured by echoes through the common server.
///
/// It uses its own client. Segment 1 answers on one topic. Each other segment sends there, and gets its answers on its
/// own topic. 16 echoes run before the run, and one a second in it, to detect clock drift.
final class ClockEchoes: Sendable {
    /// Enough echoes that at least one of them had no queueing delay.
    private static let enough = 16
    /// An interval at which no echo waits for the previous one.
    private static let interval = Duration.milliseconds(20)
    /// The interval during the run, so that echoes do not add to the load.
    private static let slowInterval = Duration.seconds(1)
    /// The delay between connects: segments are started one by one, and the server may start last.
    private static let retry = Duration.milliseconds(200)
    /// Time for the run's setup before the first connect is due.
    private static let margin = TimeAmount.seconds(1)
    /// Timeout if the time of the first connect was not given.
    private static let patience = TimeAmount.seconds(10)

    private let client: MQTTClient
    private let topics: String
    private let index: Int
    private let host: String
    private let realtimeOffset: Int64
    private let deadline: NIODeadline
    private let signals: SignalRoute
    private let state = State()

    private actor State {
        var exchanges: [ClockExchange] = []
        /// The host of segment 1.
        var host: String?
        var first: ClockEstimate?
        var tasks: [Task<Void, Never>] = []

        /// Only the last exchanges are kept; ``first`` has the first ones.
        func add(_ exchange: ClockExchange, from host: String) {
            if self.exchanges.count == ClockEchoes.enough { self.exchanges.removeFirst() }
            self.exchanges.append(exchange)
            self.host = host
        }

        func add(_ task: Task<Void, Never>) { self.tasks.append(task) }
        var estimate: ClockEstimate? { ClockEstimate(self.exchanges) }
        func begins(by estimate: ClockEstimate) { self.first = estimate }

        func cancel() {
            for task in self.tasks { task.cancel() }
            self.tasks = []
        }
    }

    /// `nil` where only the load itself can build clients.
    init?(_ load: MQTTLoad, _ options: LoadOptions, host: String, layers: RunLayers?, signals: SignalRoute) {
        guard let part = options.segment.part,
            let configuration = MQTTClientConfiguration(
                beside: load,
                options,
                client: part.index,
                to: options.targets().first,
                layers: layers
            )
        else { return nil }
        self.client = MQTTClient(configuration)
        self.topics = "clamor-clock/\(String(load.run, radix: 16))"
        self.index = part.index
        self.host = host
        self.signals = signals
        self.realtimeOffset = load.realtimeOffset
        let now = NIODeadline.now()
        self.deadline = options.segment.startAt.map { RunSegment.deadline($0) - Self.margin } ?? now + Self.patience
    }

    private var now: Int64 { clamor_monotonic_nanoseconds() + self.realtimeOffset }

    // MARK: - Segment 1

    /// Answers until the end of the run.
    func answer() async {
        let task = Task { [self] in
            guard await self.connect(to: "\(self.topics)/1", until: .distantFuture) else { return }
            for await message in self.client.messages {
                let received = self.now
                let words = Self.words(message.payload)
                guard words.count == 2, let segment = Int(words[0]) else { continue }
                await self.send("\(words[1]) \(received) \(self.now) \(self.host)", to: segment)
            }
        }
        await self.state.add(task)
    }

    // MARK: - Other segments

    /// Sends echoes until there are enough answers.
    ///
    /// - Returns: nanoseconds that the clock of segment 1 is ahead; `nil` if the clock is the same, or unknown.
    func measure() async -> Int64? {
        guard await self.connect(to: "\(self.topics)/\(self.index + 1)", until: self.deadline) else { return nil }
        let answers = Task { [self] in
            for await message in self.client.messages {
                let arrived = self.now
                let words = Self.words(message.payload)
                let times = words.prefix(3).compactMap { Int64($0) }
                guard words.count == 4, times.count == 3 else { continue }
                let exchange = ClockExchange(sent: times[0], received: times[1], answered: times[2], arrived: arrived)
                await self.state.add(exchange, from: words[3])
            }
        }
        await self.state.add(answers)
        while NIODeadline.now() < self.deadline, self.signals.count == 0 {
            await self.ask()
            // Pauses while answers arrive; a cancelled run stops measuring.
            guard (try? await Task.sleep(for: Self.interval)) != nil else { return nil }
            // Segments on the same host share a clock.
            if await self.state.host == self.host { return nil }
            if await self.state.exchanges.count >= Self.enough { break }
        }
        guard let estimate = await self.state.estimate else { return nil }
        await self.state.begins(by: estimate)
        let asking = Task { [self] in
            // Repeats until the task is cancelled.
            while (try? await Task.sleep(for: Self.slowInterval)) != nil { await self.ask() }
        }
        await self.state.add(asking)
        return estimate.offset
    }

    /// Ends the echoes after the run.
    ///
    /// - Returns: the correction with its error bound; `nil` if none was made.
    func end() async -> ClockEstimate? {
        let first = await self.state.first
        let last = await self.state.estimate
        await self.state.cancel()
        await self.client.shutDown()
        return first.map { first in
            var estimate = first
            estimate.error = first.error(with: last)
            return estimate
        }
    }

    // MARK: - All segments

    private func ask() async { await self.send("\(self.index + 1) \(self.now)", to: 1) }

    private func send(_ text: String, to segment: Int) async {
        _ = try? await self.client.publish(MQTTMessage(topic: "\(self.topics)/\(segment)", payload: text.utf8))
    }

    private static func words(_ payload: [UInt8]) -> [String] {
        String(decoding: payload, as: UTF8.self).split(separator: " ").map(String.init)
    }

    private func connect(to topic: String, until deadline: NIODeadline) async -> Bool {
        while NIODeadline.now() < deadline, self.signals.count == 0 {
            if (try? await self.client.connect()) != nil {
                let subscription = Subscription(filter: topic, qos: .atMostOnce)
                let results = try? await self.client.subscribe([subscription])
                if let result = results?.first, result.reason.rawValue < 0x80 { return true }
                await self.client.disconnect()
            }
            // A server does not announce when it begins to listen, so connects are retried; a cancelled task stops.
            guard (try? await Task.sleep(for: Self.retry)) != nil else { return false }
        }
        return false
    }
}
