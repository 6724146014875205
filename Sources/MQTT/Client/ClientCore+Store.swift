import LoopContext
import MQTTCodec
import NIOCore

extension ClientCore {
    enum StoreState {
        case unused
        case loading([(MQTTClientError?) -> Void])
        case loaded
        case failed(String)
    }

    /// The configured name: one that the server assigns comes after the store has been loaded.
    private var storeKey: String { self.configuration.clientID }

    /// The reason why the store cannot be used without a client identifier.
    ///
    /// Clients without one share a key in the store and would remove each other's messages. A store in memory usually
    /// serves one client.
    func storeProblem(of key: String) -> MQTTClientError? {
        guard key.isEmpty, !(self.seed.store is MQTTMemoryStore) else { return nil }
        return .invalid("a store keeps messages under the client identifier: set clientID, or leave the store out")
    }

    // MARK: Loading

    /// Runs `body` when the contents of the store are known, usually at once.
    func whenLoaded(_ body: @escaping (MQTTClientError?) -> Void) {
        switch self.storeState {
        case .loaded: body(nil)
        case .loading(let waiting): self.storeState = .loading(waiting + [body])
        case .unused, .failed:
            if let error = self.storeProblem(of: self.storeKey) { body(error) } else { self.load(body) }
        }
    }

    private func load(_ body: @escaping (MQTTClientError?) -> Void) {
        guard self.keepsSession else {
            // An older session of this name ends with the first connection, and its stored messages end here.
            self.storeState = .loaded
            if let store = self.seed.store as? MQTTMemoryStore {
                store.apply([.removeAll], client: self.storeKey)
            } else {
                self.flows.removeAll()
            }
            return body(nil)
        }
        if let store = self.seed.store as? MQTTMemoryStore {
            self.storeState = .loaded
            self.restore(store.messages(of: self.storeKey))
            return body(nil)
        }
        self.storeState = .loading([body])
        let (seed, key) = (self.seed, self.storeKey)
        Task {
            do {
                let messages = try await seed.store.load(client: key)
                seed.executeIfLive { $0.loaded(.success(messages)) }
            } catch {
                seed.executeIfLive { $0.loaded(.failure(.storeFailed("\(error)"))) }
            }
        }
    }

    private func loaded(_ result: Result<[MQTTStoredMessage], MQTTClientError>) {
        guard case .loading(let waiting) = self.storeState else { return }
        self.waitingForStore = []
        switch result {
        case .success(let messages):
            self.storeState = .loaded
            self.restore(messages)
            for body in waiting { body(nil) }
        case .failure(let error):
            self.storeState = .failed("\(error)")
            for body in waiting { body(error) }
        }
        self.settle()
    }

    /// Restores the messages that another client of this name left.
    private func restore(_ messages: [MQTTStoredMessage]) {
        let (outbound, inbound) = self.flows.restore(messages, now: self.context.now)
        self.session.pointee.restore(outbound: outbound, inbound: inbound)
    }

    /// Runs `body` when no commit is under way and none is owed, usually at once.
    func whenStored(_ body: @escaping () -> Void) {
        self.whenStored = body
        self.storeMayBeIdle()
    }

    func storeMayBeIdle() {
        guard let body = self.whenStored, !self.isCommitting, self.flows.changes.isEmpty, !self.flows.waitsToRetry
        else { return }
        if case .loading = self.storeState { return }
        self.whenStored = nil
        body()
    }

    // MARK: Committing

    /// Commits the changes of this turn; during a commit they collect.
    func commit() {
        guard self.flows.mayCommit, !self.isCommitting else { return }
        let changes = self.flows.takeChanges(self.flows.commitLimit)
        let (seed, key) = (self.seed, self.storeKey)
        if let store = seed.store as? MQTTMemoryStore {
            // A store in memory needs no wait.
            store.apply(changes, client: key)
            return self.committed(changes)
        }
        self.isCommitting = true
        Task {
            let result: Result<Void, any Error>
            do {
                result = .success(try await seed.store.commit(changes, client: key))
            } catch {
                result = .failure(error)
            }
            seed.executeIfLive { core in
                core.isCommitting = false
                switch result {
                case .success:
                    core.flows.commitEnded()
                    core.storeTook(changes)
                    core.committed(changes)
                case .failure(let error): core.failed(changes, error)
                }
                core.settle()
            }
        }
    }

    private func committed(_ changes: [MQTTStoreChange]) {
        var writes = false
        for change in changes {
            switch self.flows.committed(change) {
            case nil: break
            case .send(let sequence): writes = self.sendFirst(sequence) || writes
            case .release(let id):
                if let connection = self.connection {
                    connection.release(id.rawValue)
                } else {
                    // PUBREL is sent when the session resumes.
                    _ = self.session.pointee.release(id.rawValue)
                }
            case .record(let id): self.sendAcknowledgement(.exactlyOnce, id, .success)
            case .complete(let id): self.connection?.complete(id.rawValue)
            }
        }
        if writes { self.connection?.flush() }
    }

    private func sendFirst(_ sequence: UInt64) -> Bool {
        // `resend` sends messages that the server's receive maximum holds back ([MQTT-3.3.4-7]).
        guard self.state == .connected, let id = self.flows.flows[sequence]?.stage.packetID,
            self.session.pointee.beginWrite(id.rawValue, sequence: sequence, now: self.context.now)
        else { return false }
        return self.write(sequence)
    }

    // MARK: Failures

    private func failed(_ changes: [MQTTStoreChange], _ error: any Error) {
        let refusal = (error as? MQTTStoreError).flatMap { $0.isRefusal ? $0 : nil }
        let words = "\(error)"
        switch self.flows.failed(changes, refusal, &self.session.pointee, now: self.context.now) {
        case .retried:
            // Calls for new messages get the error.
            for case .insert(let stored) in changes {
                if case .received = stored.stage { continue }
                self.callers[stored.sequence]?.end(.failure(.storeFailed(words)))
            }
            self.tellOfStore(.everything, words)
        case .ended(let sequence):
            if self.callers[sequence]?.waiter == nil { self.tell(.storeFailed(words)) }
            self.finish(sequence, .failure(.storeFailed(words)), forgets: false)
        case .known: self.committed(changes)
        case .delayed: self.tellOfStore(changes[0].subject, words)
        case .split, .dropped: break
        }
    }

    private func tellOfStore(_ subject: MQTTStoreChange.Subject, _ words: String) {
        if self.toldOfStore.insert(subject).inserted { self.tell(.storeFailed(words)) }
    }

    private func storeTook(_ changes: [MQTTStoreChange]) {
        if self.toldOfStore.isEmpty { return }
        self.toldOfStore.remove(.everything)
        for change in changes { self.toldOfStore.remove(change.subject) }
    }
}
