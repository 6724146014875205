import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Scenario
import Workloads

/// The file in which the clients of a run store their flows; one for all event loops of the process.
package struct RunStore: Sendable {
    let flows: KeptFlows
    /// A remark on other contents of the file.
    let remark: String?
    private let store: MQTTSQLiteStore

    /// Opens or creates the file that the options name, and reads these clients' flows of earlier runs.
    ///
    /// `nil` if the flows are kept in memory.
    init?(_ options: MQTTOptions, _ load: MQTTLoad) async throws(RunRefusal) {
        guard let path = options.store else { return nil }
        let numbers = try Self.numbers(load)
        // The clients' windows bound the size; a full disk is reported when it occurs.
        let limits = MQTTStoreLimits(maxMessages: .max, maxSize: 1 << 40)
        let store: MQTTSQLiteStore
        do throws(MQTTStoreError) {
            store = try MQTTSQLiteStore(path: path, limits: limits)
        } catch {
            throw RunRefusal(Self.words(error))
        }
        do {
            var messages: [Int: [MQTTStoredMessage]] = [:]
            var others = 0
            for client in try await store.clients() {
                guard let number = numbers[client] else {
                    others += 1
                    continue
                }
                messages[number] = try await Self.takeUp(client, of: store, path: path)
            }
            let ids = others == 1 ? "1 client id that is" : "\(others) client ids that are"
            self.remark =
                others == 0 ? nil : "\(path) also holds messages of \(ids) not in this run; they stay there"
            self.flows = KeptFlows(store: RunFlowStore(store: store), messages: messages)
            self.store = store
        } catch {
            throw RunRefusal((error as? MQTTStoreError).map(Self.words) ?? "\(error)")
        }
    }

    /// Waits up to this time: a disk that hangs must not hold back the results.
    func close(within limit: Duration) async -> String? {
        await Self.close(within: limit) { [store = self.store] in try await store.close() }
    }

    /// - Returns: the error of `close`, or that it did not return; then the call is abandoned.
    package static func close(
        within limit: Duration,
        _ close: @escaping @Sendable () async throws -> Void
    ) async -> String? {
        let (results, send) = AsyncStream<String?>.makeStream()
        Task {
            do {
                try await close()
                send.yield(nil)
            } catch {
                send.yield("\(error)")
            }
        }
        let clock = Task {
            // The first event of the two ends the wait.
            try? await Task.sleep(for: limit)
            send.yield("the file did not close within \(limit); the last changes may be missing in it")
        }
        defer { clock.cancel() }
        for await result in results { return result }
        return nil
    }

    /// Client numbers by client id, which is the key of their flows.
    private static func numbers(_ load: MQTTLoad) throws(RunRefusal) -> [String: Int] {
        var numbers: [String: Int] = [:]
        for number in 0..<load.publishers + load.subscribers {
            let id = String(decoding: load.values(of: number).clientID, as: UTF8.self)
            guard !id.isEmpty else {
                throw RunRefusal("flows are kept by client id, and these clients have none; give them ids")
            }
            guard numbers.updateValue(number, forKey: id) == nil else {
                throw RunRefusal(
                    "flows are kept by client id, and two clients are called '\(id)'; "
                        + "set their numbers apart, as with %i alone"
                )
            }
        }
        return numbers
    }

    /// A client's messages, each packet identifier used once.
    private static func takeUp(
        _ client: String,
        of store: MQTTSQLiteStore,
        path: String
    ) async throws -> [MQTTStoredMessage] {
        let messages = try await store.load(client: client)
        var holders: [PacketID: UInt64] = [:]
        var over: Set<UInt64> = []
        for stored in messages {
            // This run's sequences follow the stored ones, so stored ones must be below 2^62.
            if stored.sequence >> 62 != 0 || stored.message.qos == .atMostOnce {
                throw MQTTStoreError.corrupt(path: path, reason: "message \(stored.sequence) is none of a client's own")
            }
            switch stored.stage {
            case .published(let id), .released(let id):
                // The identifier was assigned again, so the earlier flow was over; only the store had not removed it.
                if let earlier = holders.updateValue(stored.sequence, forKey: id) { over.insert(earlier) }
            case .queued, .received: break
            }
        }
        guard !over.isEmpty else { return messages }
        try await store.commit(over.sorted().map { .remove(sequence: $0) }, client: client)
        return messages.filter { stored in
            if case .received = stored.stage { true } else { !over.contains(stored.sequence) }
        }
    }

    private static func words(_ error: MQTTStoreError) -> String {
        switch error {
        case .cannotOpen: "\(error); check that its directory is there and may be written"
        case .readOnly: "\(error); change its permissions, or name another file"
        case .inUse, .foreign, .newer: "\(error); name another file"
        case .corrupt: "\(error); move it away, or name another file"
        case .diskFull: "\(error); make room, or name a file elsewhere"
        default: "\(error)"
        }
    }
}

private struct RunFlowStore: FlowStore {
    let store: MQTTSQLiteStore

    func commit(
        _ parts: [(client: String, changes: [MQTTStoreChange])],
        done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        self.store.commit(parts, done: done)
    }
}
