import Foundation
import GRDB
import MQTT
import MQTTCodec

/// Accounts of the clients written so far.
///
/// The store owns the file, so they are valid until the store closes.
struct StoreAccounts: Sendable {
    struct Account: Sendable {
        /// The client's number in the file; none before its first message.
        var id: Int64?
        var outbound = 0
        var inbound = 0
    }

    /// By the bytes of the identifier: to Swift texts may be equal that to MQTT are not (§1.5.4).
    var byClient: [Data: Account] = [:]
}

/// Carries out the commits of one transaction.
struct StoreWriter {
    private let database: Database
    private let file: StoreFile
    /// The clients met in this transaction; they count when it is through.
    private var accounts: [Data: StoreAccounts.Account] = [:]
    private let insertOutbound: Statement
    private let insertInbound: Statement
    private let advance: Statement
    private let remove: Statement
    private let forget: Statement

    private init(_ database: Database, _ file: StoreFile) throws {
        self.database = database
        self.file = file
        let columns = "qos, retain, expires, topic, properties, payload"
        self.insertOutbound = try database.cachedStatement(
            sql: "INSERT INTO outbound (client, sequence, state, \(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self.insertInbound = try database.cachedStatement(
            sql: "INSERT INTO inbound (client, packet, sequence, \(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self.advance = try database.cachedStatement(
            sql: "UPDATE outbound SET state = ? WHERE client = ? AND sequence = ?"
        )
        self.remove = try database.cachedStatement(sql: "DELETE FROM outbound WHERE client = ? AND sequence = ?")
        self.forget = try database.cachedStatement(sql: "DELETE FROM inbound WHERE client = ? AND packet = ?")
    }

    /// Writes all commits in one transaction.
    ///
    /// If one of them fails, each is retried in a transaction of its own, so that one client's message cannot fail
    /// another's.
    ///
    /// - Returns: the result of each.
    static func write(
        _ commits: [StoreCommit],
        to database: Database,
        _ file: StoreFile,
        _ accounts: inout StoreAccounts
    ) -> [Result<Void, any Error>] {
        do {
            try Self.transaction(commits, database, file, &accounts)
            return commits.map { _ in .success(()) }
        } catch  where commits.count == 1 {
            return [.failure(Self.reason(error, for: commits[0], database, file))]
        } catch {
            return commits.flatMap { Self.write([$0], to: database, file, &accounts) }
        }
    }

    /// Whether it is the limit of the file, and not the disk, that keeps a commit out, is not in SQLite's error.
    private static func reason(
        _ error: any Error,
        for commit: StoreCommit,
        _ database: Database,
        _ file: StoreFile
    ) -> MQTTStoreError {
        guard (error as? DatabaseError)?.resultCode == .SQLITE_FULL else { return file.error(error) }
        func number(_ name: String) -> Int { (try? Int.fetchOne(database, sql: "PRAGMA \(name)")) ?? 0 }
        // The overhead of a row, and the tree nodes that may have to be split for it.
        let size = commit.parts.lazy.flatMap(\.changes).reduce(0) { size, change in
            guard case .insert(let stored) = change else { return size }
            let message = stored.message
            return size + message.topic.utf8.count + message.payload.count + message.properties.wireForm.count + 64
        }
        let pages = size / max(1, number("page_size")) + 16
        let isAtLimit = number("page_count") - number("freelist_count") + pages > number("max_page_count")
        return isAtLimit ? .full(limit: file.limits.maxSize) : file.error(error)
    }

    private static func transaction(
        _ commits: [StoreCommit],
        _ database: Database,
        _ file: StoreFile,
        _ accounts: inout StoreAccounts
    ) throws {
        var writer = try StoreWriter(database, file)
        try database.inTransaction(.immediate) {
            for part in commits.lazy.flatMap(\.parts) { try writer.write(part, accounts) }
            return .commit
        }
        accounts.byClient.merge(writer.accounts) { $1 }
    }

    private mutating func write(_ part: StoreCommit.Part, _ known: StoreAccounts) throws {
        var account = try self.accounts[part.client] ?? known.byClient[part.client] ?? self.account(of: part.client)
        for change in part.changes {
            switch change {
            case .insert(let message): try self.insert(message, of: part.client, &account)
            case .advance(let sequence, let stage): try self.advance(sequence, to: stage, account)
            case .remove(let sequence):
                guard let id = account.id else { continue }
                try self.remove.execute(arguments: [id, Int64(bitPattern: sequence)])
                account.outbound -= self.database.changesCount
            case .forget(let packet):
                guard let id = account.id else { continue }
                try self.forget.execute(arguments: [id, Int64(packet.rawValue)])
                account.inbound -= self.database.changesCount
            case .removeAll: try self.removeAll(&account)
            }
        }
        self.accounts[part.client] = account
    }

