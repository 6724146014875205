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
    package static let all = [
        Self(
            "fleet",
            "devices report and take commands, operators command, services share the messages",
            PackageResources.fleet_yaml
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
        Self("request-response", "MQTT 5 clients ask, services answer", PackageResources.request_response_yaml),
        Self("mixed", "MQTT devices and XMPP users together", PackageResources.mixed_yaml),
    ]
}
