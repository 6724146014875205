import Crypto
package import EmbeddedBroker
import Foundation
import RunResult
import Scenario
import SwiftASN1
import X509

/// The embedded broker of a run.
package protocol RunBroker: AnyObject {
    var port: Int { get }
    /// Its final counters: it serves no longer.
    func counters() -> BrokerCounters?
    /// Ends it, and waits for its end.
    func stop()
}

/// `clamor broker` as a child process, with its own descriptors and its own core.
///
/// It runs while the pipe to its standard input is open, so it ends with its parent, even if that is killed.
package final class EmbeddedProcess: RunBroker {
    package let port: Int
    private let process: SelfProcess

    /// Starts the broker on free ports of 127.0.0.1, with the checked flags of `--broker`.
    ///
    /// - Parameters:
    ///   - arguments: the flags of `--broker`.
    ///   - transport: the clients' transport below MQTT; ``port`` is its port.
    ///   - flags: the broker's flags for this transport, such as `--certfile`.
    ///   - environment: additional environment variables, for values that a command line must not show.
    /// - Throws: the reason why the broker did not start.
    package init(
        arguments: [String],
        transport: BrokerListener.Transport = .tcp,
        flags: [String] = [],
        environment: [String: String] = [:]
    ) throws(RunRefusal) {
        let listener = transport == .tcp ? [] : ["--\(transport.rawValue)-port", "0"]
        do {
            self.process = try SelfProcess(
                ["broker", "--child", "-h", "127.0.0.1", "-p", "0"] + listener + flags + arguments,
                input: .messages,
                errors: .inherited,
                environment: environment
            )
        } catch {
            throw RunRefusal("the embedded broker did not start: \(error.localizedDescription)", .unavailable)
        }
        guard case .listens(let ports)? = self.process.messages?.receive(BrokerReport.self),
            let port = ports[transport.rawValue]
        else {
            self.process.wait()
            throw RunRefusal("the embedded broker did not start", .unavailable)
        }
        self.port = port
    }

    package func counters() -> BrokerCounters? {
        guard self.process.isRunning, self.process.messages?.send(BrokerRequest.counters) ?? false,
            case .counted(let counters)? = self.process.messages?.receive(BrokerReport.self)
        else { return nil }
        return counters
    }

    package func stop() {
        self.process.messages?.finish()
        self.process.wait()
    }
}

/// A message from the broker to its run.
package enum BrokerReport: Codable, Sendable {
    /// Its ports, by the names of their transports.
    case listens([String: Int])
    case counted(BrokerCounters)
}

/// A message from a run to its broker.
package enum BrokerRequest: Codable, Sendable {
    /// Its counters, which end it.
    case counters
}

/// A self-signed certificate of the embedded broker for one run: its clients trust this one and no other.
struct EmbeddedCertificate: Sendable {
    private let directory: URL
    var certificateFile: String { self.directory.appending(path: "broker.pem").path }
    var keyFile: String { self.directory.appending(path: "broker.key").path }

    /// `nil` if the run needs none: without the embedded broker, without TLS, or with a pre-shared key.
    init?(for options: MQTTOptions) throws(RunRefusal) {
        guard options.isEmbedded, let tls = options.transport.tls, tls.psk == nil else { return nil }
        let made = try RunRefusal.unless { try Self.make() }
        let name = "clamor-\(UInt64.random(in: 0...UInt64.max))"
        self.directory = FileManager.default.temporaryDirectory.appending(path: name)
        do {
            // Only the owner may read the key.
            try FileManager.default.createDirectory(
                at: self.directory,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
            try Data(made.certificate.utf8).write(to: URL(filePath: self.certificateFile))
            try Data(made.key.utf8).write(to: URL(filePath: self.keyFile))
        } catch {
            throw RunRefusal("no room for the embedded broker's certificate: \(error.localizedDescription)")
        }
    }

    func remove() { try? FileManager.default.removeItem(at: self.directory) }

    /// Certificate and key in PEM: P-256, for the loopback address and its names, valid for the longest run.
    private static func make() throws -> (certificate: String, key: String) {
        let key = P256.Signing.PrivateKey()
        let signer = Certificate.PrivateKey(key)
        let name = try DistinguishedName { CommonName("clamor embedded broker") }
        let now = Date()
        let loopback = ASN1OctetString(contentBytes: [127, 0, 0, 1])
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: signer.publicKey,
            notValidBefore: now - 86_400,
            notValidAfter: now + 366 * 86_400,
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                SubjectAlternativeNames([.dnsName("localhost"), .ipAddress(loopback)])
            },
            issuerPrivateKey: signer
        )
        return (try certificate.serializeAsPEM().pemString, key.pemRepresentation)
    }
}

extension MQTTOptions {
    /// The embedded broker's transport below MQTT.
    var brokerTransport: BrokerListener.Transport { self.transport.choose(.tcp, .tls, .webSocket, .secureWebSocket) }

    /// The broker's flags for its transport.
    func brokerFlags(_ certificate: EmbeddedCertificate?) -> [String] {
        let proxy = self.transport.proxy == nil ? [] : ["--proxy-protocol"]
        guard let tls = self.transport.tls, tls.psk == nil else { return proxy }
        return proxy + (certificate.map { ["--certfile", $0.certificateFile, "--keyfile", $0.keyFile] } ?? [])
    }

    /// Secrets for the broker, which other users must not see.
    package var brokerEnvironment: [String: String] {
        guard let psk = self.transport.tls?.psk else { return [:] }
        let key = psk.key.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return [BrokerOptions.keyVariable: "\(psk.identity):\(key)"]
    }
}
