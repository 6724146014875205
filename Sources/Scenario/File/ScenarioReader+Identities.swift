import Workloads

// Two groups that would push each other off a server.
extension ScenarioReader {
    /// The names of a group's clients at their server.
    struct Identity {
        var group: String
        /// The key that defines it.
        var key: String
        var place: ScenarioPlace
        var servers: Set<String>
        /// With `%i` for the number, and the numbers.
        var template: String
        var numbers: ClosedRange<Int>
        /// From a table: all of them.
        var names: Set<String> = []

        func meets(_ other: Identity) -> String? {
            guard !self.servers.isDisjoint(with: other.servers) else { return nil }
            if !self.names.isEmpty || !other.names.isEmpty { return self.names.intersection(other.names).min() }
            guard self.template == other.template else { return nil }
            let template = Template(parsing: self.template)
            guard template.hasClientNumber else { return self.template }
            let first = max(self.numbers.lowerBound, other.numbers.lowerBound)
            guard first <= min(self.numbers.upperBound, other.numbers.upperBound) else { return nil }
            return template.filter(ofClient: PlaceholderValues(clientNumber: first))
        }
    }

    mutating func checkIdentities(_ groups: [(group: ScenarioGroup, sources: Sources)]) {
        var known: [Identity] = []
        for (group, sources) in groups {
            for identity in Self.identities(group, sources) {
                for other in known where other.group != identity.group {
                    guard let name = identity.meets(other) else { continue }
                    self.report(
                        identity.place,
                        "\(identity.group).\(identity.key): '\(name)' is a client of \(other.group) too, and a server lets one "
                            + "of them in; give the groups different names or start_number"
                    )
                    break
                }
                known.append(identity)
            }
        }
    }

    private static func identities(_ group: ScenarioGroup, _ sources: Sources) -> [Identity] {
        func identity(_ template: String, _ count: Int, keys: [String], servers: [String]) -> Identity? {
            // Random or time-based names cannot collide.
            guard count > 0, !Template(parsing: template).variesPerMessage else { return nil }
            let key = keys.first { sources.place(of: $0) != nil }
            let first = group.options.startNumber + 1
            return Identity(
                group: group.name,
                key: key ?? keys[0],
                place: key.flatMap { sources.place(of: $0) } ?? sources.place,
                servers: Set(servers),
                template: template,
                numbers: first...(first + count - 1)
            )
        }
        switch group.work {
        case .mqtt(let options):
            let keys = ["client_id", "prefix"]
            return [(options.publisherID, options.publishers), (options.subscriberID, options.subscribers)]
                .compactMap { identity($0.0, $0.1, keys: keys, servers: options.targetNames) }
        case .xmpp(let options):
            guard options.users.isEmpty else {
                var table = identity("", options.operators, keys: ["users"], servers: ["xmpp"])
                table?.names = Set(options.users.map(\.full))
                return table.map { [$0] } ?? []
            }
            let jid = "\(options.local)@\(options.domain)/\(options.resource)"
            return identity(jid, options.operators, keys: ["jid"], servers: ["xmpp"]).map { [$0] } ?? []
        }
    }

    /// Two groups of the same users would push each other off the server.
    static func setResource(of options: inout XMPPOptions, _ sources: Sources) {
        if let jid = sources.given[\.jid], !jid.contains("/") { options.resource = sources.group }
        for index in options.users.indices where options.users[index].resource == "clamor" {
            options.users[index].resource = sources.group
        }
    }

    /// The usual beginning of a group's client ids: two groups must not have the same.
    func ownPrefix(_ group: String) -> String {
        let prefix = self.seed.map { GivenOptions.prefix(seed: $0) } ?? GivenOptions.prefix(self.salt)
        return self.isAlone ? prefix : "\(prefix)-\(group)"
    }
}
