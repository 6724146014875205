package struct ReadyScenario: Sendable {
    /// The name on the command line, and of the file without `.yaml`.
    package let name: String
    /// One line.
    package let about: String
    package let text: String

    private init(_ name: String, _ about: String, _ text: [UInt8]) {
        self.name = name
        self.about = about
        self.text = String(decoding: text, as: UTF8.self)
    }

    /// The first is the one that is written where no name is given.
    package static let all = Self.own + Self.suite

    private static let own = [
        Self(
            "fleet",
            "devices report and take commands, operators command, services share the messages",
            PackageResources.fleet_yaml
        ),
        Self(
            "sleepy-fleet",
            "devices that are online for a short time, send the latest value, and sleep again",
            PackageResources.sleepy_fleet_yaml
        ),
        Self("fan-out", "one sender, many receivers", PackageResources.fan_out_yaml),
        Self(
            "door-access",
            "XMPP clients send each other direct messages, at random times",
            PackageResources.door_access_yaml
        ),
        Self(
            "door-access-mqtt",
            "doors and phones send messages to one client each, with the signature login of Alibaba Cloud",
            PackageResources.door_access_mqtt_yaml
        ),
        Self(
            "login-storm",
            "all clients are cut off within seconds and come back at once",
            PackageResources.login_storm_yaml
        ),
        Self(
            "session-drain",
            "persistent sessions: subscribers go away, come back, and receive what was sent meanwhile",
            PackageResources.session_drain_yaml
        ),
        Self(
            "overload",
            "more than the server does, then less: how long until it is back",
            PackageResources.overload_yaml
        ),
        Self(
            "retained-storm",
            "many subscribers at once, each owed the last value of every topic",
            PackageResources.retained_storm_yaml
        ),
        Self(
            "subscribe-sequence",
            "clients subscribe to many filters, one packet after another",
            PackageResources.subscribe_sequence_yaml
        ),
        Self("request-response", "MQTT 5 clients ask, services answer", PackageResources.request_response_yaml),
        Self("mixed", "MQTT devices and XMPP users together", PackageResources.mixed_yaml),
    ]

    /// The Open MQTT Benchmark Suite: each case of its basic set, then that of its enterprise set.
    private static let suite = [
        Self("ombs-connect", "10,000 clients connect", PackageResources.ombs_connect_yaml),
        Self("ombs-connect-large", "1,000,000 clients connect", PackageResources.ombs_connect_large_yaml),
        Self("ombs-fan-out", "1 publisher, 1,000 subscribers", PackageResources.ombs_fan_out_yaml),
        Self("ombs-fan-out-large", "5 publishers, 1,000 subscribers", PackageResources.ombs_fan_out_large_yaml),
        Self("ombs-point-to-point", "1,000 pairs", PackageResources.ombs_point_to_point_yaml),
        Self("ombs-point-to-point-large", "50,000 pairs", PackageResources.ombs_point_to_point_large_yaml),
        Self("ombs-shared", "1,000 publishers, a group of 5", PackageResources.ombs_shared_yaml),
        Self("ombs-shared-large", "50,000 publishers, a group of 500", PackageResources.ombs_shared_large_yaml),
    ]
}
