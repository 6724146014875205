import Foundation
import GRDB
import MQTT
import MQTTCodec

/// Reads messages back; a file may hold anything, so nothing in it is taken for granted.
struct StoreReader {
    private let database: Database
    private let file: StoreFile

    init(_ database: Database, _ file: StoreFile) {
        self.database = database
        self.file = file
    }

    /// A client's number in the file.
    func number(of client: Data) throws -> Int64? {
        let statement = try self.database.cachedStatement(sql: "SELECT id FROM client WHERE name = ?")
        return try Int64.fetchOne(statement, arguments: [client])
    }

    /// Everything kept for a client: its own in order, then the server's.
    func messages(of client: String) throws -> [MQTTStoredMessage] {
        guard let id = try self.number(of: Data(client.utf8)) else { return [] }
        let columns = "qos, retain, expires, topic, properties, payload"
        // The order of unsigned numbers, which SQLite does not have.
        let order = "ORDER BY sequence < 0, sequence"
        let now = self.file.now()
        return try self.messages("SELECT sequence, state, \(columns) FROM outbound WHERE client = ? \(order)", id) {
            Self.message($0, now: now) { .init(code: $0) }
        }
            + self.messages("SELECT sequence, packet, \(columns) FROM inbound WHERE client = ? \(order)", id) {
                Self.message($0, now: now) { UInt16(exactly: $0).flatMap(PacketID.init).map { .received($0) } }
            }
    }

    private func messages(
        _ sql: String,
        _ id: Int64,
        _ message: (Row) -> MQTTStoredMessage?
    ) throws -> [MQTTStoredMessage] {
        var messages: [MQTTStoredMessage] = []
        let rows = try Row.fetchCursor(self.database, sql: sql, arguments: [id])
        while let row = try rows.next() {
            guard let message = message(row) else {
                let sequence = row[0] as DatabaseValue
                throw MQTTStoreError.corrupt(path: self.file.path, reason: "message \(sequence) makes no sense")
            }
            messages.append(message)
        }
        return messages
    }

    /// `nil` if it is not what this store writes.
    private static func message(
        _ row: Row,
        now: Int64,
        stage: (Int64) -> MQTTStoredMessage.Stage?
    ) -> MQTTStoredMessage? {
        guard let sequence = Self.number(row, 0), let stage = Self.number(row, 1).flatMap(stage),
            let qos = Self.number(row, 2).flatMap(UInt8.init(exactly:)).flatMap(QoS.init(rawValue:)),
            let retain = Self.number(row, 3),
            let topic = Self.bytes(row, 5).flatMap({ String(validating: $0, as: UTF8.self) }),
            var properties = Self.properties(row, 6), let payload = Self.bytes(row, 7)
        else { return nil }
        if let expires = Self.number(row, 4), let interval = properties.messageExpiryInterval {
            // Never more than it was: the clock may have been set back.
            let left = UInt32(clamping: expires.subtractingReportingOverflow(now).partialValue)
            properties.messageExpiryInterval = min(interval, left)
        }
        return MQTTStoredMessage(
            sequence: UInt64(bitPattern: sequence),
            stage: stage,
            message: MQTTMessage(topic: topic, payload: payload, qos: qos, retain: retain != 0, properties: properties)
        )
    }

    private static func number(_ row: Row, _ index: Int) -> Int64? { Int64.fromDatabaseValue(row[index]) }
    private static func bytes(_ row: Row, _ index: Int) -> Data? { Data.fromDatabaseValue(row[index]) }

    /// None is an empty list; `nil` is what cannot be read.
    private static func properties(_ row: Row, _ index: Int) -> Properties? {
        if (row[index] as DatabaseValue).isNull { return Properties() }
        return Self.bytes(row, index)?.withUnsafeBytes { bytes in try? Properties(validated: bytes) }
    }
}
