// The subscriptions of a group's clients.
extension ScenarioReader {
    static func isListOfFilters(_ entry: Entry) -> Bool {
        guard entry.path == "subscribe", case .list = entry.value.content else { return false }
        return true
    }

    /// `subscribe: [{ filter: "a/#", qos: 1, no_local: true }]`.
    mutating func takeFilters(_ entry: Entry, _ sources: inout Sources) {
        guard case .list(let subscriptions) = entry.value.content, !subscriptions.isEmpty else {
            return self.report(
                entry.value.place,
                "\(sources.group).subscribe is \(entry.value.kind); write it like [{ filter: \"a/#\", qos: 1 }]"
            )
        }
        let names = ["filter", "qos"] + Self.options(of: sources).map(\.name)
        var filters = GivenOptions.Found(spec: OptionTable[\.filters], texts: [])
        var first: Subscription?
        for subscription in subscriptions {
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
                filters.texts.append(text)
                filters.place = filters.place ?? filter.place
                filters.places.append(filter.place)
            } else {
                self.report(
                    subscription.place,
                    "\(sources.group).subscribe: filter is missing; write it like { filter: \"a/#\", qos: 1 }"
                )
            }
            let own = self.subscription(entries, at: subscription.place, sources)
            if let first { self.check(own, like: first, sources) }
            first = first ?? own
        }
        if !filters.texts.isEmpty { sources.given.take(filters) }
        for found in first?.found ?? [] { sources.given.take(found) }
    }

    /// `subscribe: { no_local: true }` together with `subscribers`, whose filters follow from the topology.
    mutating func takeSubscription(_ entry: Entry, _ sources: inout Sources) {
        guard case .mapping(let entries) = entry.value.content else {
            return self.report(
                entry.value.place,
                "\(sources.group).subscribe is \(entry.value.kind); next to subscribers it sets their subscribe options, such as "
                    + "{ no_local: true }"
            )
        }
        let names = Self.options(of: sources).map(\.name)
        for entry in entries where !names.contains(entry.key) {
            self.report(entry.place, "\(sources.group).subscribe: " + self.unknown(entry.key, known: names))
        }
        for found in self.subscription(entries, at: entry.value.place, sources).found { sources.given.take(found) }
    }

    // MARK: - One of them

    /// The settings of an entry, apart from its filter.
    private struct Subscription {
        var found: [GivenOptions.Found] = []
        /// The place of each given option, by its id.
        var places: [String: ScenarioPlace] = [:]
        /// The place of the entry, for options that it does not set.
        var place: ScenarioPlace

        subscript(id: String) -> GivenOptions.Found? { self.found.first { $0.spec.id == id } }
    }

    private mutating func subscription(
        _ entries: [ScenarioValue.Entry],
        at place: ScenarioPlace,
        _ sources: Sources
    ) -> Subscription {
        var result = Subscription(place: place)
        if sources.command == .sub {
            let qos = entries.first { $0.key == "qos" }?.value
            let found = GivenOptions.Found(
                spec: OptionTable[\.subscribeQoS],
                texts: [qos.map { self.text($0, of: "qos") ?? "0" } ?? "0"],
                place: qos?.place ?? place
            )
            result.found.append(found)
        }
        for (name, spec) in Self.options(of: sources) {
            guard let value = entries.first(where: { $0.key == name })?.value else { continue }
            result.places[spec.id] = value.place
            guard let found = self.found(spec, value, "\(sources.group).subscribe.\(name)"),
                // The default is equal to its absence.
                spec.id != OptionTable[\.retainHandling].id || found.texts != ["0"]
            else { continue }
            result.found.append(found)
        }
        return result
    }

    /// The options of a command are those of all its filters.
    private mutating func check(_ own: Subscription, like first: Subscription, _ sources: Sources) {
        let qos = OptionTable[\.subscribeQoS].id
        if own[qos]?.texts != first[qos]?.texts {
            self.report(
                own[qos]?.place ?? own.place,
                "\(sources.group).subscribe: in this build all filters of a group have one QoS; make two groups"
            )
        }
        for (name, spec) in Self.options(of: sources) where own[spec.id]?.texts != first[spec.id]?.texts {
            self.report(
                own.places[spec.id] ?? own.place,
                "\(sources.group).subscribe: in this build all filters of a group have the same \(name); say it "
                    + "alike at each of them, or make two groups"
            )
        }
    }

    /// The options of SUBSCRIBE, by their names below `subscribe`.
    private static func options(of sources: Sources) -> [(name: String, spec: OptionSpec)] {
        let own = [OptionTable[\.filters].id, OptionTable[\.subscribeQoS].id]
        return sources.keys.compactMap { key, spec in
            guard key.hasPrefix("subscribe."), !own.contains(spec.id) else { return nil }
            return (String(key.dropFirst("subscribe.".count)), spec)
        }
    }
}
