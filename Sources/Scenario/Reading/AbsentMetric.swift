import Ledger
package import Measurement
import Workloads

/// The reason for which a run has no metric of a threshold, with the remedy.
package struct AbsentMetric {
    private let name: String

    package init(_ name: String) { self.name = name }

    package static func problem(ofName name: String) -> String? {
        guard MetricDefinition.of(name) == nil, name != Threshold.errorRate else { return nil }
        let near = NearestName.question(name, in: MetricDefinition.all.map(\.name) + [Threshold.errorRate])
        return "there is no metric '\(name)'; \(near)Metrics.md lists all"
    }

    /// Why loads of these commands do not have it.
    package func problem(in loads: Set<CommandName>) -> OptionWords {
        // Groups that send and groups that receive do together what one command does.
        let loads = loads.isSuperset(of: [.pub, .sub]) ? loads.union([.pubsub]) : loads
        let need = Self.needs.first { $0.has(self.name) }
        guard let need else { return "this run has no metric '\(self.name)'; name another" }
        guard !loads.isEmpty, loads.isDisjoint(with: need.loads) else {
            return need.words.map { "\(self.name) needs \($0)" }
                ?? "this run has no metric '\(self.name)'; name another"
        }
        let others = CommandName.allCases.filter { need.loads.contains($0) }.map(\.rawValue)
        let own = CommandName.allCases.filter { loads.contains($0) }.map(\.rawValue)
        let few = others.count > 4 ? others.prefix(3) + ["others"] : others[...]
        return "\(self.name) is a metric of \(Self.listed(few)), and not of \(Self.listed(own[...])); name another"
    }

    private static func listed(_ names: ArraySlice<String>) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    // MARK: - The needs of metrics

    /// Loads that can have metrics, and the options that they need for these.
    private struct Need {
        let metrics: [MetricDefinition]
        /// The beginning of further names.
        let beginning: String?
        let loads: Set<CommandName>
        /// `nil`: the loads always have them.
        let words: OptionWords?

        init(
            _ metrics: [MetricDefinition] = [],
            beginning: String? = nil,
            of loads: Set<CommandName>,
            _ words: OptionWords? = nil
        ) {
            self.metrics = metrics
            self.beginning = beginning
            self.loads = loads
            self.words = words
        }

        func has(_ name: String) -> Bool {
            self.metrics.contains { $0.name == name } || self.beginning.map(name.hasPrefix) ?? false
        }
    }

    static let ledger =
        "the ledger, which requires receivers, and -s \(ShortHeader.size) or more, with several audiences "
        + "\(ShortHeader.addressedSize) "
        + "(XMPP: \(XMPPBody.headerSize)), a message with %{ledger}, or --ledger property"

    /// The first that has the name counts.
    private static let needs: [Need] = [
        Need(
            [.publishSkipped, .publishReplaced, .stanzaSkipped, .stanzaReplaced],
            of: .paced,
            "clients that sleep, with \(\.cycleDue, "skip") or latest; set \(\.cycleOnline, "T") and \(\.cycleOffline, "T")"
        ),
        Need([.publishAck, .publishService, .publishAcked], of: .publishing, "QoS 1 or 2; set \(\.qos, "1")"),
        Need([.publishConfirmed], of: .publishing, "QoS 0; set \(\.qos, "0")"),
        Need(beginning: "publish_", of: .publishing),
        Need(
            [.reconnect, .reconnectLag],
            of: .loads,
            "clients that come back; set \(\.reconnects, "N"), \(\.churn, "N/s") or \(\.storm, "T")"
        ),
        Need([.downtime], of: .loads, "clients that come back from a loss; set \(\.reconnects, "N")"),
        Need([.reply], beginning: "replies_", of: .mqtt, "clients that answer; set \(\.replyTopic, "TOPIC")"),
        Need([.departuresMissed], of: .loads, "clients that leave by plan; set \(\.churn, "N/s") or \(\.storm, "T")"),
        Need(beginning: "subscription_churn_", of: .mqtt, "changing subscriptions; set \(\.subscriptionChurn, "N/s")"),
        Need([.request], beginning: "requests_", of: [.pubsub], "requests with answers; set \(\.topology, "request")"),
        Need(
            [.deliveryNegative],
            of: [.pubsub],
            "messages from one segment to others; set \(\.processes, "N") and \(\.topology, "shared")"
        ),
        Need([.deliveryGaps], of: [.sub]),
        Need(
            [.delivery],
            of: [.pubsub, .message, .presence, .muc],
            "one-way messages; with \(\.topology, "request") the metric is request_duration"
        ),
        Need([.deliveryReceived, .deliveryOverlap], of: .subscribing, OptionWords(Self.ledger)),
        Need([.deliveryMissing], of: [.pubsub], OptionWords(Self.ledger)),
        Need(beginning: "delivery_", of: [.pubsub, .message, .presence, .muc], OptionWords(Self.ledger)),
        Need([.stanzaConfirmed], of: .stanzas),
        Need([.stanzaAnswered], beginning: "iq_", of: [.ping, .register]),
        Need([.stanzaAcked, .smResponse, .smAck], of: .xmpp, "stream management; set \(\.streamManagement)"),
        Need(beginning: "stanza_", of: Set<CommandName>.xmpp.subtracting([.login])),
        Need([.message], of: [.message, .muc]),
        Need(beginning: "muc_fanout_", of: [.muc], OptionWords(Self.ledger)),
        Need(beginning: "presence_fanout_", of: [.presence], OptionWords(Self.ledger)),
        Need(beginning: "muc_", of: [.muc]),
        Need(beginning: "presence_", of: [.presence]),
        Need([.received], of: Set<CommandName>.xmpp.union([.sub, .pubsub])),
        Need(
            beginning: "retained_",
            of: [.pubsub],
            "subscribers of what the run retains at QoS 1 or 2, in one segment; set \(\.retain) and \(\.qos, "1")"
        ),
        Need([.unsubscribe], of: .subscribing, "clients that unsubscribe; set \(\.unsubscribe)"),
        Need([.subscribe, .ping], of: .mqtt),
        Need([.decodeThousand], beginning: "decode_packet_", of: [.decode]),
        Need([.reads], beginning: "decode_", of: Set<CommandName>.loads.union([.decode])),
        Need(beginning: "", of: .loads),
    ]
}

