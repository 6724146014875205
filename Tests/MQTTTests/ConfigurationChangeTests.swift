import MQTT
import MQTTCodec
import NIOCore
import Testing

@Suite("Changes that make another configuration")
struct ConfigurationChangeTests {
    typealias Edit = @Sendable (inout MQTTClientConfiguration) -> Void

    /// One for each part that is stored.
    static let edits: [(name: String, edit: Edit)] = [
        ("transport", { $0.transport = .custom(defaultPort: 1) { _ in throw ChannelError.eof } }),
        ("addressPreference", { $0.addressPreference = .ipv4Only }),
        ("version", { $0.version = .v31 }),
        ("cleanStart", { $0.cleanStart = false }),
        ("clientID", { $0.clientID = "other" }),
        ("credentials", { $0.credentials = .password(user: "u", [1]) }),
        ("provider", { $0.credentialsProvider = { _ in .none } }),
        ("sharedAuthentication", { $0.authentication = .scramSHA256(user: "u", password: "p") }),
        ("will", { $0.will = Will(topic: "t", payload: []) }),
        ("keepAlive", { $0.keepAlive = 1 }),
        ("keepAliveJitter", { $0.keepAliveJitter = 0.5 }),
        ("sessionExpiry", { $0.sessionExpiry = 1 }),
        ("receiveMaximum", { $0.receiveMaximum = 1 }),
        ("maximumPacketSize", { $0.maximumPacketSize = 1_000 }),
        ("topicAliasMaximum", { $0.topicAliasMaximum = 1 }),
        ("outboundTopicAliases", { $0.outboundTopicAliases = 1 }),
        ("requestsResponseInformation", { $0.requestsResponseInformation = true }),
        ("requestsProblemInformation", { $0.requestsProblemInformation = false }),
        ("userProperties", { $0.userProperties = [UserProperty("n", "v")] }),
        ("repeatsAfter", { $0.repeatsAfter = .seconds(1) }),
        ("validates", { $0.validates = false }),
        ("rawConnect", { $0.rawConnect = [] }),
        ("timeouts", { $0.timeouts.disconnect = .seconds(1) }),
        ("limits", { $0.limits.messages = 1 }),
        ("acknowledgement", { $0.acknowledgement = .manual }),
        ("sharedHooks", { $0.hooks.delivered = { _, _ in } }),
    ]

    @Test("[SPEC A5] each part counts, will and version too", arguments: edits.map(\.name))
    func parts(_ name: String) throws {
        let edit = try #require(Self.edits.first { $0.name == name }).edit
        let old = MQTTClientConfiguration()
        var new = old
        edit(&new)
        #expect(old.change(to: new) == (name == "clientID" ? .client : .settings))
        #expect(new.change(to: old) == (name == "clientID" ? .client : .settings))
        let copy = new
        #expect(new.change(to: copy) == .none)
    }

    @Test("every stored part of a configuration is compared; the machine compares host and port")
    func allParts() {
        let parts = Mirror(reflecting: MQTTClientConfiguration()).children.compactMap(\.label)
        #expect(Set(parts).subtracting(["host", "port"]) == Set(Self.edits.map(\.name)))
    }

    @Test("[SPEC A5] two optionals without a value are equal, and so are two values")
    func optionals() {
        var old = MQTTClientConfiguration()
        old.clientID = "c"
        var new = MQTTClientConfiguration()
        new.clientID = "c"
        #expect(old.change(to: new) == .none)
        old.will = Will(topic: "t", payload: [1])
        new.will = Will(topic: "t", payload: [1])
        old.sessionExpiry = 7
        new.sessionExpiry = 7
        #expect(old.change(to: new) == .none)
    }

    @Test("plain TCP and equal WebSockets are the same transport; TLS and closures only as copies")
    func transports() throws {
        func change(_ left: MQTTTransport, _ right: MQTTTransport) -> MQTTConfigurationChange {
            var old = MQTTClientConfiguration()
            old.transport = left
            var new = old
            new.transport = right
            return old.change(to: new)
        }
        #expect(change(.tcp, .tcp) == .none)
        #expect(try change(.webSocket(), .webSocket()) == .none)
        #expect(try change(.webSocket(), .webSocket(MQTTWebSocket(path: "/other"))) == .settings)
        let tls = try MQTTTransport.tls()
        #expect(change(tls, tls) == .none)
        #expect(try change(tls, .tls()) == .settings)
    }

    @Test("a keep-alive jitter outside 0 to 1 is refused", arguments: [-0.1, 1.1, .nan, .infinity])
    func jitter(_ jitter: Double) async {
        var configuration = MQTTClientConfiguration()
        configuration.keepAliveJitter = jitter
        let client = MQTTClient(configuration)
        #expect(
            await failure { try await client.connect() } == .invalid("a keep-alive jitter is a part of it, from 0 to 1")
        )
    }
}
