import EmbeddedBroker
import FaultLines
import MQTTCodec
import NIOCore
import Testing

/// A broker and clients without sockets, on a manual clock.
final class VirtualBroker {
    struct Collector: PacketSink {
        var packets: [Packet] = []

        mutating func publish(_ view: PublishView) -> Bool {
            var publish = Publish(topic: String(decoding: view.topic, as: UTF8.self))
            publish.payload = ByteBuffer(bytes: view.payload)
            publish.qos = view.qos
            publish.retain = view.retain
            publish.dup = view.dup
            publish.packetID = PacketID(rawValue: view.packetID)
            do { publish.properties = try view.properties() } catch { Issue.record(error) }
            self.packets.append(.publish(publish))
            return true
        }

        mutating func acknowledgement(
            _ type: PacketType,
            id: UInt16,
            reason: UInt8,
            rawProperties: UnsafeRawBufferPointer
        ) -> Bool {
            guard let id = PacketID(rawValue: id), let reason = ReasonCode(rawValue: reason) else { return false }
            switch type {
            case .pubAck: self.packets.append(.pubAck(PubAck(id, reason: reason)))
            case .pubRec: self.packets.append(.pubRec(PubRec(id, reason: reason)))
            case .pubRel: self.packets.append(.pubRel(PubRel(id, reason: reason)))
            default: self.packets.append(.pubComp(PubComp(id, reason: reason)))
            }
            return true
        }

        mutating func control(_ packet: Packet) -> Bool {
            self.packets.append(packet)
            return true
        }
    }

    final class Client {
        let id: ConnectionID
        let version: ProtocolVersion
        var serverSide: PacketDecoder
        var clientSide: PacketDecoder
        var collector = Collector()
        /// All that the broker has written to it.
        var bytes: [UInt8] = []
        var isClosed = false
        /// Whether the client acknowledges by itself, as a well-behaved one.
        var answers = true

        init(_ id: ConnectionID, _ version: ProtocolVersion, maximumPacketSize: Int) {
            self.id = id
            self.version = version
            self.serverSide = PacketDecoder(role: .server, maximumPacketSize: maximumPacketSize)
            self.clientSide = PacketDecoder(role: .client(version))
        }
    }

    var broker: Broker
    private(set) var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private var clients: [ConnectionID: Client] = [:]
    /// Everything but flushes, in order.
    var actions: [BrokerAction] = []

    init(_ configure: (inout BrokerConfiguration) -> Void = { _ in }) {
        var configuration = BrokerConfiguration(port: 0)
        // So that a plain CONNACK has no properties.
        configuration.limits.topicAliasMaximum = 0
        configuration.maximumPacketSize = 268_435_460
        configure(&configuration)
        self.broker = Broker(configuration, now: self.now)
    }

    convenience init(_ line: String) throws {
        let faults = try FaultPlan.parse(line: line)
        self.init { $0.faults = faults }
    }

    // MARK: Clients

    /// Opens a connection and sends nothing.
    func open(_ version: ProtocolVersion = .v5, from peer: String? = nil) -> Client {
        let id = self.broker.connected(from: peer, now: self.now)
        let client = Client(id, version, maximumPacketSize: self.broker.configuration.maximumPacketSize)
        self.clients[id] = client
        return client
    }

    func connect(
        _ clientID: String,
        _ version: ProtocolVersion = .v5,
        keepAlive: UInt16 = 0,
        _ properties: Properties = []
    )
        -> Client
    {
        let client = self.open(version)
        let connect = Connect(version: version, clientID: clientID, keepAlive: keepAlive, properties: properties)
        self.send(.connect(connect), from: client)
        guard case .connAck(let answer)? = self.take(client).first else {
            Issue.record("CONNACK expected")
            return client
        }
        #expect(answer.code == 0)
        #expect(!answer.sessionPresent)
        return client
    }

    func subscriber(
        _ clientID: String,
        _ filter: String,
        _ qos: QoS = .exactlyOnce,
        _ version: ProtocolVersion = .v5
    ) -> Client {
        let client = self.connect(clientID, version)
        self.send(.subscribe(Subscribe(1, [Subscription(filter: filter, qos: qos)])), from: client)
        #expect(self.take(client) == [.subAck(SubAck(1, codes: [qos.rawValue]))])
        return client
    }

    func send(_ packet: Packet, from client: Client) {
        var bytes = ByteBuffer()
        packet.encode(as: client.version, into: &bytes)
        self.send(bytes: Array(bytes.readableBytesView), from: client)
    }

    func send(bytes: [UInt8], from client: Client) {
        bytes.withUnsafeBytes { self.broker.received($0, from: client.id, decoder: &client.serverSide, now: self.now) }
        self.run()
    }

    func publish(
        _ topic: String,
        _ payload: String,
        _ qos: QoS = .atMostOnce,
        retain: Bool = false,
        id: PacketID = 7,
        from client: Client
    ) {
        self.send(
            .publish(
                Publish(
                    topic: topic,
                    payload: ByteBuffer(string: payload),
                    qos: qos,
                    retain: retain,
                    packetID: qos == .atMostOnce ? nil : id
                )
            ),
            from: client
        )
        if qos == .exactlyOnce { self.send(.pubRel(PubRel(id)), from: client) }
        client.collector.packets.removeAll()
    }

    /// Takes what the client has received since the last call.
    func take(_ client: Client) -> [Packet] {
        defer { client.collector.packets.removeAll() }
        return client.collector.packets
    }

    /// The payloads among them.
    func payloads(_ client: Client) -> [String] {
        self.take(client).compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            return String(buffer: publish.payload)
        }
    }

    /// The connection breaks without a word.
    func lose(_ client: Client) {
        self.broker.closed(client.id, now: self.now)
        self.clients[client.id] = nil
        client.isClosed = true
        self.run()
    }

    // MARK: Time and actions

    /// Lets time pass, stopping wherever the broker has something to do.
    func advance(by time: TimeAmount) {
        let end = self.now + time
        while self.broker.nextDeadline <= end {
            self.now = max(self.now, self.broker.nextDeadline)
            self.broker.advance(to: self.now)
            self.run()
        }
        self.now = end
    }

    private func run() {
        while let action = self.broker.nextAction() {
            switch action {
            case .flush(let id), .flushNow(let id): self.flush(id)
            case .close(let id), .reset(let id):
                self.flush(id)
                self.actions.append(action)
                self.clients[id]?.isClosed = true
                self.clients[id] = nil
                self.broker.closed(id, now: self.now)
            case .pauseReading, .resumeReading, .stall: self.actions.append(action)
            }
        }
    }

    private func flush(_ id: ConnectionID) {
        guard let client = self.clients[id], self.broker.hasOutput(id) else { return }
        let bytes = self.broker.takeOutput(id)
        client.bytes += bytes.readableBytesView
        let known = client.collector.packets.count
        bytes.withUnsafeReadableBytes { bytes in
            do { try client.clientSide.decode(bytes, into: &client.collector) } catch { Issue.record(error) }
        }
        self.broker.recycle(bytes)
        guard client.answers else { return }
        for packet in client.collector.packets[known...] {
            switch packet {
            case .publish(let publish):
                guard let id = publish.packetID else { continue }
                self.send(publish.qos == .atLeastOnce ? .pubAck(PubAck(id)) : .pubRec(PubRec(id)), from: client)
            case .pubRel(let pubRel): self.send(.pubComp(PubComp(pubRel.packetID)), from: client)
            default: continue
            }
        }
    }
}
