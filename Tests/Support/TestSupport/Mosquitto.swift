import Foundation

/// The real broker, with a configuration of its own on a free port of 127.0.0.1.
package struct Mosquitto: Sendable {
    package static let isInstalled = Self.find("mosquitto") != nil && Self.find("mosquitto_sub") != nil
    /// For `.enabled(if:)`.
    package static let missing = "needs mosquitto and mosquitto-clients: make test installs them"

    package let port: Int
    /// Those of the listeners that were asked for beside the plain one.
    package let ports: [Int]
    package let program: RunningProgram

    private struct NotInstalled: Error {}

    /// Runs `body` with a fresh broker, which is stopped afterwards.
    ///
    /// There always is a plain listener. With only a WebSocket listener mosquitto 2.0 ends with "Unable to start any
    /// listening sockets", whatever its address: it counts the sockets it has opened itself, and those of WebSocket are
    /// libwebsockets' (eclipse-mosquitto/mosquitto#2578, #3383; 2.1 has its own). For the same reason 2.0.11 opens a
    /// WebSocket listener on every address, although 127.0.0.1 is configured.
    ///
    /// - Parameters:
    ///   - listener: more lines of its first listener, such as `cafile /...`.
    ///   - listeners: the lines of more listeners, such as `protocol websockets`; see ``ports``.
    ///   - body: what to run.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no broker.
    package static func with<Result>(
        listener: [String] = [],
        listeners: [String] = [],
        _ body: (Mosquitto) async throws -> Result
    ) async throws -> Result {
        let folder = try ScratchFolder()
        let broker = try await self.start(in: folder, listener, listeners)
        defer { broker.program.send(SIGKILL) }
        return try await body(broker)
    }

    /// Another process can take a free port before the broker binds it: then another port is tried.
    private static func start(
        in folder: ScratchFolder,
        _ listener: [String],
        _ listeners: [String]
    ) async throws -> Mosquitto {
        var attempt = 1
        while true {
            let port = try ReservedPort().port
            // Unlimited queues, so that nothing is dropped. An unlimited window would outgrow the packet identifiers
            // and be slow: it is searched from end to end. $SYS once a second.
            let configuration = """
                listener \(port) 127.0.0.1
                \(listener.joined(separator: "\n"))
                allow_anonymous true
                persistence false
                sys_interval 1
                max_queued_messages 0
                max_queued_bytes 0
                max_inflight_messages 100
                log_dest stderr
                """
            let reserved = try listeners.map { _ in try ReservedPort() }
            let more = zip(listeners, reserved).map { "listener \($1.port) 127.0.0.1\n\($0)\n" }.joined()
            let path = try folder.write(configuration + "\n" + more, to: "mosquitto-\(port).conf")
            for port in reserved { port.release() }
            guard let command = self.find("mosquitto") else { throw NotInstalled() }
            let program = try RunningProgram(command, ["-c", path])
            do {
                try await program.line(on: .errors) { $0.hasSuffix(" running") }
                return Mosquitto(port: port, ports: reserved.map(\.port), program: program)
            } catch  where attempt < 5 {
                program.send(SIGKILL)
                attempt += 1
            }
        }
    }

    /// One of the broker's clients, such as `mosquitto_sub`, told where the broker is.
    package func client(_ name: String, _ arguments: [String]) throws -> RunningProgram {
        guard let command = Self.find(name) else { throw NotInstalled() }
        return try RunningProgram(command, ["-h", "127.0.0.1", "-p", "\(self.port)"] + arguments)
    }

    /// Runs `body` beside `mosquitto_sub`, begun when its subscriptions are in effect.
    ///
    /// Its first line is a `$SYS` message. A format, if one is given, begins with the topic.
    package func withSubscriber<Result>(
        _ arguments: [String],
        _ body: (RunningProgram) async throws -> Result
    ) async throws -> Result {
        // Filters take effect in their order, and the last one has a retained message.
        let mark = "$SYS/broker/version"
        let subscriber = try self.client("mosquitto_sub", arguments + ["-t", mark])
        defer { subscriber.send(SIGKILL) }
        try await subscriber.line { $0.hasPrefix(mark) }
        return try await body(subscriber)
    }

    /// The value of a counter that the broker publishes under a `$SYS` topic; final if no traffic goes on.
    package func counter(_ topic: String) async throws -> Int {
        let clock = "$SYS/broker/uptime"
        let reader = try self.client("mosquitto_sub", ["-v", "-t", clock, "-t", topic])
        defer { reader.send(SIGKILL) }
        // The clock is published first in every round: its third value (one retained, two fresh) means that a
        // whole round has passed since the subscription.
        let lines = try await reader.lines { $0.count { $0.hasPrefix(clock) } >= 3 }
        let values = lines.filter { $0.hasPrefix("\(topic) ") }.map { $0.dropFirst(topic.count + 1) }
        return values.last.flatMap { Int($0) } ?? 0
    }

    private static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
