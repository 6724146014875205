import Foundation
import MQTTCodec
import NIOCore
import TestSupport

/// The seed corpus, made from the vectors of Tests/Vectors/mqtt.
package enum Seeds {
    package enum Target: String, CaseIterable, Sendable {
        case decoder, session, broker, tokenizer, stream, results

        package var layout: FuzzInput.Layout {
            switch self {
            case .decoder: .stream
            case .tokenizer: .xml
            case .session, .broker: .program
            case .stream: .conversation
            case .results: .text
            }
        }

        /// The packets that the mutator splices in.
        package var packets: [[UInt8]] {
            switch self {
            case .tokenizer: XMLSeeds.elements
            case .stream: StreamSeeds.elements
            case .decoder, .session, .broker, .results: Seeds.packets
            }
        }

        package func make() -> any FuzzTarget {
            switch self {
            case .decoder: DecoderTarget()
            case .session: SessionTarget()
            case .broker: BrokerTarget()
            case .tokenizer: TokenizerTarget()
            case .stream: StreamTarget()
            case .results: ResultTarget()
            }
        }
    }

    private struct Vector: Decodable {
        let version: String
        let role: String
        let bytes: String
        let mustFail: String?

        var wire: [UInt8] { hex(self.bytes) }
        var isServer: Bool { self.role == "server" }
        var versionIndex: UInt8 { self.version == "3.1" ? 0 : self.version == "5" ? 2 : 1 }
        var isConnect: Bool { self.version == "first" || self.wire[0] >> 4 == 1 && self.mustFail != "secondConnect" }
    }

    private static let folder = MarkdownPage.root.appending(path: "Tests/Vectors")

    private static let vectors: [Vector] = {
        do {
            let folder = Self.folder.appendingPathComponent("mqtt")
            let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            return try files.filter { $0.pathExtension == "json" }
                .sorted { $0.lastPathComponent < $1.lastPathComponent }
                .flatMap { try JSONDecoder().decode([Vector].self, from: Data(contentsOf: $0)) }
        } catch {
            preconditionFailure("the vectors: \(error)")
        }
    }()

    /// The bytes of all vectors, right and wrong ones.
    package static let packets: [[UInt8]] = Self.vectors.map(\.wire).filter { $0.count <= 255 }

    package static func inputs(_ target: Target) -> [[UInt8]] {
        let inputs =
            switch target {
            case .decoder: Self.decoderInputs
            case .session: Self.sessionInputs
            case .broker: Self.brokerInputs
            case .tokenizer: XMLSeeds.inputs
            case .stream: StreamSeeds.inputs
            case .results: ResultSeeds.inputs
            }
        return inputs + Self.crashes(target)
    }

    /// Inputs that once found something.
    package struct Crash: Decodable, Sendable {
        package let target: String
        package let name: String
        package let bytes: String
        /// False for those that take so long that millions of mutants of them would be too many.
        package let seed: Bool?
    }

    package static let crashes: [Crash] = {
        let file = Self.folder.appendingPathComponent("fuzzing/found.json")
        do {
            return try JSONDecoder().decode([Crash].self, from: Data(contentsOf: file))
        } catch {
            preconditionFailure("found.json: \(error)")
        }
    }()

    private static func crashes(_ target: Target) -> [[UInt8]] {
        self.crashes.filter { $0.target == target.rawValue && $0.seed != false }.map { hex($0.bytes) }
    }

    private static var decoderInputs: [[UInt8]] {
        Self.vectors.enumerated().flatMap { index, vector -> [[UInt8]] in
            let role: UInt8 = vector.isServer ? (vector.isConnect ? 6 : 3 + vector.versionIndex) : vector.versionIndex
            let settings = [role, UInt8(truncatingIfNeeded: index), 0, 255]
            // Once alone, and once behind three good ones.
            let good = Self.vectors.filter {
                $0.mustFail == nil && $0.isServer == vector.isServer && $0.version == vector.version && !$0.isConnect
            }
            guard !vector.isConnect, !good.isEmpty else { return [settings + vector.wire] }
            let front = (0..<3).flatMap { good[(index + $0) % good.count].wire }
            return [settings + vector.wire, settings + front + vector.wire]
        }
    }

    /// CONNACK, calls, the vector, calls, an orderly end.
    private static var sessionInputs: [[UInt8]] {
        let connacks: [[UInt8]] = [hex("20020000"), hex("20020000"), hex("2003000000")]
        let fromServer = Self.vectors.filter { !$0.isServer && $0.wire.count <= 255 }
        let single = fromServer.enumerated().map { index, vector -> [UInt8] in
            let connack = connacks[Int(vector.versionIndex)]
            let settings = [vector.versionIndex, UInt8(index & 3), UInt8(index & 15), 0]
            var input = FuzzInput(settings: settings, steps: [])
            if vector.wire[0] >> 4 != 2 { input.steps.append(.feed(connection: 0, connack)) }
            input.steps += [.call(3, 2), .call(4, 1), .call(6, 1), .call(7, 0)]
            input.steps += [.feed(connection: 0, vector.wire), .call(0, 0), .call(0, 0), .call(11, 0)]
            return input.bytes(.program)
        }
        // Whole lives: flows, time, loss and resumption, for each version and both kinds of session.
        let lives = (0..<12).map { index -> [UInt8] in
            let version = UInt8(index % 3)
            let settings: [UInt8] = [version | (index >= 6 ? 8 : 0), UInt8(index & 3), UInt8(index), UInt8(index % 3)]
            var input = FuzzInput(settings: settings, steps: [.feed(connection: 0, connacks[Int(version)])])
            for round in 0..<2 as Range<UInt8> {
                input.steps += [
                    .call(3, 3), .call(4, 3), .call(6, 2), .call(1, round), .call(16, round), .call(16, round),
                    .call(9, 20), .call(0, 0), .call(10, 0), .call(0, 0), .call(13, round), .call(14, 0),
                    .call(2, round == 0 ? 1 : 0),
                ]
            }
            input.steps += [.call(0, 0), .call(11, 0), .call(13, 0)]
            return input.bytes(.program)
        }
        return single + lives + Self.carefulLives
    }

    /// Lives in which the owner acknowledges, releases and completes, with aliases, AUTH and a receive maximum.
    private static var carefulLives: [[UInt8]] {
        (0..<16).map { index -> [UInt8] in
            let bits = UInt8(index) << 2 | (index & 1 == 0 ? 128 : 0)
            let settings: [UInt8] = [
                index % 4 == 3 ? 1 : 2 | 8, UInt8(index & 3) | 4 | 8, 0, bits | (index & 2 == 0 ? 64 : 0),
            ]
            var input = FuzzInput(settings: settings, steps: [])
            for round in 0..<2 as Range<UInt8> {
                input.steps += [
                    .call(21, 0), .call(2, round * 3), .call(3, 3), .call(4, 2), .call(22, 12), .call(22, 8),
                    .call(16, 1), .call(16, 18), .call(1, 3), .call(17, 0), .call(18, round), .call(18, 2),
                    .call(0, 0), .call(19, 0), .call(20, 0), .call(0, 0), .call(10, 0), .call(13, round), .call(17, 1),
                    .call(14, 0),
                ]
            }
            input.steps += [.call(2, 0), .call(0, 0), .call(23, UInt8(index)), .call(13, 0)]
            return input.bytes(.program)
        }
    }

    /// Subscribers and publishers of every version, and the vector among them.
    private static var brokerInputs: [[UInt8]] {
        let toServer = Self.vectors.filter { $0.isServer && $0.wire.count <= 255 }
        let single = toServer.enumerated().map { index, vector -> [UInt8] in
            let settings: [UInt8] = [UInt8(index % 12), UInt8(index & 31), UInt8(index & 1), 1]
            var input = FuzzInput(settings: settings, steps: [])
            let version = ProtocolVersion.allCases[Int(vector.versionIndex)]
            let filters = ["a/b", "#", "a/+", "$share/g/a/b", "$SYS/#", "+"]
            for connection in 0..<3 as Range<UInt8> {
                let client: Packet = .connect(
                    Connect(
                        version: connection == 0 ? version : ProtocolVersion.allCases[index / 3 % 3],
                        clientID: "c\(connection)",
                        keepAlive: UInt16(index & 1)
                    )
                )
                let filter = filters[(index + Int(connection)) % filters.count]
                let subscribe: Packet = .subscribe(
                    Subscribe(1, [Subscription(filter: filter, qos: QoS.allCases[(index + Int(connection)) % 3])])
                )
                let spoken = connection == 0 ? version : ProtocolVersion.allCases[index / 3 % 3]
                if connection > 0 || !vector.isConnect {
                    input.steps.append(.feed(connection: connection, client.bytes(as: spoken)))
                    input.steps.append(.feed(connection: connection, subscribe.bytes(as: spoken)))
                }
            }
            input.steps.append(.feed(connection: 0, vector.wire))
            let spoken = ProtocolVersion.allCases[index / 3 % 3]
            for qos in QoS.allCases {
                var publish = Publish(topic: index & 1 == 0 ? "a/b" : "a", qos: qos, retain: index & 8 != 0)
                publish.payload = ByteBuffer(string: "p")
                if qos != .atMostOnce { publish.packetID = 7 }
                input.steps.append(.feed(connection: 1, Packet.publish(publish).bytes(as: spoken)))
            }
            input.steps += [.call(0, 0), .call(1, 10), .call(0, 0), .call(UInt8(index % 13), 2), .call(1, 200)]
            return input.bytes(.program)
        }
        return single + (0..<18).map(Self.brokerLife)
    }

    /// A session with flows at every step that loses its connection, is fed meanwhile, and comes back, in the same
    /// version or another, by a take-over or too late.
    private static func brokerLife(_ index: Int) -> [UInt8] {
        let settings: [UInt8] = [UInt8(index % 9), index % 4 == 3 ? 1 : 0, UInt8(index & 1), 1]
        var input = FuzzInput(settings: settings, steps: [])
        func keeper(_ version: ProtocolVersion, expiry: UInt32) -> [UInt8] {
            var connect = Connect(version: version, clientID: "k", cleanStart: false, keepAlive: 0)
            connect.will = Will(topic: "a/b", payload: [1], qos: .atLeastOnce, properties: [.willDelayInterval(1)])
            connect.properties = [.sessionExpiryInterval(expiry)]
            return Packet.connect(connect).bytes(as: version)
        }
        let first = ProtocolVersion.allCases[index % 3]
        let second = ProtocolVersion.allCases[index / 6 % 3]
        let subscribe = Packet.subscribe(Subscribe(1, [Subscription(filter: "a/+", qos: .exactlyOnce)]))
        let publisher = Packet.connect(Connect(version: .v5, clientID: "p", keepAlive: 0))
        func publishes(_ id: PacketID) -> [FuzzInput.Step] {
            [QoS.atLeastOnce, .exactlyOnce].map { qos in
                let properties: Properties = index & 2 == 0 ? [] : [.messageExpiryInterval(1)]
                let publish = Publish(topic: "a/b", qos: qos, packetID: id, properties: properties)
                return .feed(connection: 1, Packet.publish(publish).bytes(as: .v5))
            }
        }
        input.steps = [
            .feed(connection: 0, keeper(first, expiry: index < 12 ? 3 : .max)),
            .feed(connection: 0, subscribe.bytes(as: first)), .feed(connection: 1, publisher.bytes(as: .v5)),
        ]
        input.steps += publishes(1)
        // PUBACK and PUBREC come for some; the rest is in flight.
        if index & 1 == 0 { input.steps.append(.call(0, 0)) }
        input.steps += publishes(2)
        if index & 4 == 0 { input.steps.append(.call(3, 0)) }
        input.steps += publishes(3)
        if index & 8 != 0 { input.steps.append(.call(1, 150)) }
        input.steps.append(.feed(connection: 2, keeper(second, expiry: 1)))
        input.steps += [.call(0, 2), .call(0, 2), .call(0, 2), .call(3, 2), .call(1, 250)]
        return input.bytes(.program)
    }
}

extension Packet {
    fileprivate func bytes(as version: ProtocolVersion) -> [UInt8] {
        var buffer = ByteBuffer()
        self.encode(as: version, into: &buffer)
        return Array(buffer.readableBytesView)
    }
}
