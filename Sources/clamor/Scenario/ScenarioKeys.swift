/// A key of a group, and the flag of the short command that means the same.
///
/// The flag's reader is the key's reader too, so a value means the same in both places.
struct ScenarioKey: Sendable {
    enum Form: Sendable {
        case text
        /// One, or several as a list.
        case list
        /// A span of time that the flag takes as whole seconds.
        case seconds
        /// A span of time with its unit; the flag takes a bare number in the unit named here.
        case duration(bare: String)
        /// One, or several as a list, each with a flag of its own.
        case repeated
        /// `true` is the flag alone, `false` its absence; the other way round if it means the opposite.
        case flag(means: Bool = true)
    }

    /// Below the group: `connect.rate`.
    let path: String
    /// Every name of the flag; the first is what the command is given.
    let flags: [String]
    let form: Form

    init(_ path: String, _ flags: String..., form: Form = .text) {
        self.path = path
        self.flags = flags
        self.form = form
    }
}

/// What the clients of a group do: the short command, and the keys that only it has.
struct ScenarioJob: Sendable {
    enum Speech: String, Sendable {
        case mqtt = "MQTT"
        case xmpp = "XMPP"
    }

    let speech: Speech
    let command: [String]
    /// A group with one of these keys has this job.
    let marks: Set<String>
    let keys: [ScenarioKey]

    /// A group has the job whose marks it has, and without any the last of its protocol.
    static let all = [
        ScenarioJob(
            speech: .mqtt,
            command: ["pubsub"],
            marks: ["subscribers", "topology"],
            keys: Self.publish + [
                ScenarioKey("subscribers", "--subscribers"), ScenarioKey("topology", "--topology"),
                ScenarioKey("separate", "--separate", form: .flag()),
            ] + Self.subscription
        ),
        ScenarioJob(
            speech: .mqtt,
            command: ["pub"],
            marks: ["publish"],
            // MQTT 5 §3.3.4: forbidden there, so it is only sent unchecked.
            keys: Self.publish + [ScenarioKey("publish.subscription_identifier", "--subscription-identifier")]
        ),
        ScenarioJob(
            speech: .mqtt,
            command: ["sub"],
            marks: ["subscribe"],
            keys: [Self.filter, Self.filterQoS, Self.store] + Self.subscription + [
                ScenarioKey("subscribe.user_properties", "--user-properties", form: .repeated)
            ]
        ),
        ScenarioJob(speech: .mqtt, command: ["conn"], marks: [], keys: [ScenarioKey("raw", "--raw")]),
        ScenarioJob(
            speech: .xmpp,
            command: ["xmpp", "message"],
            marks: ["message"],
            keys: Self.pace("message") + Self.payload("message") + [
                ScenarioKey("message.pairing", "--pairing")
            ]
        ),
        ScenarioJob(speech: .xmpp, command: ["xmpp", "ping"], marks: ["ping"], keys: Self.pace("ping")),
        ScenarioJob(
            speech: .xmpp,
            command: ["xmpp", "muc"],
            marks: ["muc"],
            keys: Self.pace("muc") + Self.payload("muc") + [
                ScenarioKey("muc.rooms", "--rooms"), ScenarioKey("muc.room_size", "--room-size"),
                ScenarioKey("muc.room", "--room"), ScenarioKey("muc.service", "--service"),
                ScenarioKey("muc.nick", "--nick"),
            ]
        ),
        ScenarioJob(
            speech: .xmpp,
            command: ["xmpp", "presence"],
            marks: ["presence"],
            keys: Self.pace("presence") + Self.payload("presence") + [
                ScenarioKey("presence.contacts", "--contacts")
            ]
        ),
        ScenarioJob(
            speech: .xmpp,
            command: ["xmpp", "register"],
            marks: ["registration"],
            keys: [ScenarioKey("registration.keep", "--keep", form: .flag())]
        ),
        ScenarioJob(speech: .xmpp, command: ["xmpp", "login"], marks: [], keys: []),
    ]

