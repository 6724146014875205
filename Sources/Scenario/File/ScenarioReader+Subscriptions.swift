import Workloads

// The subscriptions of a group's clients.
extension ScenarioReader {
    private static let filterSection = "subscribe."

    /// The keys of a filter in a list.
    private static let filterKeys: [(name: String, spec: OptionSpec)] = Self.subscribeKeys(CommandName.sub.groupKeys)

    private static func subscribeKeys(_ keys: [(key: String, spec: OptionSpec)]) -> [(name: String, spec: OptionSpec)] {
        keys.filter { $0.key.hasPrefix(self.filterSection) }
            .map { (String($0.key.dropFirst(self.filterSection.count)), $0.spec) }
    }

    /// A filter of a list, read by itself.
    private struct Filter {
        var text: String
        var qualities: [UInt8]
        var options: MQTTLoad.SubscriptionOptions
        /// As given, apart from the text.
        var found: [GivenOption]
        var place: ScenarioPlace
        var qosPlace: ScenarioPlace
    }

    /// `subscribe: [{ filter: "a/#", qos: 1, no_local: true }]`.
    mutating func takeFilters(_ entry: Entry, _ sources: inout Sources) {
        guard case .list(let values) = entry.value.content, !values.isEmpty else {
            let readers = sources.command == .pub ? ", or add subscribers: for other clients that read" : ""
            return self.report(
                entry.value.place,
                "\(sources.group).subscribe is \(entry.value.kind); write it like [{ filter: \"a/#\", qos: 1 }]\(readers)"
            )
        }
        let filters = values.compactMap { self.filter($0, sources) }
        guard filters.count == values.count, let first = filters.first else { return }
        sources.given.take(
            GivenOption(
                spec: OptionTable[\.filters],
                texts: filters.map(\.text),
                place: first.place,
                places: filters.map(\.place)
            )
        )
        // Alike they are what the options of a command are, and its QoS levels are spread over the clients.
        let areAlike = filters.allSatisfy { $0.qualities == first.qualities && $0.options == first.options }
        if areAlike, sources.command == .sub { return first.found.forEach { sources.given.take($0) } }
        for filter in filters where filter.qualities.count > 1 {
            self.report(
                filter.qosPlace,
                "\(sources.group).subscribe.qos: only subscribers whose filters are all alike are spread over QoS levels; write one"
            )
        }
        sources.given.lists.subscriptions = filters.map { filter in
            SubscriptionOption(filter.text, qos: filter.qualities.first ?? 0, options: filter.options)
        }
    }

    private mutating func filter(_ value: ScenarioValue, _ sources: Sources) -> Filter? {
        let remedy = "write it like { filter: \"a/#\", qos: 1 }"
        guard let entries = self.mapping(value, "a subscription", remedy) else { return nil }
        let name = "\(sources.group).subscribe"
        let values = self.values(entries, Self.filterKeys.map(\.name), of: name)
        let before = self.problems.count
        let own = Self.filterKeys.first { $0.spec.id == OptionTable[\.filters].id }?.name ?? ""
        let filter = values[own]
        if filter == nil { self.report(value.place, "\(name): filter is missing; \(remedy)") }
        let text = filter.flatMap { self.text($0, of: "filter") }
        var given = self.part(.sub, at: value.place, of: sources)
        if let text, let place = filter?.place {
            given.take(GivenOption(spec: OptionTable[\.filters], texts: [text], place: place, places: [place]))
        }
        let others = self.subscribeOptions(values.filter { $0.key != own }, Self.filterKeys, name)
        for found in others { given.take(found) }
        let options = given.mqtt(.sub)
        for problem in given.problems { self.report(problem.place ?? value.place, problem.description) }
        guard let text, self.problems.count == before else { return nil }
        return Filter(
            text: text,
            qualities: options.qualities,
            options: options.subscribe,
            found: others,
            place: filter?.place ?? value.place,
            qosPlace: values["qos"]?.place ?? value.place
        )
    }

    /// `subscribe: { no_local: true }` together with `subscribers`, whose filters follow from the topology.
    mutating func takeSubscription(_ entry: Entry, _ sources: inout Sources) {
        let name = "\(sources.group).subscribe"
        if case .list = entry.value.content {
            return self.report(
                entry.value.place,
                "\(name): subscribers of a topology have their filters from it; write options alone, such as "
                    + "{ no_local: true }, or leave subscribers and topology out"
            )
        }
        let remedy = "next to subscribers it sets their subscribe options, such as { no_local: true }"
        guard let entries = self.mapping(entry.value, name, remedy) else { return }
        let keys = Self.subscribeKeys(sources.keys)
        let values = self.values(entries, keys.map(\.name), of: name)
        for found in self.subscribeOptions(values, keys, name) { sources.given.take(found) }
    }

    /// The settings of a mapping.
    private mutating func subscribeOptions(
        _ values: [String: ScenarioValue],
        _ keys: [(name: String, spec: OptionSpec)],
        _ name: String
    ) -> [GivenOption] {
        keys.compactMap { key, spec in
            guard let value = values[key], let found = self.found(spec, value, "\(name).\(key)"),
                // The default is equal to its absence.
                spec.id != OptionTable[\.retainHandling].id || found.texts != ["0"]
            else { return nil }
            return found
        }
    }
}
