import MQTT
import MQTTCodec
import MQTTSQLiteStore

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A client with a store on disk and a session that goes on, which publishes numbers: the odd ones at QoS 1 to `proof/1`,
/// the even ones at QoS 2 to `proof/2`.
///
/// The log beside the database tells which numbers the store has taken, over all processes; each goes on behind the
/// last.
struct VictimClient {
    static let id = "victim"

    let store: LoggingStore
    let client: MQTTClient

    init(_ arguments: [String]) throws {
        self.store = try LoggingStore(path: arguments[3])
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(arguments[1]) ?? 0)
        // A busy host is not what is tested.
        configuration.timeouts.connect = .seconds(60)
        configuration.timeouts.acknowledgement = .seconds(60)
        configuration.version = arguments[2] == "5" ? .v5 : .v311
        configuration.clientID = Self.id
        configuration.cleanStart = false
        configuration.sessionExpiry = arguments[2] == "5" ? 3600 : nil
        self.client = MQTTClient(configuration, store: self.store)
    }

    /// Prints what it has found and each number that is acknowledged, and never ends by itself.
    func publish() async throws {
        var number = try await self.begin()
        try await withThrowingTaskGroup { tasks in
            var waiting = 0
            while true {
                // More than the window holds, so that some are queued and some in flight.
                if waiting == 40 {
                    say("acknowledged \(try await tasks.next() ?? 0)")
                    waiting -= 1
                }
                number += 1
                let next = number
                let client = self.client
                // Begun at once, so that the calls come in the order of the numbers.
                guard #available(macOS 26, *) else { exit(64) }
                tasks.addImmediateTask {
                    try await client.publish(Self.message(next))
                    return next
                }
                waiting += 1
            }
        }
    }

    /// Returns when the store is empty.
    func finish() async throws {
        _ = try await self.begin()
        while try await !self.store.load(client: Self.id).isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        await self.client.shutDown()
        say("finished")
    }

    /// Connects.
    ///
    /// - Returns: the last number that the store has taken.
    private func begin() async throws -> Int {
        let stored = try await self.store.load(client: Self.id)
        // A process may have been killed between commit and log.
        self.store.log(stored)
        let published = stored.count { if case .published = $0.stage { true } else { false } }
        let released = stored.count { if case .released = $0.stage { true } else { false } }
        say("found \(stored.count) stored, \(published) published, \(released) released")
        let result = try await self.client.connect()
        say("connected, session present: \(result.sessionPresent)")
        return self.store.lastNumber()
    }

    private static func message(_ number: Int) -> MQTTMessage {
        let isOdd = !number.isMultiple(of: 2)
        return MQTTMessage(
            topic: isOdd ? "proof/1" : "proof/2",
            payload: "\(number)".utf8,
            qos: isOdd ? .atLeastOnce : .exactlyOnce
        )
    }
}

/// Writes the numbers that were inserted into a log, once they are committed.
final class LoggingStore: MQTTMessageStore {
    private let base: MQTTSQLiteStore
    private let path: String
    private let descriptor: Int32

    init(path: String) throws {
        self.base = try MQTTSQLiteStore(path: path)
        self.path = path + ".log"
        self.descriptor = open(self.path, O_WRONLY | O_CREAT | O_APPEND, 0o644)
    }

    func load(client: String) async throws -> [MQTTStoredMessage] { try await self.base.load(client: client) }

    func commit(_ changes: [MQTTStoreChange], client: String) async throws {
        try await self.base.commit(changes, client: client)
        self.log(changes.compactMap { if case .insert(let message) = $0 { message } else { nil } })
    }

    func log(_ messages: [MQTTStoredMessage]) {
        let lines = messages.flatMap { $0.message.payload + [UInt8(ascii: "\n")] }
        _ = lines.withUnsafeBytes { write(self.descriptor, $0.baseAddress, $0.count) }
    }

    func lastNumber() -> Int {
        guard let file = fopen(self.path, "r") else { return 0 }
        defer { fclose(file) }
        var last = 0
        var line = [CChar](repeating: 0, count: 32)
        while fgets(&line, Int32(line.count), file) != nil { last = max(last, Int(atoi(line))) }
        return last
    }
}
