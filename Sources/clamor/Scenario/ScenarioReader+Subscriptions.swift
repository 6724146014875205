// What the clients of a group subscribe to, and how.
extension ScenarioReader {
    static func isListOfFilters(_ given: Given) -> Bool {
        guard given.path == "subscribe", case .list = given.value.content else { return false }
        return true
    }

    /// `subscribe: [{ filter: "a/#", qos: 1, no_local: true }]`.
    mutating func filters(_ given: Given, _ sources: inout Sources) -> [String] {
        guard case .list(let subscriptions) = given.value.content, !subscriptions.isEmpty else {
            self.report(
                given.value.place,
                "\(sources.group).subscribe is \(given.value.kind); write it like [{ filter: \"a/#\", qos: 1 }]"
            )
            return []
        }
        let keys = Self.optionKeys(sources)
        let names = ["filter", "qos"] + keys.map(Self.name)
        var arguments: [String] = []
        var first: Subscription?
        for (number, subscription) in subscriptions.enumerated() {
            guard case .mapping(let entries) = subscription.content else {
                self.report(
                    subscription.place,
                    "a subscription is \(subscription.kind); write it like { filter: \"a/#\", qos: 1 }"
                )
                continue
            }
            for entry in entries where !names.contains(entry.key) {
                self.report(entry.place, "\(sources.group).subscribe: " + self.unknown(entry.key, known: names))
            }
            if let filter = entries.first(where: { $0.key == "filter" })?.value {
                guard let text = self.text(filter, of: "filter") else { continue }
                sources.filters.append((text, filter.place))
                arguments.append("--topic=\(text)")
            } else {
                self.report(
                    subscription.place,
                    "\(sources.group).subscribe: filter is missing; write it like { filter: \"a/#\", qos: 1 }"
                )
            }
            let own = self.subscription(entries, at: subscription.place, sources)
            if number == 0 { first = own }
            if let first { self.check(own, like: first, keys, sources) }
        }
        guard let first else { return arguments }
        for (path, place) in first.places { sources.places[path] = place }
        return arguments + ["--qos=\(first.qos)"] + keys.flatMap { first.arguments[$0.path] ?? [] }
    }

    /// `subscribe: { no_local: true }` beside `subscribers`, whose filters follow from the topology.
    mutating func subscriptionOptions(_ given: Given, _ sources: inout Sources) -> [String] {
        let keys = Self.optionKeys(sources)
        guard case .mapping(let entries) = given.value.content else {
            self.report(
                given.value.place,
                "\(sources.group).subscribe is \(given.value.kind); beside subscribers it says how they subscribe, such as "
                    + "{ no_local: true }"
            )
            return []
        }
        for entry in entries where !keys.contains(where: { Self.name($0) == entry.key }) {
            let names = keys.map(Self.name)
            self.report(entry.place, "\(sources.group).subscribe: " + self.unknown(entry.key, known: names))
        }
        let own = self.subscription(entries, at: given.value.place, sources)
        for (path, place) in own.places where path != ScenarioJob.filterQoS.path { sources.places[path] = place }
        return keys.flatMap { own.arguments[$0.path] ?? [] }
    }

    // MARK: - One of them

    /// What an entry says beside its filter.
    private struct Subscription {
        var qos: String
        /// Of its options, by the paths of their keys.
        var arguments: [String: [String]] = [:]
        var places: [String: ScenarioPlace]
        /// Of the entry, for what it does not say.
        var place: ScenarioPlace
    }

    private mutating func subscription(
        _ entries: [ScenarioValue.Entry],
        at place: ScenarioPlace,
        _ sources: Sources
    ) -> Subscription {
        let qos = entries.first { $0.key == "qos" }?.value
        var result = Subscription(
            qos: qos.map { self.text($0, of: "qos") ?? "0" } ?? "0",
            places: [ScenarioJob.filterQoS.path: qos?.place ?? place],
            place: place
        )
        for key in Self.optionKeys(sources) {
            guard let value = entries.first(where: { $0.key == Self.name(key) })?.value else { continue }
            result.places[key.path] = value.place
            let arguments = self.arguments(key, value, "\(sources.group).\(key.path)")
            // What is the same as nothing.
            result.arguments[key.path] = arguments.filter { $0 != "--retain-handling=0" }
        }
        return result
    }

    /// The flags are those of all filters of a command.
    private mutating func check(
        _ own: Subscription,
        like first: Subscription,
        _ keys: [ScenarioKey],
        _ sources: Sources
    ) {
        if own.qos != first.qos {
            self.report(
                own.places[ScenarioJob.filterQoS.path] ?? own.place,
                "\(sources.group).subscribe: in this build all filters of a group have one QoS; make two groups"
            )
        }
        for key in keys where own.arguments[key.path] ?? [] != first.arguments[key.path] ?? [] {
            self.report(
                own.places[key.path] ?? own.place,
                "\(sources.group).subscribe: in this build all filters of a group have the same \(Self.name(key)); say it "
                    + "alike at each of them, or make two groups"
            )
        }
    }

    private static func optionKeys(_ sources: Sources) -> [ScenarioKey] {
        let own = [ScenarioJob.filter.path, ScenarioJob.filterQoS.path]
        return sources.keys.filter { $0.path.hasPrefix("subscribe.") && !own.contains($0.path) }
    }

    /// Below `subscribe`.
    private static func name(_ key: ScenarioKey) -> String { String(key.path.dropFirst("subscribe.".count)) }
}
