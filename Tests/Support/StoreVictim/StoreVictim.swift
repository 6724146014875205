import MQTT
import MQTTCodec
import MQTTSQLiteStore

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A process with a store, to be killed: what the tests cannot do to themselves.
///
/// `script PATH SEED`: commits the script of the seed and prints the number of each commit that returned.
/// `open PATH USER`: opens the store as this user, and prints how that ended.
/// `publish PORT VERSION PATH`: publishes with a client of the store until it is killed, see ``VictimClient``.
/// `finish PORT VERSION PATH`: ends what such clients have begun.
/// `fill PATH`: commits 1,000 bytes at a time and prints the error that ends it.
@main
struct StoreVictim {
    static func main() async {
        do {
            try await self.run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            say("\(error)")
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) async throws {
        switch (arguments.first, arguments.count) {
        case ("script", 3): try await self.script(arguments[1], seed: UInt64(arguments[2]) ?? 0)
        case ("open", 3): try self.open(arguments[1], user: uid_t(arguments[2]) ?? 0)
        case ("publish", 4): try await VictimClient(arguments).publish()
        case ("finish", 4): try await VictimClient(arguments).finish()
        case ("fill", 2): try await self.fill(arguments[1])
        default: exit(64)
        }
    }

    private static func script(_ path: String, seed: UInt64) async throws {
        let store = try MQTTSQLiteStore(path: path)
        for (number, changes) in StoreScript(seed: seed).enumerated() {
            try await store.commit(changes, client: "victim")
            say("\(number + 1)")
        }
    }

    private static func open(_ path: String, user: uid_t) throws {
        if geteuid() == 0, setuid(user) != 0 { exit(64) }
        _ = try MQTTSQLiteStore(path: path)
        say("opened")
    }

    private static func fill(_ path: String) async throws {
        let store = try MQTTSQLiteStore(path: path)
        for sequence in 1... {
            let message = MQTTMessage(topic: "fill", payload: Array(repeating: 1, count: 1000), qos: .atLeastOnce)
            let stored = MQTTStoredMessage(sequence: UInt64(sequence), stage: .queued, message: message)
            try await store.commit([.insert(stored)], client: "client \(sequence / 1000)")
            say("\(sequence)")
        }
    }
}

/// A line on stdout, at once: what a buffer held would be gone with the process.
func say(_ text: String) {
    let line = Array("\(text)\n".utf8)
    _ = line.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}
