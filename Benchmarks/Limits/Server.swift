import Foundation
import Glibc

/// The counts of a sink; it counts whole packets, so that a client's own count can be checked.
struct SinkCounts: Decodable {
    let live: UInt64
    let connects: UInt64
    let publishes: [UInt64]
    let answers: UInt64
    let delivered: UInt64
    let errors: UInt64
}

/// A server on a port and a core of its own, for one run or several.
final class Server {
    enum Kind {
        case sink(String)
        case mosquitto
        case embedded
        /// Its XMPP listener, for clients without accounts.
        case ejabberd
    }

    /// The layer between the packets and TCP.
    enum Wire {
        case plain, tls, webSocket
    }

    let name: String
    private(set) var port: Int
    private let child: Child
    private let kind: Kind
    /// Its end is the sink's end.
    private let stdin: Int32
    /// That are yet to come; with the last one it ends.
    private var clients: Int
    private var isStopped = false

    init(_ kind: Kind, over wire: Wire = .plain, clients: Int = 1, in laboratory: Laboratory) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0, fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0 else {
            throw Refusal("no pipe: \(String(cString: strerror(errno)))")
        }
        defer { _ = Glibc.close(ends[0]) }
        self.stdin = ends[1]
        self.kind = kind
        self.clients = clients
        self.port = 0
        let command: [String]
        switch kind {
        case .sink(let mode):
            self.name = "climit sink --mode \(mode)" + (wire == .tls ? ", TLS" : "")
            guard wire != .webSocket else { throw Refusal("the sink speaks no WebSocket") }
            let secret = try wire == .tls ? laboratory.certificates.get().serverArguments : []
            command = [laboratory.climit, "sink", "--mode", mode] + secret
        case .embedded:
            self.name = "clamor broker"
            command = [laboratory.clamor, "broker", "-p", "0", "--quiet"]
        case .mosquitto:
            self.name = "mosquitto" + (wire == .plain ? "" : wire == .tls ? ", TLS" : ", WebSocket")
            self.port = try Self.freePort()
            command = try [laboratory.mosquitto, "-c", Self.configuration(port: self.port, wire, laboratory)]
        case .ejabberd:
            self.name = "ejabberd"
            self.port = try Self.freePort()
            command = try Self.ejabberd(port: self.port, laboratory)
        }
        self.child = try Child(
            // A server must not outlive this process, whatever ends it.
            ["setpriv", "--pdeathsig", "TERM"] + command,
            core: Laboratory.serverCore,
            directory: laboratory.directory,
            name: laboratory.unique("server"),
            input: ends[0]
        )
        try self.awaitStart()
    }

    /// It did not start, or a run was given up.
    deinit {
        guard !self.isStopped else { return }
        self.child.signal(SIGKILL)
        _ = try? self.child.wait(limit: 5)
        Glibc.close(self.stdin)
    }

    /// Waits until it says its port, or takes a connection on it.
    private func awaitStart() throws {
        let limit = Date().addingTimeInterval(20)
        while Date() < limit {
            switch self.kind {
            case .mosquitto, .ejabberd: if Self.accepts(self.port) { return }
            case .sink, .embedded: break
            }
            if self.port == 0, let port = Self.port(in: self.child.output) {
                self.port = port
                return
            }
            usleep(5000)
        }
        throw Mismatch("\(self.name) did not start")
    }

    /// The sink's counts so far.
    func counts() throws -> SinkCounts {
        let before = self.child.output.count
        self.child.signal(SIGUSR1)
        let limit = Date().addingTimeInterval(20)
        while Date() < limit {
            let text = self.child.output
            if text.count > before, text.hasSuffix("\n") { return try Self.decode(text) }
            usleep(2000)
        }
        throw Mismatch("\(self.name) does not answer")
    }

    /// CPU seconds used so far.
    func cpuSeconds() throws -> Double { try self.child.cpuSeconds() }

    /// Waits for what clients that are gone have left in its sockets.
    ///
    /// - Returns: the seconds for which it was busy with it.
    func untilIdle() throws -> Double {
        let begun = Date()
        var (busy, used) = (begun, try self.cpuSeconds())
        while busy.timeIntervalSince(begun) < 120 {
            usleep(20_000)
            let now = try self.cpuSeconds()
            guard now - used > 0.002 else { break }
            (busy, used) = (Date(), now)
        }
        return busy.timeIntervalSince(begun)
    }

    /// A client is gone; behind the last one it ends, and a sink tells what it has counted.
    func served() throws -> SinkCounts? {
        self.clients -= 1
        guard self.clients == 0 else { return nil }
        self.child.signal(SIGTERM)
        self.isStopped = true
        defer { Glibc.close(self.stdin) }
        let ending = try self.child.wait(limit: 30)
        guard case .sink = self.kind else { return nil }
        let counts = try Self.decode(ending.output)
        guard counts.errors == 0 else { throw Mismatch("\(self.name) saw \(counts.errors) errors") }
        return counts
    }

    private static func decode(_ output: String) throws -> SinkCounts {
        let line = output.split(separator: "\n").last ?? ""
        return try JSONDecoder().decode(SinkCounts.self, from: Data(line.utf8))
    }

    /// Writes mosquitto's file: nothing is stored, and nothing is dropped for want of room.
    private static func configuration(port: Int, _ wire: Wire, _ laboratory: Laboratory) throws -> String {
        // Settings after a listener apply to that listener.
        let listener =
            switch wire {
            case .plain: "listener \(port) 127.0.0.1"
            case .tls: try "listener \(port) 127.0.0.1\n" + laboratory.certificates.get().mosquittoLines
            // With listeners for WebSocket alone, 2.0.11 says that it has none, and ends.
            case .webSocket:
                try "listener \(Self.freePort()) 127.0.0.1\nlistener \(port) 127.0.0.1\nprotocol websockets"
            }
        let text = """
            \(listener)
            allow_anonymous true
            persistence false
            log_dest none
            max_queued_messages 0
            set_tcp_nodelay true
            user root

            """
        let file = "\(laboratory.directory)/\(laboratory.unique("mosquitto.conf"))"
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        return file
    }

    /// An Erlang node without distribution, whose users need no accounts and whose clients are not rate-limited.
    private static func ejabberd(port: Int, _ laboratory: Laboratory) throws -> [String] {
        let folder = "\(laboratory.directory)/\(laboratory.unique("ejabberd"))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let text = """
            hosts: ["localhost"]
            loglevel: error
            log_rotate_count: 0
            auth_method: [anonymous]
            anonymous_protocol: login_anon
            allow_multiple_connections: true
            listen:
              - port: \(port)
                ip: "127.0.0.1"
                module: ejabberd_c2s
                backlog: 4096
                max_stanza_size: 1048576
                max_fsm_queue: 1000000
                starttls: false
            modules:
              mod_ping: {}
              mod_stream_mgmt: {max_ack_queue: infinity}

            """
        try text.write(toFile: "\(folder)/ejabberd.yml", atomically: false, encoding: .utf8)
        let libraries = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "/usr/lib/\($0)" }
            .first { FileManager.default.fileExists(atPath: $0) }
        guard access("/usr/bin/erl", X_OK) == 0, access("/usr/sbin/ejabberdctl", X_OK) == 0, let libraries else {
            throw Refusal("ejabberd is missing: apt-get install ejabberd")
        }
        return [
            "env", "EJABBERD_CONFIG_PATH=\(folder)/ejabberd.yml", "EJABBERD_LOG_PATH=\(folder)/ejabberd.log",
            "ERL_LIBS=\(libraries)", "ERL_CRASH_DUMP=/dev/null", "HOME=\(folder)", "ERL_MAX_PORTS=65536",
            "/usr/bin/erl", "-noinput", "+P", "1000000", "+Q", "65536", "-mnesia", "dir", "\"\(folder)/mnesia\"",
            "-eval", "{ok, _} = application:ensure_all_started(ejabberd).",
        ]
    }

    // MARK: Ports

    /// The number at the end of the first line, once that is whole.
    private static func port(in output: String) -> Int? {
        guard let end = output.firstIndex(of: "\n") else { return nil }
        return Int(String(output[..<end].reversed().prefix { $0.isNumber }.reversed()))
    }

    private static func withSocket<R>(_ port: Int, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { _ = Glibc.close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func freePort() throws -> Int {
        let port = Self.withSocket(0) { descriptor, address, size -> Int in
            guard bind(descriptor, address, size) == 0 else { return 0 }
            var bound = sockaddr_in()
            var length = size
            withUnsafeMutablePointer(to: &bound) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = getsockname(descriptor, $0, &length)
                }
            }
            return Int(UInt16(bigEndian: bound.sin_port))
        }
        guard port > 0 else { throw Refusal("no free port on 127.0.0.1") }
        return port
    }

    private static func accepts(_ port: Int) -> Bool {
        Self.withSocket(port) { descriptor, address, size in connect(descriptor, address, size) == 0 }
    }
}
