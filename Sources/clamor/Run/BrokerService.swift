import EmbeddedBroker
import FaultProxy
import Foundation
import RunResult
import SASL
import Transport

/// `clamor broker`: serves until a signal or the end of its parent, then prints its counters.
struct BrokerService {
    private let options: BrokerOptions
    private let screen: ProgressScreen

    init(_ options: BrokerOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: false)
    }

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
        self.screen.write(BrokerPorts.line(host: self.options.host, server.listeners))
        if self.options.isChild {
            await self.serveParent()
        } else {
            for await _ in Signals.stream() { break }
        }
        // A stall ends with it, so that no run waits for the counters of a broker that hangs.
        let counters = await server.stop()
        if !self.options.quiet || self.options.isChild {
            self.screen.write(counters: counters, isLine: self.options.isChild)
        }
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

    /// A child process serves until it is asked for its counters, which is once, or its standard input ends.
    private func serveParent() async {
        let lines = AsyncStream<String> { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
        for await line in lines where line == "counters" { break }
    }
}

extension ProgressScreen {
    /// Prints the counts of a server that has ended, for people or as one line.
    func write(counters: some Encodable, isLine: Bool = false) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = isLine ? [.sortedKeys] : [.sortedKeys, .prettyPrinted]
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

/// The broker's first line: `listening on 127.0.0.1:1883, tls 8883, ws 9001`.
enum BrokerPorts {
    static func line(host: String, _ listeners: [BrokerListener]) -> String {
        let others = listeners.dropFirst().map { ", \($0)" }.joined()
        return "listening on \(host):\(listeners.first?.port ?? 0)\(others)\n"
    }

    /// Parses the line; `nil` if it has another form.
    static func read(_ line: String) -> [BrokerListener]? {
        let parts = line.split(separator: ", ")
        guard let first = parts.first, first.hasPrefix("listening on "),
            let port = first.split(separator: ":").last.flatMap({ Int($0) })
        else { return nil }
        var listeners = [BrokerListener(.tcp, port: port)]
        for part in parts.dropFirst() {
            let words = part.split(separator: " ")
            guard words.count == 2, let transport = BrokerListener.Transport(rawValue: String(words[0])),
                let port = Int(words[1])
            else { return nil }
            listeners.append(BrokerListener(transport, port: port))
        }
        return listeners
    }
}

/// `clamor proxy`: serves until a signal, then prints its counters.
struct ProxyService {
    private let options: ProxyOptions
    private let screen: ProgressScreen

    init(_ options: ProxyOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: false)
    }

    func perform() async -> ExitStatus {
        Descriptors.raiseLimit()
        let screen = self.screen
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
