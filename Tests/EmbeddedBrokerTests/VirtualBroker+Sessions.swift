import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

extension VirtualBroker {
    /// Sends a CONNECT and returns its CONNACK; later packets are left for `take`.
    func connect(with connect: Connect) -> (client: Client, answer: ConnAck) {
        let client = self.open(connect.version)
        client.answers = false
        self.send(.connect(connect), from: client)
        guard case .connAck(let answer)? = client.collector.packets.first else {
            Issue.record("CONNACK expected, not \(client.collector.packets)")
            return (client, ConnAck(code: 0xFF))
        }
        client.collector.packets.removeFirst()
        return (client, answer)
    }

    /// A client with a session that lasts, in the words of its version, that answers nothing by itself.
    func keeper(
        _ clientID: String,
        _ version: ProtocolVersion = .v5,
        expiry: UInt32 = .max,
        _ properties: Properties = []
    ) -> (client: Client, answer: ConnAck) {
        var connect = Connect(version: version, clientID: clientID, cleanStart: false, keepAlive: 0)
        if version == .v5 { connect.properties = properties + [.sessionExpiryInterval(expiry)] }
        return self.connect(with: connect)
    }

    func subscribe(_ client: Client, _ filter: String, _ qos: QoS = .exactlyOnce, _ properties: Properties = []) {
        self.send(
            .subscribe(Subscribe(1, [Subscription(filter: filter, qos: qos)], properties: properties)),
            from: client
        )
        #expect(self.take(client).contains(.subAck(SubAck(1, codes: [qos.rawValue]))))
    }

    /// The PUBLISH that a client has received since the last call.
    func publishes(_ client: Client) -> [Publish] {
        self.take(client).compactMap { if case .publish(let publish) = $0 { publish } else { nil } }
    }

    var counters: BrokerCounters { self.broker.counters }
}

extension Properties {
    static func + (left: Properties, right: Properties) -> Properties { Properties(left.entries + right.entries) }
}

extension Publish {
    var text: String { String(buffer: self.payload) }
    var id: UInt16 { self.packetID?.rawValue ?? 0 }
}
