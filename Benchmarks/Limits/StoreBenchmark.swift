import CPosix
import Dispatch
import Glibc
import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Synchronization

/// The store on disk under what clients do with it: a message of 100 bytes at QoS 1 is inserted, goes on to published,
/// and is removed, each in a commit of its own, so many messages at once.
enum StoreBenchmark {
    private static let messages = 128_000

    static func run(_ arguments: [String]) throws -> String {
        let forms = ["queue": (1, 256), "clients": (100, 16), "window": (1, 16)]
        guard arguments.count == 2, let (clients, batch) = forms[arguments[0]] else {
            throw Refusal("--micro store queue|clients|window PATH")
        }
        let store = try MQTTSQLiteStore(path: arguments[1])
        let result = Mutex<Result<Void, any Error>>(.success(()))
        let done = DispatchSemaphore(value: 0)
        let start = clamor_monotonic_nanoseconds()
        let used = clock()
        Task {
            do {
                try await Self.work(store, clients: clients, batch: batch)
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            done.signal()
        }
        done.wait()
        let wall = Double(clamor_monotonic_nanoseconds() - start) / 1e9
        let cpu = Double(clock() - used) / Double(CLOCKS_PER_SEC)
        try result.withLock { $0 }.get()
        let count = Double(Self.messages)
        return "{\"messages\":\(Self.messages),\"per_second\":\(count / wall),\"cpu_us\":\(cpu * 1e6 / count)}"
    }

    private static func work(_ store: MQTTSQLiteStore, clients: Int, batch: Int) async throws {
        try await withThrowingTaskGroup { tasks in
            for number in 0..<clients {
                tasks.addTask {
                    let client = "client-\(number)"
                    let payload = Array(repeating: UInt8(1), count: 100)
                    let message = MQTTMessage(topic: "store/topic/\(number)", payload: payload, qos: .atLeastOnce)
                    for first in stride(from: 0, to: Self.messages / clients, by: batch) {
                        let sequences = (first..<first + batch).map(UInt64.init)
                        let steps = [Self.insert(message), Self.publish, { MQTTStoreChange.remove(sequence: $0) }]
                        for step in steps { try await store.commit(sequences.map(step), client: client) }
                    }
                    guard try await store.load(client: client).isEmpty else { throw Mismatch("messages are left") }
                }
            }
            try await tasks.waitForAll()
        }
    }

    private static func insert(_ message: MQTTMessage) -> (UInt64) -> MQTTStoreChange {
        { .insert(MQTTStoredMessage(sequence: $0, stage: .queued, message: message)) }
    }

    private static func publish(_ sequence: UInt64) -> MQTTStoreChange {
        .advance(sequence: sequence, to: .published(PacketID(rawValue: UInt16(sequence % 65_535) + 1) ?? 1))
    }
}
