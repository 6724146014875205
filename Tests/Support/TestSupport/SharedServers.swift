import Foundation
import Synchronization

/// A domain of a running XMPP server.
protocol ServedDomain: Sendable {
    var domain: String { get }
    /// XMPP with STARTTLS, TLS at once, WebSocket, and WebSocket in TLS.
    var clientPort: Int { get }
    var clientTLSPort: Int { get }
    var webSocketPort: Int { get }
    var secureWebSocketPort: Int { get }
    /// For components (XEP-0114).
    var componentPort: Int { get }
    var program: RunningProgram { get }
}

/// A server program that has many virtual hosts; a value stands for one of them.
protocol HostingServer: ServedDomain {
    /// The virtual host.
    var domain: String { get set }
    /// The program writes into it.
    var folder: ScratchFolder { get }
}

/// The servers of one kind that the tests of this process share: one, and another when its virtual hosts are used up.
///
/// A start costs more than most tests. No domain is handed out twice, so a test finds nothing that another one left
/// behind. The servers end with this process.
actor SharedServers<Server: HostingServer> {
    private struct Batch {
        let server: Task<Server, any Error>
        var domains: [String]
    }

    private let hosts: Int
    private let start: @Sendable (_ domains: [String]) async throws -> Server
    /// Of the server that still has domains to hand out.
    private var batch: Batch?
    private var named = 0

    /// - Parameters:
    ///   - hosts: how many virtual hosts a server has.
    ///   - start: starts a server with these domains.
    init(hosts: Int, _ start: @escaping @Sendable (_ domains: [String]) async throws -> Server) {
        self.hosts = hosts
        self.start = start
    }

    /// A virtual host for the caller alone, at a server that is up.
    func lease() async throws -> Server {
        var batch = self.batch ?? self.makeBatch()
        let domain = batch.domains.removeLast()
        self.batch = batch.domains.isEmpty ? nil : batch
        do {
            var server = try await batch.server.value
            server.domain = domain
            return server
        } catch {
            // All who wait for this start fail with it; the next caller tries again.
            if self.batch?.server == batch.server { self.batch = nil }
            throw error
        }
    }

    private func makeBatch() -> Batch {
        let domains = (1...self.hosts).map { "t\(self.named + $0).localhost" }
        self.named += self.hosts
        // Detached: the server belongs to no test.
        let server = Task.detached { [start = self.start] in
            let server = try await start(domains)
            AtExit.add(server)
            return server
        }
        return Batch(server: server, domains: domains.reversed())
    }
}

/// Ends what is shared when this process ends.
private enum AtExit {
    private static let servers = Mutex<[any HostingServer]>([])
    private static let isArranged = atexit { AtExit.end() }

    static func add(_ server: any HostingServer) {
        _ = self.isArranged
        self.servers.withLock { $0.append(server) }
    }

    private static func end() {
        for server in self.servers.withLock({ $0 }) {
            server.program.send(SIGKILL)
            // It writes into its folder as long as it runs. Another thread notes its end, and a handler of exit cannot
            // await that thread.
            while !server.program.hasEnded { usleep(1_000) }
            try? FileManager.default.removeItem(atPath: server.folder.path)
        }
    }
}