    // MARK: - Changes

    private func insert(_ stored: MQTTStoredMessage, of client: Data, _ account: inout StoreAccounts.Account) throws {
        let message = stored.message
        let properties = try Self.bytes(message.properties)
        let id = try account.id ?? self.makeClient(client)
        account.id = id
        let key: Int64
        let second: Int64
        let isInbound: Bool
        if case .received(let packet) = stored.stage {
            (key, second, isInbound) = (Int64(packet.rawValue), Int64(bitPattern: stored.sequence), true)
        } else {
            (key, second, isInbound) = (Int64(bitPattern: stored.sequence), stored.stage.code, false)
        }
        let limit = self.file.limits.maxMessages
        guard (isInbound ? account.inbound : account.outbound) < limit else {
            throw MQTTStoreError.tooManyMessages(limit: limit)
        }
        let expires = message.properties.messageExpiryInterval.map { self.file.now() + Int64($0) }
        let arguments: StatementArguments = [
            id, key, second, Int64(message.qos.rawValue), message.retain ? 1 : 0, expires, Data(message.topic.utf8),
            properties, Data(message.payload),
        ]
        do {
            try (isInbound ? self.insertInbound : self.insertOutbound).execute(arguments: arguments)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            throw MQTTStoreError.duplicate(UInt64(bitPattern: key))
        }
        if isInbound { account.inbound += 1 } else { account.outbound += 1 }
    }

    private func advance(
        _ sequence: UInt64,
        to stage: MQTTStoredMessage.Stage,
        _ account: StoreAccounts.Account
    ) throws {
        if case .received = stage {
            let words = "message \(sequence) of the client cannot become one of the server's"
            throw MQTTStoreError.failed(path: self.file.path, reason: words)
        }
        guard let id = account.id else { return }
        try self.advance.execute(arguments: [stage.code, id, Int64(bitPattern: sequence)])
    }

    private func removeAll(_ account: inout StoreAccounts.Account) throws {
        guard let id = account.id else { return }
        for sql in [
            "DELETE FROM outbound WHERE client = ?", "DELETE FROM inbound WHERE client = ?",
            "DELETE FROM client WHERE id = ?",
        ] {
            try self.database.cachedStatement(sql: sql).execute(arguments: [id])
        }
        account = StoreAccounts.Account()
    }

    // MARK: - Clients

    /// Reads the account of a client that this store has not written for yet.
    private func account(of client: Data) throws -> StoreAccounts.Account {
        var account = StoreAccounts.Account()
        guard let id = try StoreReader(self.database, self.file).number(of: client) else { return account }
        account.id = id
        account.outbound = try self.count("outbound", id)
        account.inbound = try self.count("inbound", id)
        return account
    }

    private func count(_ table: String, _ id: Int64) throws -> Int {
        try Int.fetchOne(self.database, sql: "SELECT count(*) FROM \(table) WHERE client = ?", arguments: [id]) ?? 0
    }

    private func makeClient(_ name: Data) throws -> Int64 {
        try self.database.cachedStatement(sql: "INSERT INTO client (name) VALUES (?)")
            .execute(arguments: [name])
        return self.database.lastInsertedRowID
    }

    /// Properties as encoded in a packet.
    ///
    /// Properties that could not be decoded again are refused now, while the caller can get the error.
    private static func bytes(_ properties: Properties) throws -> Data? {
        if properties.isEmpty { return nil }
        let bytes = properties.wireForm
        let again = bytes.withUnsafeBytes { bytes in try? Properties(validated: bytes) }
        guard again == properties else { throw MQTTStoreError.unreadableProperties }
        return Data(bytes)
    }
}

extension MQTTStoredMessage.Stage {
    /// The stage and the packet identifier of a message of ours as one number, from 65,536 on.
    var code: Int64 {
        switch self {
        case .queued: 1 << 16
        case .published(let id): 2 << 16 | Int64(id.rawValue)
        case .released(let id): 3 << 16 | Int64(id.rawValue)
        case .received: 0
        }
    }

    /// `nil` for what is no code.
    init?(code: Int64) {
        let id = PacketID(rawValue: UInt16(truncatingIfNeeded: code))
        switch (code >> 16, id) {
        case (1, nil): self = .queued
        case (2, let id?): self = .published(id)
        case (3, let id?): self = .released(id)
        default: return nil
        }
    }
}
