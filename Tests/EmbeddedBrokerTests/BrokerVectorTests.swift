import EmbeddedBroker
import Foundation
import MQTTCodec
import NIOCore
import TestSupport
import Testing

/// One case of Tests/Vectors/mqtt that a server reads.
struct ServerVector: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let clause: String
    let version: String
    let role: String
    let bytes: String
    let mustFail: String?
    let reason: String?

    var testDescription: String { "\(self.name) (\(self.version), \(self.clause))" }
    var wire: [UInt8] { hex(self.bytes) }
    /// It comes before any CONNECT, or is one.
    var isFirst: Bool { self.version == "first" || self.wire[0] >> 4 == 1 && self.mustFail != "secondConnect" }

    var protocolVersion: ProtocolVersion {
        switch self.version {
        case "3.1": .v31
        case "5": .v5
        default: .v311
        }
    }

    /// The answer to a CONNECT that is refused, if there is one: in 5 once the level is read, before 5 to a wrong level.
    var refusal: ConnAck? {
        guard let mustFail = self.mustFail, self.isFirst else { return nil }
        if mustFail.hasPrefix("protocolLevel") { return ConnAck(code: 1) }
        let isLevelRead = mustFail != "protocolName" && !mustFail.hasPrefix("reservedFlags")
        return self.version == "5" && isLevelRead ? ConnAck(code: hex(self.reason ?? "").first ?? 0) : nil
    }

    static let all: [ServerVector] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/mqtt")
        let names = ["connect", "publish", "acknowledgements", "subscribe", "unsubscribe", "disconnect", "framing"]
        return names.flatMap { name -> [ServerVector] in
            do {
                let data = try Data(contentsOf: folder.appendingPathComponent(name + ".json"))
                return try JSONDecoder().decode([ServerVector].self, from: data).filter { $0.role == "server" }
            } catch {
                Issue.record(error)
                return []
            }
        }
    }()

    static let refused = Self.all.filter { $0.mustFail != nil }
    static let taken = Self.all.filter { $0.mustFail == nil }
}

@Suite("The broker takes and refuses what the vectors say")
struct BrokerVectorTests {
    private func world() -> VirtualBroker { VirtualBroker { $0.limits.topicAliasMaximum = .max } }

    private func client(_ vector: ServerVector, in world: VirtualBroker) -> VirtualBroker.Client {
        // A client of an unknown protocol level is answered in 3.1.1's form.
        let client = world.open(vector.mustFail?.hasPrefix("protocolLevel") == true ? .v311 : vector.protocolVersion)
        client.answers = false
        guard !vector.isFirst else { return client }
        world.send(.connect(Connect(version: vector.protocolVersion, clientID: "c", keepAlive: 0)), from: client)
        #expect(world.take(client).map(\.type) == [.connAck])
        return client
    }

    @Test("there are vectors for a server, of both kinds")
    func isNotEmpty() { #expect(ServerVector.refused.count > 60 && ServerVector.taken.count > 30) }

    @Test(
        "[MQTT-4.13.1-1] a broken rule ends the connection: DISCONNECT with its code in 5, nothing before, no CONNACK of 0",
        arguments: ServerVector.refused
    )
    func refuses(_ vector: ServerVector) {
        let world = self.world()
        let client = self.client(vector, in: world)
        let bytes = vector.wire
        world.send(bytes: bytes, from: client)
        #expect(client.isClosed)
        let answer = world.take(client)
        let reason = ReasonCode(rawValue: hex(vector.reason ?? "").first ?? 0) ?? .success
        if vector.isFirst {
            // [MQTT-3.14.0-1]: nothing but a CONNACK, and that only where the client can read it.
            #expect(answer == vector.refusal.map { [.connAck($0)] } ?? [])
            #expect(world.counters.connects == 0)
        } else if vector.protocolVersion == .v5 {
            #expect(answer == [.disconnect(Disconnect(reason: reason))])
        } else {
            #expect(answer.isEmpty)
        }
        // Behind the end nothing is read.
        #expect(world.counters.clientsNow == 0)
    }

    @Test("what keeps the rules is taken, whole or byte by byte", arguments: ServerVector.taken)
    func takes(_ vector: ServerVector) {
        for step in [vector.wire.count, 1] {
            let world = self.world()
            let client = self.client(vector, in: world)
            for start in stride(from: 0, to: vector.wire.count, by: step) {
                world.send(bytes: Array(vector.wire[start..<min(start + step, vector.wire.count)]), from: client)
            }
            let answer = world.take(client)
            switch vector.wire[0] >> 4 {
            // CONNECT is answered, whatever the broker makes of a name or a method.
            case 1: #expect(answer.first?.type == .connAck)
            // The alias alone, of which nothing is known here.
            case 3 where vector.name.contains("alias stands"):
                #expect(answer == [.disconnect(Disconnect(reason: .protocolError))])
            case 3: #expect(answer.map(\.type) == [[], [.pubAck], [.pubRec]][Int(vector.wire[0] >> 1 & 3)])
            // [MQTT-3.5.4-1], [MQTT-3.6.4-1]: unknown identifiers are answered and no reason to end.
            case 5: #expect(answer.isEmpty || answer.map(\.type) == [.pubRel])
            case 6: #expect(answer.map(\.type) == [.pubComp])
            case 8: #expect(answer.first?.type == .subAck)
            case 10: #expect(answer.map(\.type) == [.unsubAck])
            case 12: #expect(answer == [.pingResp])
            default: #expect(answer.allSatisfy { $0.type == .disconnect })
            }
        }
    }
}
