import CPosix
import LoadEngine
package import MQTT
import MQTTCodec
package import Measurement
import Synchronization

/// The reason why a segment did not join.
package struct SegmentLinkError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
}

/// A segment's end of the conversation.
///
/// It reconnects by itself, and its session waits at the coordinator meanwhile. A segment that loses the coordinator
/// for good goes on: only its files are not sent.
package final class SegmentLink: Sendable {
    package struct Settings: Sendable {
        package var host: String
        package var port: UInt16
        package var transport = MQTTTransport.tcp
        package var credentials: CoordinationCredentials?
        /// Time for the coordinator to be there and to answer.
        package var joinTimeout: Duration

        package init(host: String, port: UInt16, joinTimeout: Duration) {
            self.host = host
            self.port = port
            self.joinTimeout = joinTimeout
        }
    }

    /// Orders after the welcome: start, load, complete, stop.
    package let orders: AsyncStream<SegmentOrder>
    let order: AsyncStream<SegmentOrder>.Continuation
    let settings: Settings
    private let hello: SegmentHello
    let clock: OwnClock
    private let address: Coordinator.Address
    private let manager: MQTTSessionManager
    private let outgoing: AsyncStream<SegmentReport>.Continuation
    private let reports: AsyncStream<SegmentReport>
    private let joined: AsyncStream<Joining>.Continuation
    private let joining: AsyncStream<Joining>
    /// Prints a line for people.
    let notice: @Sendable (String) -> Void
    let state: Mutex<State>

    private enum Joining: Sendable {
        case welcome(SegmentWelcome)
        case refused(String)
        case taken(String)
        case timedOut(String)
    }

    struct State {
        var track = ClockTrack()
        /// Whether the coordinator has this segment's clock.
        var isSameClock = false
        var corrected: (@Sendable (Int64) -> Void)?
        /// Where the segment's files are, once it has ended.
        var directory: String?
        var tasks: [Task<Void, Never>] = []
        /// When the coordinator was heard last, in nanoseconds of CLOCK_MONOTONIC.
        var heard: Int64 = 0
        /// The segment does nothing until an order comes.
        var awaitsOrder = true
        var isSilent = false
        var hasLoad = false
        /// The coordinator's clock.
        var reference: String?
        /// The number of the last order.
        var number: UInt64 = 0
        /// Balances that wait to be sent, by group: only the newest counts.
        var balances: [Int: DeliveryBalance] = [:]
        var ended: AsyncStream<Bool>.Continuation?
    }

    /// Exchanges of times before the run, enough that one of them had no queueing delay.
    static let firstExchanges = 16
    static let firstInterval = Duration.milliseconds(20)
    /// The interval of greetings, and of exchanges during the run, which also show that the segment lives.
    static let interval = Duration.seconds(1)
    /// Exchanges of one estimate during the run: 20 ppm of drift are 0.2 ms in so many seconds.
    static let window = 10
    /// Seconds without connection after which the segment counts as lost.
    package static let willDelay: UInt32 = 8
    /// Silence of the coordinator in nanoseconds after which it is missed.
    static let silence: Int64 = 10_000_000_000
    /// Silence after which it is gone: a segment that waits for an order, or with its files, gives up.
    static let patience: Int64 = 30_000_000_000

    /// - Parameters:
    ///   - settings: where the coordinator is.
    ///   - hello: the segment.
    ///   - clock: of the segment's messages.
    ///   - notice: prints a line for people.
    package init(
        _ settings: Settings,
        _ hello: SegmentHello,
        clock: OwnClock,
        notice: @escaping @Sendable (String) -> Void
    ) {
        self.notice = notice
        self.settings = settings
        self.hello = hello
        self.clock = clock
        let instance = CoordinationCredentials.makeSecret()
        self.address = Coordinator.Address(run: hello.run, index: hello.segment - 1, instance: instance)
        (self.orders, self.order) = AsyncStream<SegmentOrder>.makeStream()
        (self.reports, self.outgoing) = AsyncStream<SegmentReport>.makeStream()
        (self.joining, self.joined) = AsyncStream<Joining>.makeStream()
        self.state = Mutex(State())
        var configuration = MQTTClientConfiguration(host: settings.host, port: settings.port)
        configuration.version = .v5
        configuration.clientID = self.address.clientID
        // The session keeps orders and files while the connection is away.
        configuration.cleanStart = false
        configuration.sessionExpiry = 3_600
        configuration.keepAlive = 5
        configuration.timeouts.ping = .seconds(5)
        configuration.timeouts.connect = .seconds(5)
        configuration.limits.bytes = 256 << 20
        configuration.transport = settings.transport
        configuration.authentication = settings.credentials.map { .scramSHA256(user: $0.user, password: $0.password) }
        var properties = Properties()
        properties.willDelayInterval = Self.willDelay
        configuration.will = Will(
            topic: CoordinationTopic.up(self.address),
            payload: Envelope(.lost).bytes,
            qos: .atLeastOnce,
            properties: properties
        )
        var policy = MQTTReconnectPolicy()
        policy.firstDelay = .milliseconds(200)
        policy.maximumDelay = .seconds(2)
        self.manager = MQTTSessionManager(configuration, policy: policy)
    }

    // MARK: - Joining

    /// Connects, and introduces the segment.
    ///
    /// - Returns: what the coordinator says of the run.
    package func join() async throws(SegmentLinkError) -> SegmentWelcome {
        let down = CoordinationTopic.down(self.address)
        self.manager.setSubscriptions([Subscription(filter: down, qos: .atLeastOnce)])
        self.manager.connect()
        let place = "\(self.settings.host):\(self.settings.port)"
        let watching = Task { [self] in
            for await state in self.manager.states where state == .failed {
                self.joined.yield(
                    .refused("\(place): \(self.manager.lastError.map { "\($0)" } ?? "the connection failed")")
                )
            }
        }
        let greeting = Task { [self] in
            for await results in self.manager.effectiveSubscriptionChanges
            where results.contains(where: { $0.reason.rawValue < 0x80 }) { break }
            // Until it is answered: the coordinator listens a moment before its own client has subscribed, and its
            // broker acknowledges a message without a receiver. A segment that starts beside it meets that moment.
            repeat { await self.send(.hello(self.hello)) } while (try? await Task.sleep(for: Self.interval)) != nil
        }
        let timing = Task { [self] in
            guard (try? await Task.sleep(for: self.settings.joinTimeout)) != nil else { return }
            let last = self.manager.lastError.map { ": \($0)" } ?? ""
            self.joined.yield(.timedOut("\(place) did not answer within \(self.settings.joinTimeout)\(last)"))
        }
        var busy: String?
        let receiving = Task { [self] in
            for await message in self.manager.messages { self.receive(message.message) }
        }
        let sending = Task { [self] in
            for await report in self.reports { await self.send(report) }
        }
        self.state.withLock { $0.tasks = [receiving, sending] }
        var answer: Joining?
        for await joining in self.joining {
            guard case .taken(let words) = joining else {
                answer = joining
                break
            }
            // The process that this one replaces may not be missed yet: a later greeting may take its place.
            busy = words
        }
        for task in [watching, greeting, timing] { task.cancel() }
        switch answer {
        case .welcome(let welcome):
            self.state.withLock { $0.reference = welcome.clock }
            return welcome
        case .refused(let words): throw SegmentLinkError(description: words)
        case .timedOut(let words): throw SegmentLinkError(description: busy ?? words)
        case .taken, nil: throw SegmentLinkError(description: "the attempt was given up")
        }
    }

    // MARK: - Messages

    /// Reports to the coordinator, in the order of the calls.
    package func tell(_ report: SegmentReport) {
        switch report {
        case .settled: self.state.withLock { $0.awaitsOrder = !$0.hasLoad }
        case .balance(let balance, let group):
            let isWaiting = self.state.withLock { $0.balances.updateValue(balance, forKey: group) != nil }
            if isWaiting { return }
        default: break
        }
        self.outgoing.yield(report)
    }

    func send(_ given: SegmentReport) async {
        var (report, isEcho) = (given, false)
        if case .balance(let first, let group) = given {
            let newest = self.state.withLock { $0.balances.removeValue(forKey: group) }
            report = .balance(newest ?? first, group: group)
        }
        if case .echo = report { isEcho = true }
        let message = MQTTMessage(
            topic: CoordinationTopic.up(self.address),
            payload: Envelope(report).bytes,
            // An echo that waits for a connection would measure that wait.
            qos: isEcho ? .atMostOnce : .atLeastOnce
        )
        _ = try? await self.manager.publish(message)
    }

    private func receive(_ message: MQTTMessage) {
        let arrived = self.clock.now
        guard let envelope = Envelope(message.payload), let order = envelope.order else { return }
        let isNew = self.state.withLock { state in
            state.heard = clamor_monotonic_nanoseconds()
            guard let number = envelope.number else { return true }
            defer { state.number = max(state.number, number) }
            return number > state.number
        }
        guard isNew else { return }
        switch order {
        case .welcome(let welcome): self.joined.yield(.welcome(welcome))
        case .taken(let words): self.joined.yield(.taken(words))
        case .refused(let words):
            self.joined.yield(.refused(words))
            self.state.withLock { _ = $0.ended?.yield(false) }
        case .echo(let sent, let received, let answered):
            let exchange = ClockExchange(sent: sent, received: received, answered: answered, arrived: arrived)
            self.state.withLock { if !$0.isSameClock { $0.track.add(exchange) } }
        case .want(let file, let offset): self.sendPart(of: file, at: offset)
        case .done: self.state.withLock { _ = $0.ended?.yield(true) }
        case .clock: break
        case .load:
            self.state.withLock { state in
                state.awaitsOrder = false
                state.hasLoad = true
            }
            self.order.yield(order)
        case .start, .complete, .stop:
            // A watch has no end of its own.
            self.state.withLock { $0.awaitsOrder = self.address.isWatch }
            self.order.yield(order)
        }
    }

    // MARK: - The end

    private func sendPart(of file: String, at offset: Int64) {
        guard let directory = self.state.withLock({ $0.directory }),
            let bytes = ResultFile.part(of: file, in: directory, at: offset)
        else { return }
        var properties = Properties()
        properties.userProperties = [UserProperty("offset", "\(offset)"), UserProperty("length", "\(bytes.count)")]
        let message = MQTTMessage(
            topic: CoordinationTopic.file(self.address, file),
            payload: bytes,
            qos: .atLeastOnce,
            properties: properties
        )
        Task { _ = try? await self.manager.publish(message) }
    }

    /// Reports the end of the segment, and lets the coordinator fetch its files.
    ///
    /// - Parameters:
    ///   - ending: with the files of `directory`.
    ///   - directory: the segment's results; `nil` if there are none.
    /// - Returns: whether the coordinator has all files.
    package func finish(_ ending: SegmentEnding, directory: String?) async -> Bool {
        let (ends, ended) = AsyncStream<Bool>.makeStream()
        self.state.withLock { state in
            state.directory = directory
            state.heard = clamor_monotonic_nanoseconds()
            state.ended = ended
        }
        self.tell(.ended(ending))
        return await ends.first { _ in true } ?? false
    }

    /// Does not wait for the coordinator to fetch the files any longer.
    package func giveUp() { self.state.withLock { _ = $0.ended?.yield(false) } }

    /// Disconnects in good order, so that the segment does not count as lost.
    package func close() async {
        let tasks = self.state.withLock { $0.tasks }
        for task in tasks { task.cancel() }
        self.order.finish()
        await self.manager.shutDown()
    }
}
