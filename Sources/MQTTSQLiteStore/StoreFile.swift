import GRDB
package import MQTT

/// The database file: how it is opened, what is in it, and what its errors mean.
package struct StoreFile: Sendable {
    package let path: String
    let durability: MQTTSQLiteStore.Durability
    let limits: MQTTStoreLimits
    /// Seconds since 1970, for what expires.
    let now: @Sendable () -> Int64

    package init(
        path: String,
        durability: MQTTSQLiteStore.Durability = .process,
        limits: MQTTStoreLimits = MQTTStoreLimits(),
        now: @escaping @Sendable () -> Int64 = { StoreSystem.now() }
    ) {
        self.path = path
        self.durability = durability
        self.limits = limits
        self.now = now
    }

    /// Bytes of a page, SQLite's default for a new file; an old one keeps its own.
    static let pageSize = 4096
    /// "CLMS": marks a file as a store of messages.
    static let applicationID: Int32 = 0x434C_4D53

    // MARK: - Opening

    func open() throws(MQTTStoreError) -> DatabaseQueue {
        do {
            var configuration = Configuration()
            configuration.label = "MQTTSQLiteStore"
            configuration.foreignKeysEnabled = false
            configuration.prepareDatabase { try self.prepare($0) }
            StoreSystem.make(self.path)
            let database = try DatabaseQueue(path: self.path, configuration: configuration)
            // Before the first write, so that a file of a later version stays as it is.
            if try database.read(Self.migrator.hasBeenSuperseded) { throw MQTTStoreError.newer(path: self.path) }
            try Self.migrator.migrate(database)
            return database
        } catch {
            // SQLite opens it all the same, and then fails at a lock or a write.
            if StoreSystem.isReadOnly(self.path) { throw .readOnly(path: self.path) }
            throw self.error(error)
        }
    }

    private func prepare(_ database: Database) throws {
        // One owner, so no other process can come between what is counted here and what is in the file; the index of
        // the log then needs no shared memory either.
        try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
        let mark = try Int32.fetchOne(database, sql: "PRAGMA application_id")
        let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") == 0
        guard mark == Self.applicationID || mark == 0 && isEmpty else { throw MQTTStoreError.foreign(path: self.path) }

        guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
            throw MQTTStoreError.cannotOpen(path: self.path, reason: "the file system has no write-ahead log")
        }
        // A commit is then in the hands of the kernel, which outlives the process; FULL waits for the disk as well.
        let synchronous = self.durability == .process ? "NORMAL" : "FULL"
        try database.execute(sql: "PRAGMA synchronous = \(synchronous)")
        let pageSize = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? Self.pageSize
        try database.execute(sql: "PRAGMA max_page_count = \(max(1, self.limits.maxSize / pageSize))")
        // The next checkpoint truncates a log that a large transaction enlarged.
        try database.execute(sql: "PRAGMA journal_size_limit = \(4 << 20)")
    }

    private static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1", migrate: Self.makeTables)
        return migrator
    }()

    /// Names and topics are kept as bytes: text would end at a U+0000, which a test on purpose may have.
    ///
    /// A row lies under its key, without a number of its own in between. `state` holds the stage and the packet
    /// identifier in a number that has three bytes in any stage: a step on is then written in place, however large the
    /// payload. `expires` is in seconds since 1970.
    private static func makeTables(_ database: Database) throws {
        try database.execute(
            sql: """
                PRAGMA application_id = \(Self.applicationID);
                CREATE TABLE client (
                    id INTEGER PRIMARY KEY,
                    name BLOB NOT NULL UNIQUE
                );
                CREATE TABLE outbound (
                    client INTEGER NOT NULL, sequence INTEGER NOT NULL, state INTEGER NOT NULL,
                    qos INTEGER NOT NULL, retain INTEGER NOT NULL, expires INTEGER,
                    topic BLOB NOT NULL, properties BLOB, payload BLOB NOT NULL,
                    PRIMARY KEY (client, sequence)
                ) WITHOUT ROWID;
                CREATE TABLE inbound (
                    client INTEGER NOT NULL, packet INTEGER NOT NULL, sequence INTEGER NOT NULL,
                    qos INTEGER NOT NULL, retain INTEGER NOT NULL, expires INTEGER,
                    topic BLOB NOT NULL, properties BLOB, payload BLOB NOT NULL,
                    PRIMARY KEY (client, packet)
                ) WITHOUT ROWID;
                """
        )
    }

    // MARK: - Errors

    func error(_ error: any Error) -> MQTTStoreError {
        if let known = error as? MQTTStoreError { return known }
        guard let error = error as? DatabaseError else { return .failed(path: self.path, reason: "\(error)") }
        let reason = error.message ?? "\(error.resultCode)"
        return switch error.resultCode {
        case .SQLITE_CANTOPEN: .cannotOpen(path: self.path, reason: reason)
        case .SQLITE_BUSY, .SQLITE_LOCKED: .inUse(path: self.path)
        case .SQLITE_NOTADB: .foreign(path: self.path)
        case .SQLITE_CORRUPT: .corrupt(path: self.path, reason: reason)
        case .SQLITE_FULL: .diskFull(path: self.path)
        default: .failed(path: self.path, reason: reason)
        }
    }
}
