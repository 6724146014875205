/// Which way of a metric is the better one.
package enum MetricDirection: String, Codable, Sendable {
    case down, up
    /// Decided by the plan, or neither good nor bad.
    case none

    private static let higherIsBetter: Set<String> = [
        "publish_sent", "publish_acked", "publish_confirmed", "received", "stanza_sent", "stanza_confirmed",
        "stanza_answered", "stanza_acked", "decode_packets", "decode_bytes", "subscription_churn_done",
    ]

    private static let lowerIsBetter: Set<String> = [
        "errors", "delivery_lost", "requests_lost", "requests_outstanding", "requests_late", "delivery_duplicated",
        "delivery_reordered", "publish_not_sent", "publish_resent", "publish_outstanding", "delivery_outstanding",
        "publish_failed", "stanza_failed", "stanza_not_sent", "stanza_outstanding", "stanza_refused", "disconnects",
        "departures_missed",
        "subscription_churn_missed", "subscription_churn_failed", "muc_fanout_unfinished", "presence_fanout_unfinished",
        "store_refused", "store_dropped", "generator_cpu", "loop_lag",
        "decode_packet_time", "decode_packet_allocated_bytes", "server_cpu_per_message", "server_memory_per_connection",
    ]

    package static func of(_ name: String) -> MetricDirection {
        if name.hasSuffix("_duration") || name.hasSuffix("_lag") || self.lowerIsBetter.contains(name) { return .down }
        return self.higherIsBetter.contains(name) ? .up : .none
    }

    /// Counters of errors and losses: their count matters, not their rate.
    static func isMishap(_ name: String) -> Bool {
        self.lowerIsBetter.contains(name) && !["generator_", "decode_", "server_"].contains(where: name.hasPrefix)
            && name != "loop_lag"
    }
}
