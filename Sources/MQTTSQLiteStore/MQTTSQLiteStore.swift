import Dispatch
import Foundation
import GRDB
public import MQTT
import Synchronization

/// Keeps clients' messages in an SQLite database, where they survive the process.
///
/// One store serves any number of clients; their messages lie in one file. Everything is written by one thread of the
/// store's own, so a commit holds up neither an event loop nor a thread of Swift's pool. Commits that arrive while
/// another is being written are joined into one transaction: the more clients wait, the less each costs.
///
/// ```swift
/// let store = try MQTTSQLiteStore(path: "messages.sqlite")
/// ```
///
/// A file has one owner at a time. A second store on the same path, in this process or another, is refused with
/// `MQTTStoreError/inUse(path:)`; the lock of a killed process is gone with it. While a store is open there are two
/// files: the database, and beside it the write-ahead log (`-wal`) with what is not in the database yet. Both belong
/// together; the log is folded into the database now and then, and when the store closes.
public final class MQTTSQLiteStore: MQTTMessageStore, Sendable {
    /// The failures that a commit survives.
    public enum Durability: Hashable, Sendable {
        /// The end of the process, however violent. When the machine loses power, the file stays sound, but the last
        /// commits may be missing: a message of QoS 1 or 2 that was done with is then sent again, and one published
        /// in the last moments is lost.
        case process
        /// The loss of power as well: each transaction waits for the disk.
        case powerLoss
    }

    private struct Waiting {
        var commits: [StoreCommit] = []
        var isWriting = false
        var isClosed = false
        var groups = 0
    }

    private let database: DatabaseQueue
    private let file: StoreFile
    private let waiting = Mutex(Waiting())
    private let accounts = Mutex(StoreAccounts())

    /// Opens the database, and makes it if there is none.
    ///
    /// Waits for the disk.
    ///
    /// - Parameters:
    ///   - path: of the file; its directory has to exist, and to be writable.
    ///   - durability: what a commit outlives.
    ///   - limits: what is taken: by default 1,024 messages a client and direction, and a file of 64 MiB. The
    ///     write-ahead log comes on top, with 4 MiB or the largest transaction.
    /// - Throws: why the file cannot serve; a file that is something else, damaged, or of a later version stays as it
    ///   is.
    public convenience init(
        path: String,
        durability: Durability = .process,
        limits: MQTTStoreLimits = MQTTStoreLimits()
    ) throws(MQTTStoreError) {
        try self.init(StoreFile(path: path, durability: durability, limits: limits))
    }

    package init(_ file: StoreFile) throws(MQTTStoreError) {
        self.file = file
        self.database = try file.open()
    }

    /// Everything kept for a client: its own messages in order of `sequence`, then the server's.
    ///
    /// An expiry interval is what is left of it: the time that the message has lain in the store is taken off. One
    /// that has run out is 0.
    ///
    /// - Parameter client: the client identifier.
    /// - Returns: what is kept; of an unknown client nothing.
    /// - Throws: `MQTTStoreError`, or `CancellationError`.
    public func load(client: String) async throws -> [MQTTStoredMessage] {
        guard !self.waiting.withLock(\.isClosed) else { throw MQTTStoreError.closed }
        do {
            return try await self.database.read { [file] in try StoreReader($0, file).messages(of: client) }
        } catch let error as DatabaseError {
            throw self.file.error(error)
        }
    }

    /// Makes the changes, in order and all of them or none.
    ///
    /// A step for a message that is not there (any more) is no error. Not cancelled with its task: what has begun is
    /// done.
    ///
    /// - Parameters:
    ///   - changes: what happened to the client's messages.
    ///   - client: the client identifier.
    /// - Throws: `MQTTStoreError`; then nothing of it was made.
    public func commit(_ changes: [MQTTStoreChange], client: String) async throws {
        if changes.isEmpty { return }
        try await withCheckedThrowingContinuation { continuation in
            let part = StoreCommit.Part(client: Data(client.utf8), changes: changes)
            self.enqueue(StoreCommit(parts: [part]) { continuation.resume(with: $0) })
        }
    }

    /// Writes pending changes, merges the log into the database and releases the file.
    ///
    /// Later calls fail with `MQTTStoreError/closed`. A store without references closes by itself.
    ///
    /// - Throws: `MQTTStoreError`.
    public func close() async throws {
        self.waiting.withLock { $0.isClosed = true }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // Waits for the disk, and for what is being written.
            DispatchQueue.global().async {
                self.database.writeWithoutTransaction { self.write($0, untilEmpty: true) }
                continuation.resume(with: Result { try self.database.close() }.mapError { self.file.error($0) })
            }
        }
    }

    // MARK: - The writer

    /// How often commits were written, any number of them together.
    package var groups: Int { self.waiting.withLock(\.groups) }

    private func enqueue(_ commit: StoreCommit) {
        let (isClosed, begins) = self.waiting.withLock { waiting in
            if waiting.isClosed { return (true, false) }
            waiting.commits.append(commit)
            defer { waiting.isWriting = true }
            return (false, !waiting.isWriting)
        }
        if isClosed { return commit.done(.failure(MQTTStoreError.closed)) }
        if begins { self.schedule() }
    }

    private func schedule() { self.database.asyncWriteWithoutTransaction { self.write($0, untilEmpty: false) } }

    /// Writes what waits now; what has come meanwhile takes another turn, behind those who want to read.
    private func write(_ database: Database, untilEmpty: Bool) {
        while true {
            let commits = self.waiting.withLock { waiting in
                defer { waiting.commits = [] }
                waiting.isWriting = !waiting.commits.isEmpty
                waiting.groups += waiting.isWriting ? 1 : 0
                return waiting.commits
            }
            if commits.isEmpty { return }
            let results = self.accounts.withLock { accounts in
                StoreWriter.write(commits, to: database, self.file, &accounts)
            }
            for (commit, result) in zip(commits, results) { commit.done(result) }
            if !untilEmpty { return self.schedule() }
        }
    }
}

/// One commit that waits: all of it is made, or nothing.
struct StoreCommit: Sendable {
    struct Part: Sendable {
        /// The bytes of the identifier.
        let client: Data
        let changes: [MQTTStoreChange]
    }

    let parts: [Part]
    let done: @Sendable (Result<Void, any Error>) -> Void
}
