import EmbeddedBroker
import Foundation
import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Transport

@Suite("Clients that come and go", .timeLimit(.minutes(10)))
struct ClientLeakTests {
    enum Link: CaseIterable {
        case tls, secureWebSocket
    }

    @Test("after 10,000 connects and disconnects no client, connection, descriptor, buffer or message is left")
    func nothingLeft() async throws {
        try await withBroker { broker in
            try await Self.check(broker, MQTTClientConfiguration(port: broker.port), tasks: 20, rounds: 500)
        }
    }

    @Test(
        "after 1,000 connects and disconnects over TLS, and over a WebSocket in it, nothing is left either",
        arguments: Link.allCases
    )
    func nothingLeftSecure(_ link: Link) async throws {
        let certificates = try await Certificates.all()
        let server = TLSServer(
            certificateFile: certificates.certificate(.server),
            keyFile: certificates.key(.server)
        )
        var tls = MQTTTLS()
        tls.authorityFile = certificates.authority
        var configuration = BrokerConfiguration(port: 0)
        configuration.listeners = [BrokerListener(link == .tls ? .tls : .secureWebSocket, port: 0)]
        let transport = try link == .tls ? MQTTTransport.tls(tls) : .secureWebSocket(tls: tls)
        let broker = try await BrokerServer.start(configuration, tls: try server.makeContext())
        do {
            let port = try #require(broker.listeners.last).port
            let client = MQTTClientConfiguration(port: port) { $0.transport = transport }
            try await Self.check(broker, client, tasks: 10, rounds: 100)
            await broker.stop()
        } catch {
            await broker.stop()
            throw error
        }
    }

    private static func check(
        _ broker: BrokerServer,
        _ configuration: MQTTClientConfiguration,
        tasks: Int,
        rounds: Int
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        // The last client is released before its loop.
        try await Self.check(broker, configuration, tasks: tasks, rounds: rounds, on: group)
        try await group.shutdownGracefully()
    }

    private static func check(
        _ broker: BrokerServer,
        _ configuration: MQTTClientConfiguration,
        tasks count: Int,
        rounds: Int,
        on group: MultiThreadedEventLoopGroup
    ) async throws {
        let remains = NIOLoopBoundBox.makeBoxSendingValue(Remains(), eventLoop: group.next())
        // Keeps what the clients of the loop share, and counts them.
        let keeper = MQTTClient(configuration, eventLoopGroup: group)
        let live = try await keeper.liveCount()
        #expect(live.value == 1)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for _ in 0..<count {
                tasks.addTask {
                    for round in 0..<rounds { try await Self.comeAndGo(round, configuration, group, remains) }
                }
            }
            try await tasks.waitForAll()
        }
        // The tasks of clients that were let go end in their own time, and connections with their server's FIN; the
        // test's limit ends a wait for what is left for good.
        while live.value > 1 { await Task.yield() }
        while await broker.counters().clientsNow > 0 {}
        while try await keeper.onLoop({ _, _ in remains.value.connectionCount }) > 0 {}
        while try OpenSockets.count(port: configuration.port) > 0 { await Task.yield() }
        #expect(try await keeper.onLoop { _, _ in remains.value.connections.count } == count * rounds)
        let (replaced, scratch) = try await keeper.onLoop { context, _ in
            (context.receive.replaced, context.scratch.pointee.capacity)
        }
        // The loop still reads into the buffer that it began with, and writes out of a small one.
        #expect(replaced == 0)
        #expect(scratch <= 4_096)
        await keeper.shutDown()
        // The state shared by the loop's clients is released with the last of them.
        while try await group.next().submit({ remains.value.isShared }).get() {}
        #expect(live.value <= 1)
    }

    private static func comeAndGo(
        _ round: Int,
        _ configuration: MQTTClientConfiguration,
        _ group: MultiThreadedEventLoopGroup,
        _ remains: NIOLoopBoundBox<Remains>
    ) async throws {
        var own = configuration
        own.clientID = MQTTClientConfiguration().clientID
        let client = MQTTClient(own, eventLoopGroup: group)
        try await client.connect()
        try await client.onLoop { remains.value.note($0, $1) }
        switch round % 4 {
        case 0:
            try await client.publish(MQTTMessage(topic: "t", payload: [1], qos: .exactlyOnce))
            await client.disconnect()
        case 1: await client.shutDown()
        case 2: client.abort()
        // Released with a message in flight that no caller awaits.
        default: Task { try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce)) }.cancel()
        }
    }
}

/// Weak references to objects that should be released.
private struct Remains {
    struct Connection {
        weak var object: MQTTConnection?
    }

    private(set) var connections: [Connection] = []
    private weak var context: LoopContext?
    private weak var receive: ReceiveBuffer?
    private weak var timers: LoopTimers?

    mutating func note(_ context: LoopContext, _ connection: MQTTConnection?) {
        if let connection { self.connections.append(Connection(object: connection)) }
        (self.context, self.receive, self.timers) = (context, context.receive, context.timers)
    }

    /// Connections that are in memory.
    var connectionCount: Int { self.connections.count { $0.object != nil } }

    /// Whether the loop's buffers and timers are.
    var isShared: Bool { self.context != nil || self.receive != nil || self.timers != nil }
}

/// This process's descriptors of TCP connections.
private enum OpenSockets {
    /// So many lead to a port of this machine, or come from it.
    static func count(port: UInt16?) throws -> Int {
        let table = try String(contentsOfFile: "/proc/self/net/tcp", encoding: .utf8)
        let suffix = String(format: ":%04X", port ?? 0)
        var inodes: Set<Substring> = []
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            // Local and remote address, state, inode; 0A is a listener.
            guard fields.count > 9, fields[1].hasSuffix(suffix) || fields[2].hasSuffix(suffix), fields[3] != "0A"
            else { continue }
            inodes.insert(fields[9])
        }
        let folder = "/proc/self/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).count { name in
            // One that was closed meanwhile has no target.
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
            guard let target, target.hasPrefix("socket:["), target.hasSuffix("]") else { return false }
            return inodes.contains(target.dropFirst(8).dropLast())
        }
    }
}
