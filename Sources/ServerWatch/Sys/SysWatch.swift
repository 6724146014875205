package import MQTT
import MQTTCodec
package import Measurement
package import NIOCore
import Synchronization

/// Reads `$SYS` of an MQTT broker, over a connection of its own.
package final class SysWatch: Sendable {
    package struct Settings: Sendable {
        /// The broker and the user; the client identifier is replaced by a random one.
        package var client: MQTTClientConfiguration
        /// The time from SUBACK to the first value.
        package var firstPatience = Duration.seconds(2)
        /// The time from the end of the load to two updates that agree: two of mosquitto's intervals, and a little.
        package var lastPatience = Duration.seconds(25)

        package init(client: MQTTClientConfiguration) { self.client = client }
    }

    private struct State {
        var values = SysValues()
        var base = SysValues.Count()
        /// Whether the connection was ever lost: then the number of packets sent to this client is not known.
        var wasLost = false
        /// Whether the loss of the connection has been told.
        var isDown = false
        var isConnecting = false
        /// Looks until the next attempt to connect.
        var wait = 0
        var hasEnded = false
        var reader: Task<Void, Never>?
        /// `nil` at the end, since the client's event loop may be gone soon.
        var client: MQTTClient?
    }

    /// The time between two looks at values that arrive on another task.
    ///
    /// The broker decides when they come, and does not say that they were all.
    private static let pause = Duration.milliseconds(50)
    private static let looksBetweenAttempts = 5
    /// The longest connect: a broker that is slow to accept delays the run no longer.
    private static let longest = Duration.seconds(5)

    private let settings: Settings
    private let warn: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - settings: the broker.
    ///   - group: event loops without load.
    ///   - warn: gets each line once.
    package init(_ settings: Settings, on group: any EventLoopGroup, warn: @escaping @Sendable (String) -> Void) {
        self.settings = settings
        self.warn = warn
        var client = ServerProbe.quiet(settings.client)
        client.timeouts.connect = min(client.timeouts.connect, Self.longest)
        client.timeouts.acknowledgement = min(client.timeouts.acknowledgement, Self.longest)
        self.state.withLock { [client] in $0.client = MQTTClient(client, eventLoopGroup: group) }
    }

    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    /// The server's name, once it has told it.
    package var record: ServerRecord? { self.state.withLock { $0.values.record } }

    /// Connects, and waits for the first values.
    package func begin() async {
        guard let messages = self.client?.messages else { return }
        let reader = Task { [weak self] in
            for await message in messages { self?.take(message) }
        }
        self.state.withLock { state in
            state.reader = reader
            state.isConnecting = true
        }
        guard await self.connect() else { return }
        let deadline = ContinuousClock.now + self.settings.firstPatience
        // Retained values come in one burst: the burst is over when no value came for a moment.
        var last = 0
        while ContinuousClock.now < deadline, (try? await Task.sleep(for: Self.pause)) != nil {
            let now = self.received
            if now == last, now > 0, !self.isEmpty { break }
            last = now
        }
        let (isEmpty, record) = self.state.withLock { state in
            state.base = state.values.count
            return (state.values.isEmpty, state.values.record)
        }
        if isEmpty {
            self.warn(
                record == nil
                    ? "no message below $SYS yet: its numbers are absent until one comes; EMQX publishes "
                        + "once a minute; the user must have the right to read $SYS"
                    : "$SYS has no numbers yet: they are absent until the broker publishes them"
                        + (SysBooks.exist(for: record) ? "; its counts are not compared with the run's" : "")
            )
        }
    }

    private var client: MQTTClient? { self.state.withLock { $0.client } }
    private var received: Int { self.state.withLock { $0.values.messages } }
    private var isEmpty: Bool { self.state.withLock { $0.values.isEmpty } }

    /// Ends an interval, and returns its metrics at once.
    package func look() -> [Metric] {
        let isUp = self.isConnected
        let (metrics, isNew, reconnects) = self.state.withLock { state in
            guard !state.hasEnded, !state.isConnecting else { return ([Metric](), false, false) }
            // Without a connection the values are of an earlier interval; counters go on after the next connect.
            guard !isUp else { return (state.isDown ? [] : state.values.look(at: Self.now), false, false) }
            let isNew = !state.isDown
            state.isDown = true
            state.wasLost = true
            state.wait -= 1
            guard isNew || state.wait <= 0 else { return ([], false, false) }
            state.isConnecting = true
            state.wait = Self.looksBetweenAttempts
            return ([], isNew, true)
        }
        if isNew { self.warn("the connection to the broker was lost: its numbers are absent") }
        if reconnects { Task { [weak self] in await self?.connect() } }
        return metrics
    }

    /// Waits for two updates that agree, reads all numbers for the last time, and leaves the broker.
    ///
    /// A broker without books is not waited for: see ``SysBooks/exist(for:)``.
    ///
    /// - Returns: the books, `nil` if the broker did not count or the connection was lost; and the metrics since the
    ///   last look, none without a connection.
    package func end() async -> (books: SysBooks?, last: [Metric]) {
        let start = self.state.withLock { state in
            state.values.closeRound(at: Self.now)
            return state.values.roundCount
        }
        let deadline = ContinuousClock.now + self.settings.lastPatience
        var isSettled = false
        while !isSettled, ContinuousClock.now < deadline, self.isConnected, self.countsForBooks {
            guard (try? await Task.sleep(for: Self.pause)) != nil else { break }
            isSettled = self.state.withLock { state in
                state.values.closeRound(at: Self.now)
                let rounds = state.values.rounds
                // The first round may have begun before the end of the load.
                return state.values.roundCount - start >= 2 && rounds[rounds.count - 1] == rounds[rounds.count - 2]
            }
        }
        let isUp = self.isConnected
        let (books, metrics, reader) = self.state.withLock { state in
            state.hasEnded = true
            let metrics = isUp && !state.isDown && !state.isConnecting ? state.values.look(at: Self.now) : []
            let last = isSettled ? state.values.rounds.last : nil
            let books =
                state.wasLost
                ? nil
                : SysBooks(from: state.base, to: last ?? state.values.count, isSettled: isSettled, state.values.record)
            return (books, metrics, state.reader)
        }
        await self.leave()
        reader?.cancel()
        await reader?.value
        return (books, metrics)
    }

    private func leave() async {
        let client = self.state.withLock { state in
            defer { state.client = nil }
            return state.client
        }
        await client?.disconnect()
        await client?.shutDown()
    }

    private var countsForBooks: Bool {
        self.state.withLock { state in
            let hasBase = state.base.received != nil || state.base.sent != nil
            return !state.wasLost && hasBase && SysBooks.exist(for: state.values.record)
        }
    }

    @discardableResult
    private func connect() async -> Bool {
        let failure = await self.subscribe()
        let wasDown = self.state.withLock { state in
            let wasDown = state.isDown
            state.isConnecting = false
            state.isDown = failure != nil
            if failure != nil { state.wasLost = true }
            return wasDown
        }
        if let failure, !wasDown, self.client != nil { self.warn("\(failure): its numbers are absent") }
        if failure == nil, wasDown { self.warn("connected to the broker again") }
        return failure == nil
    }

    private var isConnected: Bool { self.client?.state == .connected }

    /// Connects and subscribes.
    ///
    /// - Returns: the reason of a failure.
    private func subscribe() async -> String? {
        guard let client = self.client else { return "the watch has ended" }
        do throws(MQTTClientError) {
            try await client.connect()
            let subscriptions = SysTopic.filters.map { Subscription(filter: $0, qos: .atMostOnce) }
            let results = try await client.subscribe(subscriptions)
            return results.allSatisfy { $0.reason.rawValue >= 0x80 } ? "the broker refuses $SYS to this user" : nil
        } catch {
            return "\(error)"
        }
    }

    private func take(_ message: MQTTReceived) {
        let now = Self.now
        self.state.withLock {
            $0.values.take(topic: message.topic, payload: message.payload, retained: message.retain, at: now)
        }
    }
}
