import EmbeddedBroker
import MQTT
import TestSupport
import Testing
import Transport

@Suite("[SPEC A13] TLS as a client asks for it", .timeLimit(.minutes(10)))
struct ClientTLSTests {
    /// Connects to a broker with this certificate, and returns what went wrong.
    private func failure(_ name: Certificates.Name, _ change: (inout MQTTTLS) -> Void) async throws -> String? {
        let certificates = try await Certificates.all()
        var configuration = BrokerConfiguration(port: 0)
        configuration.listeners = [BrokerListener(.tls, port: 0)]
        let server = TLSServer(certificateFile: certificates.certificate(name), keyFile: certificates.key(name))
        let broker = try await BrokerServer.start(configuration, tls: try server.makeContext())
        var tls = MQTTTLS()
        tls.authorityFile = certificates.authority
        tls.serverName = "broker.test"
        change(&tls)
        let transport = try MQTTTransport.tls(tls)
        let port = broker.listeners.last?.port ?? 0
        let client = MQTTClient(MQTTClientConfiguration(port: port) { $0.transport = transport })
        let error = await MQTTTests.failure { try await client.connect() }
        await client.shutDown()
        await broker.stop()
        guard case .noConnection(let why)? = error else { return error.map { "\($0)" } }
        let prefix = "no TLS with 127.0.0.1:\(port): "
        return why.words.hasPrefix(prefix) ? String(why.words.dropFirst(prefix.count)) : why.words
    }

    @Test("the certificate has to be for the server's name, unless it is said that it need not")
    func name() async throws {
        let wrong = TLSFailure.wrongName(wanted: "broker.test", names: ["elsewhere.test"])
        #expect(try await self.failure(.wrongName) { _ in } == "\(wrong)")
        #expect(try await self.failure(.wrongName) { $0.validatesName = false } == nil)
        // The authority has to be right all the same.
        #expect(try await self.failure(.selfSigned) { $0.validatesName = false } != nil)
    }

    @Test("one pinned key is enough, unless the whole chain has to be pinned")
    func chain() async throws {
        let certificates = try await Certificates.all()
        let (own, authority) = (try certificates.pin(.server), try certificates.pin(.authority))
        #expect(try await self.failure(.server) { $0.pins = [own] } == nil)
        let partly = try await self.failure(.server) {
            $0.pins = [own]
            $0.pinsWholeChain = true
        }
        #expect(partly == "\(TLSFailure.pinMismatch("the key of CN=Clamor Test CA is \(authority)"))")
        let whole = try await self.failure(.server) {
            $0.pins = [own, authority]
            $0.pinsWholeChain = true
        }
        #expect(whole == nil)
    }
}
