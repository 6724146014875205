import EmbeddedBroker
import Foundation
import MQTT
import NIOSSL
import TestSupport
import Testing
import Transport

/// A server that is up, and one of the ways to it.
struct Endpoint: Sendable, CustomTestStringConvertible {
    enum Server: String, CaseIterable, Sendable {
        case embedded, mosquitto, ejabberd
    }

    enum Link: String, CaseIterable, Sendable {
        case tcp = "TCP"
        case tls = "TLS"
        case mutualTLS = "mutual TLS"
        case preSharedKey = "PSK"
        case webSocket = "WebSocket"
        case secureWebSocket = "WSS"
    }

    let server: Server
    let link: Link
    var port = 0
    /// Only ejabberd has one: it refuses a client without.
    var user: String?
    var certificates: Certificates?

    var testDescription: String { "\(self.server.rawValue) over \(self.link.rawValue)" }

    static let pskIdentity = "clamor"
    static let pskKey = "0123456789abcdef0123456789abcdef"

    /// Everything that is tried; Debian's ejabberd offers MQTT over these three.
    static let all: [Endpoint] = Server.allCases.flatMap { server in
        let links: [Link] = server == .ejabberd ? [.tcp, .tls, .webSocket] : Link.allCases
        return links.map { Endpoint(server: server, link: $0) }
    }

    func configuration() throws -> MQTTClientConfiguration {
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(self.port))
        // A busy host is not what is tested.
        configuration.timeouts.connect = .seconds(600)
        configuration.timeouts.acknowledgement = .seconds(600)
        configuration.timeouts.ping = .seconds(600)
        if let user { configuration.credentials = .password(user: user, Ejabberd.password) }
        configuration.transport = try self.transport()
        return configuration
    }

    private func transport() throws -> MQTTTransport {
        var tls = MQTTTLS()
        tls.authorityFile = self.link == .preSharedKey ? nil : self.certificates?.authority
        switch self.link {
        case .tcp: return .tcp
        case .tls: return try .tls(tls)
        case .mutualTLS:
            tls.certificateFile = self.certificates?.certificate(.client)
            tls.keyFile = self.certificates?.key(.client)
            return try .tls(tls)
        case .preSharedKey:
            tls.preSharedKey = MQTTTLS.PreSharedKey(identity: Self.pskIdentity, hexKey: Self.pskKey)
            return try .tls(tls)
        case .webSocket: return try .webSocket()
        case .secureWebSocket: return try .secureWebSocket(tls: tls)
        }
    }

    /// Runs `body` with the server up.
    func withServer(_ body: (Endpoint) async throws -> Void) async throws {
        var here = self
        let certificates = try await Certificates.all()
        here.certificates = certificates
        switch self.server {
        case .embedded:
            let (configuration, tls) = try self.embedded(certificates)
            let broker = try await BrokerServer.start(configuration, tls: tls)
            here.port = broker.listeners.last?.port ?? 0
            do {
                try await body(here)
                await broker.stop()
            } catch {
                await broker.stop()
                throw error
            }
        case .mosquitto:
            try await Mosquitto.with(listeners: [self.mosquitto(certificates)]) { broker in
                here.port = broker.ports[0]
                try await body(here)
            }
        case .ejabberd:
            try await Ejabberd.with { server in
                here.user = server.username
                switch self.link {
                case .tls: here.port = server.tlsPort
                case .webSocket: here.port = server.webSocketPort
                default: here.port = server.port
                }
                try await body(here)
            }
        }
    }

    private func embedded(_ certificates: Certificates) throws -> (BrokerConfiguration, NIOSSLContext) {
        var configuration = BrokerConfiguration(port: 0)
        var tls = TLSServer(
            certificateFile: certificates.certificate(.server),
            keyFile: certificates.key(.server)
        )
        switch self.link {
        case .tcp: break
        case .tls: configuration.listeners = [BrokerListener(.tls, port: 0)]
        case .mutualTLS:
            tls.clientAuthorityFile = certificates.authority
            configuration.listeners = [BrokerListener(.tls, port: 0)]
        case .preSharedKey:
            tls = TLSServer()
            tls.preSharedKeys = [try TLSPreSharedKey(identity: Self.pskIdentity, hexKey: Self.pskKey)]
            configuration.listeners = [BrokerListener(.tls, port: 0)]
        case .webSocket: configuration.listeners = [BrokerListener(.webSocket, port: 0)]
        case .secureWebSocket: configuration.listeners = [BrokerListener(.secureWebSocket, port: 0)]
        }
        return (configuration, try tls.makeContext())
    }

    private func mosquitto(_ certificates: Certificates) throws -> String {
        let tls = """
            cafile \(certificates.authority)
            certfile \(certificates.certificate(.server))
            keyfile \(certificates.key(.server))
            """
        switch self.link {
        case .tcp: return ""
        case .tls: return tls
        case .mutualTLS: return tls + "\nrequire_certificate true"
        case .preSharedKey:
            return "psk_hint clamor\npsk_file \(try certificates.pskFile(Self.pskIdentity, Self.pskKey))"
        case .webSocket: return "protocol websockets"
        case .secureWebSocket: return "protocol websockets\n" + tls
        }
    }
}

extension Certificates {
    func pskFile(_ identity: String, _ key: String) throws -> String {
        let path = "\(self.folder)/psk"
        try "\(identity):\(key)\n".write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
