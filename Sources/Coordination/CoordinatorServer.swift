import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore
package import NIOSSL
import SASL
import Synchronization

/// User and password of a conversation; SCRAM-SHA-256 proves them, so the password is not sent.
package struct CoordinationCredentials: Hashable, Sendable {
    package var user: String
    package var password: String

    package init(user: String = Self.usualUser, password: String) {
        self.user = user
        self.password = password
    }

    package static let usualUser = "segment"

    /// 128 random bits in hexadecimal digits.
    package static func makeSecret() -> String {
        (0..<2).map { _ in String(UInt64.random(in: 0...UInt64.max), radix: 16) }.joined()
    }
}

/// The coordinator's end of the conversation: an embedded broker, and a client of it.
package final class CoordinatorServer: Sendable {
    package enum Event: Sendable {
        case report(SegmentReport, Coordinator.Address)
        case part(file: String, offset: Int64, bytes: [UInt8], Coordinator.Address)
    }

    /// Messages of segments, in their order.
    package let events: AsyncStream<Event>
    package let port: Int
    private let broker: BrokerServer
    private let client: MQTTClient
    private let outgoing: AsyncStream<MQTTMessage>.Continuation
    private let orders = Atomic<UInt64>(0)
    private let tasks: [Task<Void, Never>]

    private init(
        _ broker: BrokerServer,
        _ client: MQTTClient,
        port: Int,
        events: AsyncStream<Event>,
        outgoing: AsyncStream<MQTTMessage>.Continuation,
        tasks: [Task<Void, Never>]
    ) {
        self.broker = broker
        self.client = client
        self.port = port
        self.events = events
        self.outgoing = outgoing
        self.tasks = tasks
    }

    /// Listens, and is ready for segments.
    ///
    /// - Parameters:
    ///   - host: where segments connect to.
    ///   - port: 0 takes a free one.
    ///   - tls: of that port; `nil`: plain TCP.
    ///   - credentials: that segments need.
    /// - Returns: the server, until ``close()``.
    /// - Throws: ``BrokerStartError``, or an error of the client.
    package static func start(
        host: String,
        port: Int,
        tls: NIOSSLContext?,
        credentials: CoordinationCredentials
    ) async throws -> CoordinatorServer {
        // The coordinator's own client uses a port that other hosts do not see.
        var configuration = BrokerConfiguration(host: "127.0.0.1", port: 0)
        configuration.listeners = [BrokerListener(tls == nil ? .tcp : .tls, port: port, host: host)]
        configuration.maximumPacketSize = Self.mostBytes
        let secret = CoordinationCredentials.makeSecret
        let own = CoordinationCredentials(user: secret(), password: secret())
        configuration.access = try Self.access(own, credentials)
        let broker = try await BrokerServer.start(configuration, tls: tls)
        do {
            return try await self.connected(broker, own)
        } catch {
            await broker.stop()
            throw error
        }
    }

    /// A segment reports, sends files and hears orders under its own client id; orders come from the coordinator's own
    /// client alone.
    private static func access(
        _ own: CoordinationCredentials,
        _ credentials: CoordinationCredentials
    ) throws -> BrokerAccess {
        let segment = BrokerAccess.User(
            password: Array(credentials.password.utf8),
            publishes: try CoordinationTopic.reports(of: "%c").map { try TopicFilter(validating: $0) },
            subscribes: [try TopicFilter(validating: CoordinationTopic.orders(to: "%c"))]
        )
        var access = BrokerAccess(
            users: [credentials.user: segment, own.user: BrokerAccess.User(password: Array(own.password.utf8))]
        )
        access.scram = .sha256
        access.refusalDelay = .seconds(1)
        return access
    }

    /// A part of a file with its properties, or an interval with all its histograms.
    static let mostBytes = 8 << 20

    private static func connected(
        _ broker: BrokerServer,
        _ own: CoordinationCredentials
    ) async throws -> CoordinatorServer {
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(broker.port))
        configuration.version = .v5
        configuration.clientID = own.user
        configuration.receiveMaximum = 1_024
        configuration.maximumPacketSize = UInt32(Self.mostBytes)
        // Both ends are in this process, which may be stopped for a while.
        configuration.keepAlive = 0
        configuration.limits.inbox = 8_192
        configuration.limits.inboxBytes = 64 << 20
        configuration.limits.messages = 65_535
        configuration.authentication = .scramSHA256(user: own.user, password: own.password)
        let client = MQTTClient(configuration)
        try await client.connect()
        let reports = CoordinationTopic.reports(of: "+")
        try await client.subscribe(reports.map { Subscription(filter: $0, qos: .atLeastOnce) })
        let (events, event) = AsyncStream<Event>.makeStream()
        let (messages, outgoing) = AsyncStream<MQTTMessage>.makeStream()
        let receiving = Task {
            for await message in client.messages { if let read = Self.event(message.message) { event.yield(read) } }
            event.finish()
        }
        let sending = Task {
            for await message in messages { _ = try? await client.publish(message) }
        }
        return CoordinatorServer(
            broker,
            client,
            port: broker.listeners[1].port,
            events: events,
            outgoing: outgoing,
            tasks: [receiving, sending]
        )
    }

    private static func event(_ message: MQTTMessage) -> Event? {
        guard let (address, part) = CoordinationTopic.read(message.topic) else { return nil }
        switch part {
        case .up: return Envelope(message.payload)?.report.map { Event.report($0, address) }
        case .file(let name):
            let offset = message.properties.userProperties.first { $0.name == "offset" }?.value
            return offset.flatMap { Int64($0) }.map {
                Event.part(file: name, offset: $0, bytes: message.payload, address)
            }
        }
    }

    /// Sends an order; it waits at the broker while the segment is not connected.
    package func send(_ order: SegmentOrder, to address: Coordinator.Address) {
        var isEcho = false
        if case .echo = order { isEcho = true }
        var envelope = Envelope(order)
        if !isEcho { envelope.number = self.orders.wrappingAdd(1, ordering: .relaxed).newValue }
        self.outgoing.yield(
            MQTTMessage(
                topic: CoordinationTopic.down(address),
                payload: envelope.bytes,
                qos: isEcho ? .atMostOnce : .atLeastOnce
            )
        )
    }

    /// A line about logins with wrong credentials since the last call; `nil` without any.
    package func wrongLogins() async -> String? {
        let guesses = await self.broker.takeGuesses().sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        guard !guesses.isEmpty else { return nil }
        let peers = guesses.prefix(3).map { "\($0.value) from \($0.key)" }.joined(separator: ", ")
        return "logins with a wrong user or password: \(peers)\(guesses.count > 3 ? ", and from others" : "")"
    }

    /// Sends what is left, and closes all connections.
    package func close() async {
        self.outgoing.finish()
        for task in self.tasks.dropFirst() { await task.value }
        await self.client.shutDown()
        await self.broker.stop()
    }
}