    /// Keys of every group.
    static let common = [
        ScenarioKey("target", "--host", "-h", "--hostname", "--url", "-p", "--port"),
        ScenarioKey("clients", "--count", "-c"),
        ScenarioKey("start_number", "--startnumber", "-n"),
        ScenarioKey("connect.rate", "--connrate", "-R"),
        ScenarioKey("connect.interval", "--interval", "-i", form: .duration(bare: "ms")),
        ScenarioKey("connect.timeout", "--connect-timeout", form: .duration(bare: "s")),
        ScenarioKey("connect.retries", "--num-retry-connect"),
        ScenarioKey("connect.source_addresses", "--ifaddr", form: .list),
        ScenarioKey("reconnect", "--reconnect", "--maximum-reconnect-times"),
        ScenarioKey("reconnect_period", "--reconnect-period", form: .duration(bare: "ms")),
        ScenarioKey("churn", "--churn"),
        ScenarioKey("storm", "--storm", form: .repeated),
        ScenarioKey("password", "--password", "-P"),
        ScenarioKey("password_file", "--password-file"),
        ScenarioKey("ca_file", "--cacertfile", "--ca"),
        ScenarioKey("cert_file", "--certfile", "--cert"),
        ScenarioKey("key_file", "--keyfile", "--key"),
        ScenarioKey("insecure", "--insecure", form: .flag()),
        ScenarioKey("pin", "--pin", form: .repeated),
        ScenarioKey("tls_version", "--tls-version"),
        ScenarioKey("ciphers", "--ciphers"),
        ScenarioKey("sni", "--sni"),
        ScenarioKey("ws", "--ws", form: .flag()),
        ScenarioKey("path", "--path"),
        ScenarioKey("headers", "--header", "--ws-headers", form: .repeated),
    ]

    static func keys(of speech: Speech) -> [ScenarioKey] {
        switch speech {
        case .mqtt: self.connect + self.identity + self.will
        case .xmpp:
            [
                ScenarioKey("jid", "--jid"),
                ScenarioKey("users", "--users"),
                ScenarioKey("register", "--register", form: .flag()),
                ScenarioKey("keep", "--keep", form: .flag()),
                ScenarioKey("tls", "--tls"),
                ScenarioKey("mechanism", "--mechanism"),
                ScenarioKey("stream_management", "--sm", form: .flag()),
                ScenarioKey("resolver", "--resolver"),
            ]
        }
    }

    /// All that a group may have, by what it speaks and does; of two with the same flag the job's own.
    var allKeys: [ScenarioKey] {
        let own = Set(self.keys.flatMap(\.flags))
        return (Self.common + Self.keys(of: self.speech)).filter { own.isDisjoint(with: $0.flags) } + self.keys
    }

    private static let connect = [
        ScenarioKey("connect.protocol", "--mqtt-version", "-V"),
        ScenarioKey("connect.keep_alive", "--keepalive", "-k", form: .seconds),
        ScenarioKey("connect.clean", "--no-clean", "-C", "--clean", form: .flag(means: false)),
        ScenarioKey(
            "connect.session_expiry",
            "--session-expiry",
            "-x",
            "--session-expiry-interval",
            form: .seconds
        ),
        ScenarioKey("connect.receive_maximum", "--receive-maximum", "--rcv-max"),
        ScenarioKey("connect.maximum_packet_size", "--maximum-packet-size"),
        ScenarioKey("connect.topic_alias_maximum", "--topic-alias-maximum"),
        ScenarioKey("connect.response_information", "--req-response-info", form: .flag()),
        ScenarioKey("connect.problem_information", "--no-req-problem-info", form: .flag(means: false)),
        ScenarioKey("connect.user_properties", "--conn-user-properties", form: .repeated),
        ScenarioKey("subscription_churn", "--subscription-churn"),
        ScenarioKey("subscription_churn_filter", "--subscription-churn-filter"),
    ]

    private static let identity = [
        ScenarioKey("username", "--username", "-u"),
        ScenarioKey("client_id", "--client-id"),
        ScenarioKey("prefix", "--prefix"),
        ScenarioKey("rows", "--rows"),
        ScenarioKey("short_ids", "--shortids", form: .flag()),
        ScenarioKey("auth", "--auth"),
        ScenarioKey("group_id", "--group-id"),
        ScenarioKey("instance_id", "--instance-id"),
        ScenarioKey("token_file", "--token-file"),
        ScenarioKey("broker", "--broker"),
        ScenarioKey("ssl", "--ssl", "-S", form: .flag()),
        ScenarioKey("alpn", "--alpn", form: .list),
        ScenarioKey("psk", "--psk"),
        ScenarioKey("psk_file", "--psk-file"),
        ScenarioKey("proxy_protocol", "--proxy-protocol"),
        ScenarioKey("validate", "--validate"),
    ]

