import Transport

// The embedded broker, which all groups share that name it.
extension ScenarioReader {
    /// The groups, with the faults of the embedded broker at all that connect to it; reports groups that need another.
    mutating func sharing(
        _ groups: [(group: ScenarioGroup, sources: Sources)]
    ) -> [(group: ScenarioGroup, sources: Sources)] {
        let users = groups.compactMap { member -> EmbeddedUse? in EmbeddedUse(member.group, member.sources) }
        guard users.count > 1, let first = users.first(where: { !$0.arguments.isEmpty }) ?? users.first else {
            return groups
        }
        for user in users where user.group != first.group {
            if !user.arguments.isEmpty, user.arguments != first.arguments {
                self.report(
                    user.place(of: "broker"),
                    "\(user.group).broker: one embedded broker serves all groups, and '\(first.group)' gives it other "
                        + "faults; write the same, or leave one of the two out"
                )
            }
            guard let key = user.difference(from: first) else { continue }
            self.report(
                user.place(of: key),
                "\(user.group).\(key): one embedded broker serves all groups, and '\(first.group)' has another \(key); "
                    + "write the same in both"
            )
        }
        return groups.map { member in
            guard case .mqtt(var options) = member.group.work, case .embedded = options.target else { return member }
            options.target = .embedded(arguments: first.arguments)
            return (ScenarioGroup(name: member.group.name, work: .mqtt(options)), member.sources)
        }
    }
}

/// The options that a group asks of the embedded broker.
private struct EmbeddedUse {
    let group: String
    let arguments: [String]
    let transport: TransportOptions
    let sources: ScenarioReader.Sources

    init?(_ group: ScenarioGroup, _ sources: ScenarioReader.Sources) {
        guard case .embedded(let arguments) = group.options.target else { return nil }
        self.group = group.name
        self.arguments = arguments
        self.transport = group.options.transport
        self.sources = sources
    }

    /// The key whose value needs another listener.
    func difference(from other: Self) -> String? {
        let (own, others) = (self.transport, other.transport)
        if (own.tls == nil) != (others.tls == nil) { return "ssl" }
        if (own.webSocket == nil) != (others.webSocket == nil) { return "ws" }
        if (own.proxy == nil) != (others.proxy == nil) { return "proxy_protocol" }
        if own.tls?.psk != others.tls?.psk { return "psk" }
        return nil
    }

    func place(of key: String) -> ScenarioPlace { self.sources.place(of: key) ?? self.sources.place }
}
