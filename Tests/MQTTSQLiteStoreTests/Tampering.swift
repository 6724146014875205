import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Testing

/// A file changed from outside the store, through SQL.
struct Tampering: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let sql: String
    /// Whether it starts out as a store with a message.
    var isStore = true
    let error: @Sendable (_ path: String) -> MQTTStoreError

    func make(_ path: String) async throws {
        if self.isStore {
            let store = try MQTTSQLiteStore(path: path)
            try await store.commit([.insert(.of(1)), .insert(.of(2, .received(3)))], client: "c")
            try await store.close()
        }
        try SQL.execute(self.sql, in: path)
    }

    static let refused: [Tampering] = [
        Tampering(testDescription: "an empty table", sql: "CREATE TABLE t (a)", isStore: false) { .foreign(path: $0) },
        Tampering(testDescription: "a mark of another program", sql: "PRAGMA application_id = 1", isStore: false) {
            .foreign(path: $0)
        },
        Tampering(testDescription: "a store with another mark", sql: "PRAGMA application_id = 1") {
            .foreign(path: $0)
        },
        Tampering(
            testDescription: "a schema of a later version",
            sql: "INSERT INTO grdb_migrations (identifier) VALUES ('2')"
        ) { .newer(path: $0) },
    ]

    static let senseless: [Tampering] =
        [
            ("a stage that is none", "UPDATE outbound SET state = 5 << 16"),
            ("a published message without an identifier", "UPDATE outbound SET state = 2 << 16"),
            ("a queued message with an identifier", "UPDATE outbound SET state = 1 << 16 | 3"),
            ("a QoS of 3", "UPDATE outbound SET qos = 3"),
            ("a QoS below 0", "UPDATE outbound SET qos = -1"),
            ("text for a number", "UPDATE outbound SET state = 'queued'"),
            ("bytes that are no topic", "UPDATE outbound SET topic = x'FF'"),
            ("properties that end too early", "UPDATE outbound SET properties = x'26'"),
            ("a number for a payload", "UPDATE outbound SET payload = 7"),
        ].map { name, sql in
            Tampering(testDescription: name, sql: sql) { .corrupt(path: $0, reason: "message 1 makes no sense") }
        } + [
            Tampering(testDescription: "a received message without an identifier", sql: "UPDATE inbound SET packet = 0")
            {
                .corrupt(path: $0, reason: "message 2 makes no sense")
            },
            Tampering(testDescription: "an identifier above 65,535", sql: "UPDATE inbound SET packet = 65536") {
                .corrupt(path: $0, reason: "message 2 makes no sense")
            },
        ]
}
