import EmbeddedBroker
import FaultProxy
import Foundation
import RunControl
import RunResult
import SASL
import Scenario
import Transport

/// `clamor broker`: serves until a signal or the end of its parent, then prints its counters.
struct BrokerService {
    let options: BrokerOptions
    private var screen: ProgressScreen { ProgressScreen(quiet: self.options.quiet, json: false) }

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let server: BrokerServer
        do {
            var configuration = BrokerConfiguration(
                host: self.options.host,
                port: self.options.port,
                faults: self.options.faults
            )
            configuration.listeners = self.listeners
            configuration.webSocket = WebSocketServerSettings(path: self.options.path)
            configuration.readsProxyHeader = self.options.readsProxyHeader
            configuration.maximumPacketSize = self.options.maximumPacketSize
            configuration.access = BrokerAccess(self.options.access)
            configuration.p2pRoots = self.options.p2pRoots
            server = try await BrokerServer.start(configuration, tls: try self.tls?.makeContext())
        } catch {
            self.screen.warn("\(error)")
            return .usage
        }
        if self.options.isChild {
            await self.serveParent(server.listeners)
            // A stall ends with it, so that no run waits for the counters of a broker that hangs.
            MessageSocket.toParent.send(BrokerReport.counted(await server.stop()))
            return .success
        }
        let others = server.listeners.dropFirst().map { ", \($0)" }.joined()
        self.screen.write("listening on \(self.options.host):\(server.listeners.first?.port ?? 0)\(others)\n")
        for await _ in Signals.stream() { break }
        let counters = await server.stop()
        if !self.options.quiet { self.screen.write(counters: counters) }
        return .success
    }

    private var listeners: [BrokerListener] {
        let ports: [(BrokerListener.Transport, Int?)] = [
            (.tls, self.options.tlsPort), (.webSocket, self.options.webSocketPort),
            (.secureWebSocket, self.options.secureWebSocketPort),
        ]
        return ports.compactMap { transport, port in port.map { BrokerListener(transport, port: $0) } }
    }

    private var tls: TLSServer? {
        get throws {
            guard self.options.tlsPort != nil || self.options.secureWebSocketPort != nil else { return nil }
            var server = TLSServer(certificateFile: self.options.certificateFile, keyFile: self.options.keyFile)
            server.clientAuthorityFile = self.options.authorityFile
            server.preSharedKeys = try self.options.preSharedKey.map { [try TLSPreSharedKey($0)] } ?? []
            return server
        }
    }

    /// A child process serves until it is asked for its counters, which is once, or its parent has gone.
    private func serveParent(_ listeners: [BrokerListener]) async {
        let ports = listeners.map { ($0.transport.rawValue, $0.port) }
        MessageSocket.toParent.send(BrokerReport.listens(Dictionary(ports) { first, _ in first }))
        _ = await SelfProcess.onThread { MessageSocket.toParent.receive(BrokerRequest.self) }
    }
}

extension ProgressScreen {
    /// Prints the counts of a server that has ended.
    func write(counters: some Encodable) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        guard let text = try? encoder.encode(counters) else { return }
        self.write(String(decoding: text, as: UTF8.self) + "\n")
    }
}

extension BrokerAccess {
    fileprivate init(_ options: BrokerAccessOptions) {
        self.init()
        guard let users = options.users else { return }
        self.users = users.mapValues { User(password: $0) }
        self.allowsAnonymous = options.allowsAnonymous
        self.scram = options.scram
    }
}

/// `clamor proxy`: serves until a signal, then prints its counters.
struct ProxyService {
    let options: ProxyOptions

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let screen = ProgressScreen(quiet: self.options.quiet, json: false)
        var configuration = ProxyConfiguration(target: self.options.target)
        configuration.host = self.options.host
        configuration.port = self.options.port
        configuration.faults = self.options.faults
        configuration.maximumClients = Descriptors.proxyClients
        configuration.maximumClientsRemedy = " with two descriptors each; raise ulimit -n"
        configuration.notice = { screen.warn($0) }
        let server: ProxyServer
        do {
            server = try await ProxyServer.start(configuration)
        } catch {
            screen.warn("\(error)")
            return .usage
        }
        screen.write("listening on \(self.options.host):\(server.port)\n")
        for await _ in Signals.stream() { break }
        let counters = await server.stop()
        if !self.options.quiet { screen.write(counters: counters) }
        return .success
    }
}
