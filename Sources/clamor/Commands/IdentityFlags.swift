import ArgumentParser

/// How clients prove who they are, beyond a user name and a password.
struct AuthFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "aliyun, scram-sha-256 or scram-sha-1 (MQTT 5), with -u and -P. (default: user name and password)",
            valueName: "method"
        )
    ) var auth: String?

    @Option(
        name: .customLong("group-id"),
        help: ArgumentHelp("Group of --auth aliyun: client ids become GROUP@@@PREFIX-pub-%i.", valueName: "group")
    ) var groupID: String?

    @Option(
        name: .customLong("instance-id"),
        help: ArgumentHelp("Instance of --auth aliyun; without it the old signature is used.", valueName: "instance")
    ) var instanceID: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Tokens of --auth aliyun instead of a secret key: lines such as 'R|TOKEN' or 'W|TOKEN'.",
            valueName: "file"
        )
    ) var tokenFile: String?
}

/// Clients that leave on purpose, and come back.
struct DepartureFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "So many clients a second, all in turn, disconnect and come back; 100/s:cut: without a DISCONNECT.",
            valueName: "n/s"
        )
    ) var churn: String?

    @Option(
        name: .long,
        parsing: .singleValue,
        help: ArgumentHelp(
            "30%@5s: 5 s into the load that share of the clients is cut off and comes back as fast as -R allows; 30%@5s:disconnect: with a DISCONNECT. Repeatable.",
            valueName: "share@time"
        )
    ) var storm: [String] = []
}

/// Clients that subscribe and unsubscribe on purpose.
struct SubscriptionChurnFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "So many clients a second, all in turn, subscribe to a filter that nobody publishes to, and unsubscribe again.",
            valueName: "n/s"
        )
    ) var subscriptionChurn: String?

    @Option(
        name: .long,
        help: ArgumentHelp("That filter; placeholders allowed. (default: clamor-churn/%c)", valueName: "filter")
    ) var subscriptionChurnFilter: String?
}
