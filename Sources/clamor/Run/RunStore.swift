import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Workloads

/// The file in which the clients of a run keep their flows: one for all event loops of the process.
package struct RunStore: Sendable {
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    let flows: KeptFlows
    /// What else the file holds, in words.
    let remark: String?
    private let store: MQTTSQLiteStore

    /// Opens the file that the options name, or makes it, and reads what earlier runs left of these clients.
    ///
    /// `nil` if the flows are kept in memory.
    init?(_ options: MQTTOptions, _ load: MQTTLoad) async throws(Problem) {
        guard let path = options.store else { return nil }
        let numbers = try Self.numbers(load)
        // The load itself is bounded, by its windows; what the disk has no room for is told when it has none.
        let limits = MQTTStoreLimits(maxMessages: .max, maxSize: 1 << 40)
        let store: MQTTSQLiteStore
        do throws(MQTTStoreError) {
            store = try MQTTSQLiteStore(path: path, limits: limits)
        } catch {
            throw Problem(description: Self.words(error))
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
            throw Problem(description: (error as? MQTTStoreError).map(Self.words) ?? "\(error)")
        }
    }

    /// Waits for so long at most: a disk that hangs must not keep the results back.
    ///
    /// - Returns: what went wrong.
    func close(within limit: Duration) async -> String? {
        await Self.close(within: limit) { [store = self.store] in try await store.close() }
    }

    /// - Returns: what went wrong with `close`, or that it did not return; then it is left to itself.
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
            // The limit itself: whichever comes first ends the wait.
            try? await Task.sleep(for: limit)
            send.yield("the file did not close within \(limit); the last changes may be missing in it")
        }
        defer { clock.cancel() }
        for await result in results { return result }
        return nil
    }

    /// Clients by their identifier, which is the name that their flows lie under.
    private static func numbers(_ load: MQTTLoad) throws(Problem) -> [String: Int] {
        var numbers: [String: Int] = [:]
        for number in 0..<load.publishers + load.subscribers {
            let id = String(decoding: load.values(of: number).clientID, as: UTF8.self)
            guard !id.isEmpty else {
                throw Problem(description: "flows are kept by client id, and these clients have none; add --client-id")
            }
            guard numbers.updateValue(number, forKey: id) == nil else {
                throw Problem(
                    description: "flows are kept by client id, and two clients are called '\(id)'; "
                        + "set their numbers apart, as with %i alone"
                )
            }
        }
        return numbers
    }

    /// A client's messages, no two of its own under one packet identifier.
    private static func takeUp(
        _ client: String,
        of store: MQTTSQLiteStore,
        path: String
    ) async throws -> [MQTTStoredMessage] {
        let messages = try await store.load(client: client)
        var holders: [PacketID: UInt64] = [:]
        var over: Set<UInt64> = []
        for stored in messages {
            // Numbers of this run's own follow.
            if stored.sequence >> 62 != 0 || stored.message.qos == .atMostOnce {
                throw MQTTStoreError.corrupt(path: path, reason: "message \(stored.sequence) is none of a client's own")
            }
            switch stored.stage {
            case .published(let id), .released(let id):
                // Its identifier was given again, so the earlier one was done with, and only the store had not taken that.
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

    /// What is wrong, and what to do about it.
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