// MARK: - Thresholds

extension GivenOptions {
    /// Refuses thresholds on metrics that the run does not have.
    ///
    /// `known`: made only for a threshold, since it takes time.
    mutating func checkMetrics(of loads: Set<CommandName>, _ known: () -> MetricCatalog) {
        // Wrong options would be the reason, and are reported.
        guard let sentences = self[\.thresholds], !sentences.isEmpty, self.problems.isEmpty else { return }
        let catalog = known()
        for (index, sentence) in sentences.enumerated() {
            guard let threshold = try? Threshold.parse(sentence), threshold.isAbsent(in: catalog) else { continue }
            let problem = AbsentMetric(threshold.name).problem(in: loads)
            self.refuse(\.thresholds, "'\(sentence)': \(problem)", at: index)
        }
    }
}

// MARK: - Finished runs

extension AbsentMetric {
    /// The reason for which a finished run cannot have it; `nil` if it has it, or had no sample.
    package func problem(in record: RunRecord) -> OptionWords? {
        let names = Set(record.metrics.map(\.name))
        guard !names.contains(self.name), self.name != MetricDefinition.errors.name,
            MetricDefinition.of(self.name)?.role != .server
        else {
            return nil
        }
        switch MetricDefinition.of(self.name)?.kind {
        case .duration?:
            guard let witness = MetricDefinition.of(self.name)?.witness, !names.contains(witness.name) else {
                return nil
            }
        case .counter?:
            // Segments that were lost leave counts of the ledger unknown.
            let isOfLedger =
                self.name.hasPrefix("delivery_")
                || [MetricDefinition.requestsLost, .requestsOutstanding].map(\.name).contains(self.name)
                || self.name.hasSuffix("_unfinished")
            if isOfLedger, record.ledger.on { return nil }
        case .gauge?, nil: return nil
        }
        return "the run has no such metric: \(self.problem(in: record.loads))"
    }
}

extension RunRecord {
    /// The commands that do the same as its groups.
    fileprivate var loads: Set<CommandName> {
        Set(
            self.plans.compactMap { plan in
                guard case .string(let name)? = plan["command"] else { return nil }
                return CommandName(rawValue: name.replacing("-", with: " "))
            }
        )
    }
}
