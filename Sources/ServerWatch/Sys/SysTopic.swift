/// A number that brokers publish below `$SYS/`.
///
/// mosquitto publishes a number when it has changed, at most once per `sys_interval` (10 s), and keeps it as a retained
/// message. EMQX publishes all of them once per `sys_msg_interval` (1 min), not retained.
package struct SysTopic: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case counter, gauge
    }

    /// The meaning of a number for the books.
    package enum Role: Hashable, Sendable {
        /// PUBLISH packets that the broker received.
        case received
        /// PUBLISH packets that the broker sent.
        case sent
    }

    /// The filter without `$SYS/`; `+` stands for a node.
    package let filter: String
    package let kind: Kind
    package let unit: String?
    package let role: Role?

    private init(_ filter: String, _ kind: Kind, unit: String? = nil, role: Role? = nil) {
        self.filter = filter
        self.kind = kind
        self.unit = unit
        self.role = role
    }

    /// The numbers of mosquitto and of EMQX that are read.
    package static let all: [SysTopic] = [
        // MARK: mosquitto
        // Sessions with a connection, and all sessions.
        SysTopic("broker/clients/connected", .gauge),
        SysTopic("broker/clients/total", .gauge),
        // All MQTT packets: a message at QoS 2 is a PUBLISH and a PUBREL.
        SysTopic("broker/messages/received", .counter),
        SysTopic("broker/messages/sent", .counter),
        // PUBLISH packets. Up to 2.0 PUBLISH at QoS 2 is not counted.
        SysTopic("broker/publish/messages/received", .counter, role: .received),
        // PUBLISH packets at any QoS, those of `$SYS` included.
        SysTopic("broker/publish/messages/sent", .counter, role: .sent),
        // Messages that a full queue had no room for.
        SysTopic("broker/publish/messages/dropped", .counter),
        SysTopic("broker/bytes/received", .counter, unit: "bytes"),
        SysTopic("broker/bytes/sent", .counter, unit: "bytes"),
        // Memory that the broker allocated, where it was built to track it.
        SysTopic("broker/heap/current", .gauge, unit: "bytes"),
        SysTopic("broker/heap/maximum", .gauge, unit: "bytes"),
        // `$SYS` itself included.
        SysTopic("broker/retained messages/count", .gauge),
        SysTopic("broker/subscriptions/count", .gauge),
        // Messages held: retained ones, and those queued for clients.
        SysTopic("broker/store/messages/count", .gauge),
        SysTopic("broker/store/messages/bytes", .gauge, unit: "bytes"),
        // MARK: EMQX, by node
        // Sessions, also those without a connection, and connections.
        SysTopic("brokers/+/stats/connections/count", .gauge),
        SysTopic("brokers/+/stats/live_connections/count", .gauge),
        SysTopic("brokers/+/stats/subscriptions/count", .gauge),
        SysTopic("brokers/+/stats/retained/count", .gauge),
        // All MQTT packets.
        SysTopic("brokers/+/metrics/packets/received", .counter),
        SysTopic("brokers/+/metrics/packets/sent", .counter),
        // PUBLISH packets at any QoS; messages of `$SYS` are not counted as sent.
        SysTopic("brokers/+/metrics/packets/publish/received", .counter, role: .received),
        SysTopic("brokers/+/metrics/packets/publish/sent", .counter, role: .sent),
        // Messages without a subscriber, or given up before PUBREL.
        SysTopic("brokers/+/metrics/messages/dropped", .counter),
        // Copies that did not reach their subscriber: a full queue, too large, expired.
        SysTopic("brokers/+/metrics/delivery/dropped", .counter),
        SysTopic("brokers/+/metrics/bytes/received", .counter, unit: "bytes"),
        SysTopic("brokers/+/metrics/bytes/sent", .counter, unit: "bytes"),
    ]

    /// Published first in every round: mosquitto's time, and the version of an EMQX node.
    static let clocks = ["broker/uptime", "brokers/+/version"]

    package static let filters =
        Self.all.map { "$SYS/\($0.filter)" } + Self.clocks.map { "$SYS/\($0)" } + [ServerIdentity.brokerTopic]

    private static let exact = Dictionary(uniqueKeysWithValues: Self.all.map { ($0.filter, $0) })

    /// The number of a topic without `$SYS/`; `nil` for any other topic.
    package static func of(_ topic: String) -> SysTopic? { Self.exact[Self.general(topic)] }
    static func isClock(_ topic: String) -> Bool { Self.clocks.contains(Self.general(topic)) }

    /// The topic with `+` for the name of a node.
    private static func general(_ topic: String) -> String {
        var levels = topic.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard levels.count == 3, levels[0] == "brokers" else { return topic }
        levels[1] = "+"
        return levels.joined(separator: "/")
    }
}
