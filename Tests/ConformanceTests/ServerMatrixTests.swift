import MQTT
import TestSupport
import Testing

/// The same flows against every server, over every link that it has.
@Suite("Flows on every server", .enabled(if: Mosquitto.isInstalled && Ejabberd.isInstalled, "\(Ejabberd.missing)"))
struct ServerMatrixTests {
    @Test("flows", .timeLimit(.minutes(10)), arguments: Endpoint.all)
    func flows(_ endpoint: Endpoint) async throws {
        try await endpoint.withServer { endpoint in
            for (number, flow) in ServerFlow.all.enumerated() {
                for version in flow.versions {
                    if let reason = NotApplicable.reason(endpoint.server, version) {
                        try await Self.refuses(endpoint, version, reason)
                        continue
                    }
                    let visit = Visit(endpoint: endpoint, version: version, name: "f\(number)v\(version.rawValue)")
                    do {
                        try await flow.run(visit)
                    } catch {
                        Issue.record(error, "\(flow.testDescription), \(version)")
                    }
                }
            }
        }
    }

    /// A flow listed as not applicable really is: the server itself refuses it.
    private static func refuses(_ endpoint: Endpoint, _ version: ProtocolVersion, _ code: UInt8) async throws {
        var configuration = try endpoint.configuration()
        configuration.version = version
        configuration.clientID = "refused"
        let client = MQTTClient(configuration)
        do throws(MQTTClientError) {
            try await client.connect()
            Issue.record("\(version) is listed as refused, and was not")
        } catch {
            guard case .refused(let refusal) = error, refusal.code == code else {
                Issue.record("\(version) is listed as refused with \(code), and ended with \(error)")
                return
            }
        }
        await client.shutDown()
    }
}

/// Features that servers lack, with the servers' own words; the README of these tests has the table.
enum NotApplicable {
    /// The CONNACK code of a version that the server does not speak.
    static func reason(_ server: Endpoint.Server, _ version: ProtocolVersion) -> UInt8? {
        // Return code 1: unacceptable protocol version.
        server == .ejabberd && version == .v31 ? 1 : nil
    }

    /// By server: features that CONNACK switches off, or that it is seen to leave out.
    static let features: [Endpoint.Server: Set<String>] = [
        .ejabberd: ["shared subscriptions"],
        .mosquitto: ["the reason of a take-over"],
    ]
}

extension Visit {
    /// Not listed as what the server leaves out: it was just seen to do it.
    func does(_ feature: String) {
        let isListed = NotApplicable.features[self.endpoint.server]?.contains(feature) ?? false
        #expect(!isListed, "\(self.endpoint.testDescription) is listed without \(feature), and has it")
    }

    /// Listed, and told by the server itself; anything else is a failure.
    func notApplicable(_ feature: String, _ words: String) async {
        let isListed = NotApplicable.features[self.endpoint.server]?.contains(feature) ?? false
        #expect(isListed, "\(self.endpoint.testDescription), \(feature): \(words), and this is not listed")
    }
}
