import Measurement
import Report
import Workloads

/// The reason for which a run has no metric of a threshold, with the remedy.
struct AbsentMetric {
    private let name: String

    init(_ name: String) { self.name = name }

    /// The problem with a name that no run has.
    static func problem(ofName name: String) -> String? {
        guard MetricHelp.of(name) == nil, name != Threshold.errorRate else { return nil }
        let near = NearestName.question(name, in: MetricHelp.all.map(\.name) + [Threshold.errorRate])
        return "there is no metric '\(name)'; \(near)Metrics.md lists all"
    }

    /// Why loads of these commands do not have it.
    func problem(in loads: Set<CommandName>) -> OptionWords {
        // Groups that send and groups that receive do together what one command does.
        let loads = loads.isSuperset(of: [.pub, .sub]) ? loads.union([.pubsub]) : loads
        let need = Self.needs.first { need in need.metrics.contains { self.isCalled($0) } }
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

    /// `pattern`: a name, or a beginning with `*`.
    private func isCalled(_ pattern: String) -> Bool {
        pattern.hasSuffix("*") ? self.name.hasPrefix(pattern.dropLast()) : self.name == pattern
    }

    private static func listed(_ names: ArraySlice<String>) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    // MARK: - The needs of metrics

    /// Loads that can have metrics, and the options that they need for these.
    private struct Need {
        /// Names, or beginnings with `*`.
        let metrics: [String]
        let loads: Set<CommandName>
        /// `nil`: the loads always have them.
        let words: OptionWords?

        init(_ metrics: String, of loads: Set<CommandName>, _ words: OptionWords? = nil) {
            self.metrics = metrics.split(separator: " ").map(String.init)
            self.loads = loads
            self.words = words
        }
    }

    static let ledger =
        "the ledger, which requires receivers, no -m, and -s \(LoadOptions.headerSize) or more "
        + "(XMPP: \(XMPPBody.headerSize))"

    /// The first that has the name counts.
    private static let needs: [Need] = [
        Need(
            "publish_ack_duration publish_service_duration publish_acked",
            of: .publishing,
            "QoS 1 or 2; set \(\.qos, "1")"
        ),
        Need("publish_confirmed", of: .publishing, "QoS 0; set \(\.qos, "0")"),
        Need("publish_*", of: .publishing),
        Need(
            "reconnect_duration reconnect_lag",
            of: .loads,
            "clients that come back; set \(\.reconnects, "N"), \(\.churn, "N/s") or \(\.storm, "T")"
        ),
        Need("departures_missed", of: .loads, "clients that leave by plan; set \(\.churn, "N/s") or \(\.storm, "T")"),
        Need("subscription_churn_*", of: .mqtt, "changing subscriptions; set \(\.subscriptionChurn, "N/s")"),
        Need(
            "store_messages",
            of: .publishing,
            "a message store and QoS 1 or 2; set \(\.store, "FILE") and \(\.qos, "1")"
        ),
        Need("store_*", of: [.pub, .sub, .pubsub], "a message store; set \(\.store, "FILE")"),
        Need("request_duration requests_*", of: [.pubsub], "requests with answers; set \(\.topology, "request")"),
        Need(
            "delivery_negative",
            of: [.pubsub],
            "messages from one segment to others; set \(\.processes, "N") and \(\.topology, "shared")"
        ),
        Need("delivery_gaps", of: [.sub]),
        Need(
            "delivery_duration",
            of: [.pubsub, .message, .presence, .muc],
            "one-way messages; with \(\.topology, "request") the metric is request_duration"
        ),
        Need("delivery_received delivery_overlap", of: .subscribing, OptionWords(Self.ledger)),
        Need("delivery_missing", of: [.pubsub], OptionWords(Self.ledger)),
        Need("delivery_*", of: [.pubsub, .message, .presence, .muc], OptionWords(Self.ledger)),
        Need("stanza_confirmed", of: .stanzas),
        Need("stanza_answered iq_*", of: [.ping, .register]),
        Need("stanza_acked sm_ack_duration", of: .xmpp, "stream management; set \(\.streamManagement)"),
        Need("stanza_*", of: Set<CommandName>.xmpp.subtracting([.login])),
        Need("message_duration", of: [.message, .muc]),
        Need("muc_fanout_*", of: [.muc], OptionWords(Self.ledger)),
        Need("presence_fanout_*", of: [.presence], OptionWords(Self.ledger)),
        Need("muc_*", of: [.muc]),
        Need("presence_*", of: [.presence]),
        Need("received", of: Set<CommandName>.xmpp.union([.sub, .pubsub])),
        Need("subscribe_duration ping_duration", of: .mqtt),
        Need("decode_packet_* decode_thousand_duration", of: [.decode]),
        Need("decode_* reads", of: Set<CommandName>.loads.union([.decode])),
        Need("*", of: .loads),
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
    /// Counters that a run has whenever it can have the duration, also without a sample of it.
    private static let witnesses = [
        "publish_ack_duration": "publish_acked",
        "publish_service_duration": "publish_acked",
        "publish_write_duration": "publish_sent",
        "publish_blocked_duration": "publish_sent",
        "request_duration": "requests_answered",
        "subscription_churn_duration": "subscription_churn_done",
        "store_commit_duration": "store_changes",
        "stanza_blocked_duration": "stanza_sent",
        "iq_duration": "stanza_answered",
        "iq_service_duration": "stanza_answered",
        "sm_ack_duration": "stanza_acked",
    ]

    /// The reason for which a finished run cannot have it; `nil` if it has it, or had no sample.
    func problem(in record: RunRecord) -> OptionWords? {
        let names = Set(record.metrics.map(\.name))
        guard !names.contains(self.name), self.name != "errors", ObservedMetrics.labels[self.name] == nil else {
            return nil
        }
        switch MetricHelp.of(self.name)?.kind {
        case .duration?:
            guard let witness = Self.witnesses[self.name], !names.contains(witness) else { return nil }
        case .counter?:
            // Segments that were lost leave counts of the ledger unknown.
            let isOfLedger =
                self.name.hasPrefix("delivery_") || ["requests_lost", "requests_outstanding"].contains(self.name)
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