    private static let will = [
        ScenarioKey("will.topic", "--will-topic"),
        ScenarioKey("will.message", "--will-message"),
        ScenarioKey("will.qos", "--will-qos"),
        ScenarioKey("will.retain", "--will-retain", form: .flag()),
        ScenarioKey("will.delay", "--will-delay-interval", form: .seconds),
        ScenarioKey("will.is_text", "--will-payload-format-indicator", form: .flag()),
        ScenarioKey("will.expiry", "--will-message-expiry-interval", form: .seconds),
        ScenarioKey("will.content_type", "--will-content-type"),
        ScenarioKey("will.response_topic", "--will-response-topic"),
        ScenarioKey("will.correlation_data", "--will-correlation-data"),
        ScenarioKey("will.user_properties", "--will-user-properties", form: .repeated),
    ]

    /// Of what the filters of `subscribe` are.
    static let filter = ScenarioKey("subscribe.filter", "--topic", "-t")
    static let filterQoS = ScenarioKey("subscribe.qos", "--qos", "-q")
    /// How all subscriptions of a group are made.
    private static let subscription = [
        ScenarioKey("subscribe.no_local", "--no_local", "--no-local", form: .flag()),
        ScenarioKey("subscribe.retain_as_published", "--retain-as-published", form: .flag()),
        ScenarioKey("subscribe.retain_handling", "--retain-handling"),
        ScenarioKey("subscribe.identifier", "--subscription-identifier"),
    ]
    private static let store = ScenarioKey("store", "--store")

    private static let publish =
        Self.pace("publish") + [
            ScenarioKey("publish.topic", "--topic", "-t"),
            ScenarioKey("publish.qos", "--qos", "-q", form: .list),
            ScenarioKey("publish.size", "--size", "-s", "--payload-size"),
            ScenarioKey("publish.message", "--message", "-m"),
            ScenarioKey("publish.retain", "--retain", "-r", form: .flag()),
            ScenarioKey("publish.is_text", "--payload-format-indicator", form: .flag()),
            ScenarioKey("publish.expiry", "--message-expiry-interval", form: .seconds),
            ScenarioKey("publish.content_type", "--content-type"),
            ScenarioKey("publish.topic_alias", "--topic-alias"),
            ScenarioKey("publish.response_topic", "--response-topic"),
            ScenarioKey("publish.correlation_data", "--correlation-data"),
            ScenarioKey("publish.user_properties", "--user-properties", form: .repeated),
            Self.store,
        ]

    /// Of stanzas.
    private static func payload(_ section: String) -> [ScenarioKey] {
        [
            ScenarioKey("\(section).size", "--size", "-s", "--payload-size"),
            ScenarioKey("\(section).body", "--message", "-m"),
        ]
    }

    private static func pace(_ section: String) -> [ScenarioKey] {
        [
            ScenarioKey("\(section).rate", "--rate"),
            ScenarioKey(
                "\(section).interval",
                "--message-interval",
                "-I",
                "--interval_of_msg",
                form: .duration(bare: "ms")
            ),
            ScenarioKey("\(section).window", "--inflight", "-F"),
            ScenarioKey("\(section).ack_timeout", "--ack-timeout", form: .duration(bare: "s")),
            ScenarioKey("\(section).limit", "--limit", "-L"),
            ScenarioKey("\(section).wait", "--no-wait", "-w", "--wait-before-publishing", form: .flag(means: false)),
        ]
    }
}

extension ScenarioJob {
    /// Keys that stand in a mapping of their own.
    static let sections: Set<String> = Set(
        (Self.common + Self.keys(of: .mqtt) + Self.keys(of: .xmpp) + Self.all.flatMap(\.keys))
            .filter { !$0.path.hasPrefix("subscribe.") }
            .compactMap { key in
                let parts = key.path.split(separator: ".")
                return parts.count > 1 ? String(parts[0]) : nil
            }
    )

    /// Of any group.
    static let everyPath: Set<String> = {
        let keys = Self.common + Self.keys(of: .mqtt) + Self.keys(of: .xmpp) + Self.all.flatMap(\.keys)
        let paths = keys.map(\.path)
        let paced = paths.filter { $0.hasSuffix(".rate") && $0 != "connect.rate" }.map { $0.dropLast("rate".count) }
        return Set(paths + paced.flatMap { section in ScenarioReader.paceKeys.map { "\(section)\($0)" } })
    }()

    /// What only groups of a protocol have.
    static func owners(of path: String) -> Set<Speech> {
        let top = path.split(separator: ".").first.map(String.init) ?? path
        var owners: Set<Speech> = []
        for speech in [Speech.mqtt, .xmpp] {
            let own = Self.keys(of: speech) + Self.all.filter { $0.speech == speech }.flatMap(\.keys)
            if own.contains(where: { $0.path == path || $0.path.hasPrefix("\(top).") && top != "connect" }) {
                owners.insert(speech)
            }
        }
        return owners
    }
}
