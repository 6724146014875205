import Foundation
import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Testing
import TestSupport

@Suite("Refusals of a store on disk")
struct StoreRefusalTests {
    @Test("a new file is read by its owner alone, and an old one keeps its rights", arguments: [nil, 0o644])
    func rights(_ old: Int?) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        if let old {
            let attributes: [FileAttributeKey: Any] = [.posixPermissions: old]
            try #require(FileManager.default.createFile(atPath: path, contents: nil, attributes: attributes))
        }
        let store = try MQTTSQLiteStore(path: path)
        try await store.commit([.insert(.of(1))], client: "c")
        for file in ["db", "db-wal"] {
            let rights = try FileManager.default.attributesOfItem(atPath: folder.path(file))[.posixPermissions] as? Int
            #expect(rights == old ?? 0o600, "\(file)")
        }
        try await store.close()
    }

    // MARK: - Limits

    @Test("SPEC A9: takes 1,024 messages a client and direction, and not one more", arguments: [false, true])
    func messages(inbound: Bool) async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        func message(_ number: Int) -> MQTTStoreChange {
            .insert(.of(UInt64(number), inbound ? .received(PacketID(rawValue: UInt16(number)) ?? 1) : .queued))
        }
        try await store.commit((1...1023).map(message), client: "c")
        // All or none.
        await #expect(throws: MQTTStoreError.tooManyMessages(limit: 1024)) {
            try await store.commit([message(1024), message(1025)], client: "c")
        }
        try await store.commit([message(1024)], client: "c")
        await #expect(throws: MQTTStoreError.tooManyMessages(limit: 1024)) {
            try await store.commit([message(1025)], client: "c")
        }
        // Neither another client nor the other direction.
        try await store.commit([message(1)], client: "d")
        try await store.commit([.insert(.of(1, inbound ? .queued : .received(1)))], client: "c")
        // The count is still known after an opening, and room that is made is room.
        try await store.close()
        let again = try MQTTSQLiteStore(path: folder.path("db"))
        await #expect(throws: MQTTStoreError.tooManyMessages(limit: 1024)) {
            try await again.commit([message(1025)], client: "c")
        }
        try await again.commit([inbound ? .forget(5) : .remove(sequence: 5), message(1025)], client: "c")
        #expect(try await again.load(client: "c").count == 1025)
    }

    @Test("SPEC A9: the file stays within its size, and what is removed makes room")
    func size() async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        let limit = 1 << 20
        let store = try MQTTSQLiteStore(path: path, limits: MQTTStoreLimits(maxSize: limit))
        func message(_ sequence: UInt64) -> MQTTStoreChange {
            let message = MQTTMessage(topic: "t", payload: Array(repeating: 1, count: 10_000), qos: .atLeastOnce)
            return .insert(MQTTStoredMessage(sequence: sequence, stage: .queued, message: message))
        }
        var kept: UInt64 = 0
        await #expect(throws: MQTTStoreError.full(limit: limit)) {
            while kept < 200 {
                try await store.commit([message(kept + 1)], client: "c")
                kept += 1
            }
        }
        // 256 pages; three for each message, and a part of one for its front.
        #expect(kept >= 70 && kept <= 85)
        try await store.commit([.remove(sequence: 1), message(1000)], client: "c")
        #expect(try await store.load(client: "c").count == Int(kept))
        try await store.close()
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(try #require(size) <= limit)
    }

    @Test("a message that is larger than the whole store is refused by itself")
    func oversize() async throws {
        let folder = try ScratchFolder()
        let limit = 1 << 20
        let store = try MQTTSQLiteStore(path: folder.path("db"), limits: MQTTStoreLimits(maxSize: limit))
        let message = MQTTMessage(topic: "t", payload: Array(repeating: 1, count: 3 << 20), qos: .atLeastOnce)
        let stored = MQTTStoredMessage(sequence: 1, stage: .queued, message: message)
        await #expect(throws: MQTTStoreError.full(limit: limit)) {
            try await store.commit([.insert(stored)], client: "c")
        }
        try await store.commit([.insert(.of(1))], client: "c")
        #expect(try await store.load(client: "c") == [.of(1)])
    }

    // MARK: - Messages

    @Test(
        "properties that no packet can carry",
        arguments: [
            [Property(.payloadFormatIndicator, .byte(2))], [Property(.contentType, .byte(1))],
            [.userProperty("a", String(repeating: "x", count: 65_536))], [.topicAlias(0)], [.responseTopic("#")],
        ] as [[Property]]
    )
    func properties(_ entries: [Property]) async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        var stored = MQTTStoredMessage.of(1)
        stored.message.properties = Properties(entries)
        await #expect(throws: MQTTStoreError.unreadableProperties) {
            try await store.commit([.insert(stored)], client: "c")
        }
        #expect(try await store.load(client: "c") == [])
    }

    @Test("a number, or an identifier, that is taken", arguments: [MQTTStoredMessage.of(1), .of(9, .received(1))])
    func duplicate(_ message: MQTTStoredMessage) async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        try await store.commit([.insert(.of(1)), .insert(.of(8, .received(1)))], client: "c")
        await #expect(throws: MQTTStoreError.duplicate(1)) {
            try await store.commit([.insert(.of(2)), .insert(message)], client: "c")
        }
        #expect(try await store.load(client: "c") == [.of(1), .of(8, .received(1))])
    }

    // MARK: - Files

    @Test("a path that leads nowhere", arguments: ["no/such/db", "."])
    func nowhere(_ name: String) throws {
        let folder = try ScratchFolder()
        let path = folder.path(name)
        #expect(throws: MQTTStoreError.cannotOpen(path: path, reason: "unable to open database file")) {
            try MQTTSQLiteStore(path: path)
        }
    }

    @Test("a file that is something else, which stays as it is")
    func foreign() throws {
        let folder = try ScratchFolder()
        let text = String(repeating: "This is no database. ", count: 100)
        let path = try folder.write(text, to: "notes.txt")
        #expect(throws: MQTTStoreError.foreign(path: path)) { try MQTTSQLiteStore(path: path) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        #expect(folder.entries() == ["notes.txt"])
    }

    @Test("a database of another application, or of a later version", arguments: Tampering.refused)
    func tampered(_ tampering: Tampering) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        try await tampering.make(path)
        let before = try Data(contentsOf: URL(filePath: path))
        #expect(throws: tampering.error(path)) { try MQTTSQLiteStore(path: path) }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test("messages that make no sense", arguments: Tampering.senseless)
    func senseless(_ tampering: Tampering) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        try await tampering.make(path)
        let store = try MQTTSQLiteStore(path: path)
        await #expect(throws: tampering.error(path)) { try await store.load(client: "c") }
    }

    @Test("a damaged file, wherever the damage is", arguments: 0..<24)
    func damaged(_ page: Int) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        let written = (1...200).map { MQTTStoredMessage.of($0, .queued, String(repeating: "x", count: 300)) }
        let store = try MQTTSQLiteStore(path: path)
        try await store.commit(written.map { .insert($0) }, client: "c")
        try await store.close()
        var bytes = try Data(contentsOf: URL(filePath: path))
        let start = page * 4096
        try #require(start < bytes.count)
        for index in start..<min(start + 100, bytes.count) { bytes[index] ^= 0xA5 }
        try bytes.write(to: URL(filePath: path))
        // It is either refused as damaged or foreign, or the damage is where no message of the client is.
        do {
            let store = try MQTTSQLiteStore(path: path)
            _ = try await store.load(client: "c")
            try await store.commit([.insert(.of(1000))], client: "c")
        } catch {
            switch error as? MQTTStoreError {
            case .corrupt(path, _), .foreign(path): break
            default: Issue.record("\(error)")
            }
        }
    }

    @Test("a file that another store has, until that one is gone")
    func inUse() async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        let first = try MQTTSQLiteStore(path: path)
        #expect(throws: MQTTStoreError.inUse(path: path)) { try MQTTSQLiteStore(path: path) }
        let victim = try StoreProcess.start(["script", path, "1"])
        let ending = try await victim.ended()
        #expect(ending.outputLines == ["\(MQTTStoreError.inUse(path: path))"])
        try await first.close()
        _ = try MQTTSQLiteStore(path: path)
    }

    @Test("a file that may only be read", arguments: [false, true])
    func readOnly(isFolderWritable: Bool) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        try await MQTTSQLiteStore(path: path).close()
        try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path)
        let permissions = isFolderWritable ? 0o777 : 0o755
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: folder.path)
        // To root everything is writable.
        let ending = try await StoreProcess.start(["open", path, "65534"]).ended()
        #expect(ending.outputLines == ["\(MQTTStoreError.readOnly(path: path))"])
    }

    @Test(
        "a disk that is full; what was committed before is there",
        .enabled(if: StoreProcess.canMount, "needs a mount namespace")
    )
    func diskFull() async throws {
        let folder = try ScratchFolder()
        let script = """
            mount -t tmpfs -o size=600k tmpfs '\(folder.path)'
            '\(StoreProcess.path)' fill '\(folder.path)/db' | tail -2
            """
        let program = try RunningProgram("/usr/bin/env", ["unshare", "-m", "sh", "-ec", script])
        let lines = try await program.ended().outputLines
        try #require(lines.count == 2)
        #expect(Int(lines[0]) ?? 0 > 10)
        #expect(lines[1] == "\(MQTTStoreError.diskFull(path: "\(folder.path)/db"))")
    }
}
