import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore
import NIOPosix
import TestSupport

/// Runs `body` with a broker on a free port.
func withBroker<Result>(
    _ configuration: BrokerConfiguration = BrokerConfiguration(port: 0),
    _ body: (BrokerServer) async throws -> Result
) async throws -> Result {
    let server = try await BrokerServer.start(configuration)
    do {
        let result = try await body(server)
        await server.stop()
        return result
    } catch {
        await server.stop()
        throw error
    }
}

extension MQTTClientConfiguration {
    /// For a server on this machine, with timeouts that no test reaches unless it is about them.
    init(
        port: Int,
        _ version: ProtocolVersion = .v5,
        id: String? = nil,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) {
        self.init(host: "127.0.0.1", port: UInt16(port))
        self.version = version
        if let id { self.clientID = id }
        self.timeouts.connect = .seconds(600)
        self.timeouts.acknowledgement = .seconds(600)
        self.timeouts.ping = .seconds(600)
        self.timeouts.disconnect = .seconds(600)
        change(&self)
    }
}

extension QoS {
    /// Those whose messages are kept until they are acknowledged.
    static let kept = [QoS.atLeastOnce, .exactlyOnce]
}

extension MQTTClient {
    /// Takes so many messages.
    func take(_ count: Int) async -> [MQTTReceived] {
        var taken: [MQTTReceived] = []
        if count == 0 { return taken }
        for await message in self.messages {
            taken.append(message)
            if taken.count == count { break }
        }
        return taken
    }

    /// Returns when the client is in this state.
    func until(_ state: MQTTClientState) async {
        for await now in self.states where now == state { break }
    }
}

/// The bytes of a CONNECT that a configuration leads to.
func connectBytes(_ configuration: MQTTClientConfiguration) -> [UInt8] {
    let limit: Properties = [.maximumPacketSize(configuration.maximumPacketSize ?? 1_048_576)]
    return wire(
        .connect(
            Connect(
                version: configuration.version,
                clientID: configuration.clientID,
                cleanStart: configuration.cleanStart,
                keepAlive: configuration.keepAlive,
                username: nil,
                password: nil,
                will: configuration.will,
                properties: configuration.version == .v5 ? limit : Properties()
            )
        ),
        version: configuration.version
    )
}

/// A peer's script that takes the CONNECT of client `c` in MQTT 5, accepts, and goes on.
func accepting(then rest: [ScriptedPeer.Step]) -> [ScriptedPeer.Step] {
    let connect = connectBytes(MQTTClientConfiguration(port: 1, id: "c"))
    return [.expect(connect), .send(wire(.connAck(ConnAck())))] + rest
}

/// The error of a call; `nil` if it succeeded.
func failure<Value>(of call: () async throws -> Value) async -> MQTTClientError? {
    do {
        _ = try await call()
        return nil
    } catch {
        return error as? MQTTClientError
    }
}

/// Holds all commits until it is opened.
final class GatedStore: MQTTMessageStore {
    struct Broken: Error, CustomStringConvertible { let description = "no space left" }

    let inner = MQTTMemoryStore()
    let gate: AsyncStream<Bool>
    let open: AsyncStream<Bool>.Continuation
    /// Of each commit, when it waits.
    let begun: AsyncStream<Void>
    private let begins: AsyncStream<Void>.Continuation

    init() {
        (self.gate, self.open) = AsyncStream.makeStream(of: Bool.self)
        (self.begun, self.begins) = AsyncStream.makeStream(of: Void.self)
    }

    func load(client: String) async -> [MQTTStoredMessage] { await self.inner.load(client: client) }

    func commit(_ changes: [MQTTStoreChange], client: String) async throws {
        self.begins.yield()
        for await isOpen in self.gate {
            if !isOpen { throw Broken() }
            break
        }
        await self.inner.commit(changes, client: client)
    }
}
