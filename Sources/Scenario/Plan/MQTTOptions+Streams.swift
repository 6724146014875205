import Measurement
import Workloads

// Several streams of a publisher, and filters that differ: as facts, and as keys of the plan record.
extension MQTTOptions {
    private static let section = "publish"

    /// `publish[0].topic`, as the list of a scenario file has it.
    func addStreams(to facts: inout PlanFacts) {
        // Settings of all publishers together.
        let known = Set(facts.facts.map(\.path))
        for (index, stream) in self.streams.enumerated() {
            let path = "\(Self.section)[\(index)]"
            facts.text("\(path).name", stream.name, .schedule)
            for fact in self.facts(of: stream) where fact.isScheduled && !known.contains(fact.path) {
                facts.add(path + fact.path.dropFirst(Self.section.count), fact.value, .schedule)
            }
        }
    }

    private func facts(of stream: PublishStream) -> [PlanFact] {
        self.with(stream).facts.facts.filter { $0.path.hasPrefix("\(Self.section).") }
    }

    /// `subscribe[0].qos`, as the list of a scenario file has it.
    func addFilters(to facts: inout PlanFacts) {
        for (index, subscription) in self.subscriptions.enumerated() {
            for fact in subscription.facts { facts.add("subscribe[\(index)].\(fact.path)", fact.value, .schedule) }
        }
    }

    // MARK: - In the plan record

    func addStreams(to plan: inout [String: JSONValue]) {
        plan["streams"] = .array(
            self.streams.map { stream in
                var own: [String: JSONValue] = [
                    "name": .string(stream.name), "qos": .integer(Int64(stream.qos)), "retain": .bool(stream.retain),
                ]
                if let p2p = stream.p2p {
                    own["p2p"] = ["root": .string(p2p.root), "to": .string("\(p2p.to)")]
                } else {
                    own["topic"] = .string(stream.topic)
                }
                var one = self.with(stream)
                one.common.addPayload(to: &own)
                one.common.addOperations(to: &own)
                var facts = PlanFacts()
                // Those of the publishers as a whole are beside the streams.
                (one.topicAlias, one.common.limit, own["window"]) = (nil, nil, nil)
                for fact in one.facts.facts where fact.path.hasPrefix("\(Self.section).") {
                    facts.add(String(fact.path.dropFirst(Self.section.count + 1)), fact.value, fact.place)
                }
                facts.add(to: &own)
                return .object(own)
            }
        )
        plan["window"] = .integer(Int64(self.window))
    }

    func addSubscriptions(to plan: inout [String: JSONValue]) {
        guard self.kind != .sub || !self.hasEqualFilters else {
            plan["filters"] = .array(self.subscriptions.map { .string($0.filter) })
            return
        }
        plan["subscriptions"] = .array(
            self.subscriptions.map { subscription in
                var facts = PlanFacts()
                for fact in subscription.facts { facts.add(fact.path, fact.value, .both) }
                var own: [String: JSONValue] = [:]
                facts.add(to: &own)
                return .object(own)
            }
        )
    }
}

extension SubscriptionOption {
    /// The filter, and what differs from the defaults.
    fileprivate var facts: [PlanFact] {
        var options = MQTTOptions(kind: .sub)
        options.subscribe = self.options
        let section = "subscribe."
        var facts = PlanFacts()
        facts.text("filter", self.filter)
        facts.integer("qos", self.qos, unless: 0)
        return facts.facts
            + options.facts.facts.filter { $0.path.hasPrefix(section) }.map { fact in
                PlanFact(path: String(fact.path.dropFirst(section.count)), value: fact.value, place: fact.place)
            }
    }
}
