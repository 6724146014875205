package import Measurement

/// A metric that a run can record, with the sentence that Prometheus shows.
///
/// The article on metrics has the same names and types.
package struct MetricHelp: Hashable, Sendable {
    package let name: String
    package let kind: Metric.Kind
    /// "seconds", "bytes" or "cores"; absent if the metric counts things or is a share.
    package let unit: String?
    package let help: String

    /// Nil for a metric that the table does not have.
    package static func of(_ name: String) -> MetricHelp? { self.byName[name] }

    private static let byName = Dictionary(uniqueKeysWithValues: Self.all.map { ($0.name, $0) })

    /// A duration, in seconds.
    static func duration(_ name: String, _ help: String) -> MetricHelp {
        MetricHelp(name: name, kind: .duration, unit: "seconds", help: help)
    }

    static func counter(_ name: String, unit: String? = nil, _ help: String) -> MetricHelp {
        MetricHelp(name: name, kind: .counter, unit: unit, help: help)
    }

    static func gauge(_ name: String, unit: String? = nil, _ help: String) -> MetricHelp {
        MetricHelp(name: name, kind: .gauge, unit: unit, help: help)
    }

    package static let all: [MetricHelp] = Array(
        [
            connections, publishing, receiving, requests, churn, store, traffic, hosts, server, xmpp,
            decoders,
        ].joined()
    )

    private static let connections: [MetricHelp] = [
        .duration("connect_duration", "Time of a client's first connect, by phase; phases are not cumulative."),
        .duration("connect_lag", "From the time at which a connect was due to its begin: the generator's delay."),
        .duration("reconnect_duration", "Time of a connect of a client that was connected before, by phase."),
        .duration("reconnect_lag", "From due to begun, for clients that left by plan."),
        .gauge("clients", "Clients by state."),
        .counter("reconnects", "Clients that came back after they had lost their connection or left by plan."),
        .counter("disconnects", "Lost connections, and clients that left by plan."),
        .counter("departures_missed", "Clients that should have left by plan and were not connected."),
        .counter("errors", "Errors by kind."),
    ]

    private static let publishing: [MetricHelp] = [
        .counter("publish_offered", "Messages that became due."),
        .counter("publish_sent", "Messages of which the kernel took the first byte."),
        .counter("publish_not_sent", "Messages that became due and were never sent."),
        .counter("publish_failed", "Messages that were refused, timed out, or lost their connection."),
        .counter("publish_excused", "Messages without an answer when the plan cut their connection."),
        .counter("publish_outstanding", "Messages neither answered nor failed when the drain ended, sent or not."),
        .counter("publish_resent", "Messages sent again after a reconnect, with DUP."),
        .counter("publish_acked", "Messages that the server acknowledged, at QoS 1 and 2."),
        .counter("publish_confirmed", "Messages at QoS 0 on connections that the server read to their end."),
        .duration("publish_ack_duration", "Response time of a publish: from due to acknowledged, cumulative by leg."),
        .duration("publish_service_duration", "Service time of a publish: from written to acknowledged."),
        .duration("publish_write_duration", "From due to written."),
        .duration("publish_blocked_duration", "From due to when window, socket and connection let the client send."),
        .duration("schedule_lag", "From the moment at which a client could send to its write: the generator's delay."),
    ]

    private static let receiving: [MetricHelp] = [
        .duration("subscribe_duration", "From SUBSCRIBE to SUBACK."),
        .duration("ping_duration", "From PINGREQ to PINGRESP."),
        .counter("received", "Messages or stanzas that clients received."),
        .duration("delivery_duration", "From the time at which a message was due to its arrival, by each receiver."),
        .counter("delivery_expected", "Messages that the server promised to deliver, once per receiver."),
        .counter("delivery_received", "First arrivals, also of messages that were not expected."),
        .counter("delivery_lost", "Messages that were expected and not received; final when the run has ended."),
        .counter("delivery_outstanding", "Deliveries that neither came nor were lost when the drain ended."),
        .counter("delivery_missing", "Messages to a matching subscription that did not arrive, excused or not."),
        .counter("delivery_duplicated", "Messages that arrived again."),
        .counter("delivery_overlap", "Further copies of a message for further matching filters of one client."),
        .counter("delivery_reordered", "Messages that arrived after a later one."),
        .counter("delivery_negative", "Messages that arrived before they were due, by clocks that differ."),
        .counter("delivery_gaps", "Missing message numbers, of subscribers without publishers in the run."),
    ]

    private static let requests: [MetricHelp] = [
        .duration("request_duration", "From the time at which a request was due to its answer."),
        .counter("requests_answered", "Requests that the subscribers answered."),
        .counter("requests_late", "Answers that came after the acknowledgement timeout."),
        .counter("requests_lost", "Acknowledged requests whose answer will not come."),
        .counter("requests_outstanding", "Acknowledged requests whose answer had not come when the drain ended."),
    ]

    private static let churn: [MetricHelp] = [
        .duration("subscription_churn_duration", "Time of a changed subscription, by leg."),
        .counter("subscription_churn_done", "Turns of changed subscriptions that completed."),
        .counter("subscription_churn_missed", "Turns that were not begun: the client was busy or not connected."),
        .counter("subscription_churn_failed", "Turns that were refused, timed out, or lost their connection."),
        .counter("subscription_churn_unfinished", "Turns that the end of the load cut off."),
    ]

    private static let store: [MetricHelp] = [
        .duration("store_commit_duration", "From handed to the message store to committed."),
        .counter("store_changes", "Committed changes of the message store."),
        .counter("store_messages", "Messages committed to the store before they were sent."),
        .counter("store_recorded", "Received QoS 2 messages, committed to the store before PUBREC."),
        .counter("store_restored", "Messages of an earlier run that the store held."),
        .counter("store_delivered", "Restored messages that the server acknowledged."),
        .counter("store_refused", "Restored messages that the server refused with a reason code."),
        .counter("store_dropped", "Restored messages that were dropped, because the server had no session."),
    ]

    private static let traffic: [MetricHelp] = [
        .counter("bytes_sent", unit: "bytes", "Bytes of packets sent, without TLS."),
        .counter("bytes_received", unit: "bytes", "Bytes of packets received, without TLS."),
        .counter("payload_bytes_sent", unit: "bytes", "Bytes of payloads sent."),
        .counter("payload_bytes_received", unit: "bytes", "Bytes of payloads received."),
        .counter("decode_packets", "Packets or stanzas decoded."),
        .counter("decode_bytes", unit: "bytes", "Bytes of decoded packets or stanzas."),
        .counter("reads", "Reads from sockets."),
        .counter("decode_time", unit: "seconds", "Time to decode all bytes, extrapolated from a sample each second."),
    ]

    private static let hosts: [MetricHelp] = [
        .duration("loop_lag", "Lateness of an event loop's wake-ups."),
        .gauge("generator_cpu", unit: "cores", "Share of a core that an event loop of the generator used."),
        .gauge("generator_memory_bytes", unit: "bytes", "Memory of the generator's process."),
        .gauge("host_cpu_idle", "Idle share of the host's CPU, without disk waits."),
        .gauge("host_cpu_pressure", "Share of time in which work waited for a CPU of the host."),
    ]

    private static let server: [MetricHelp] = [
        .gauge("server_cpu", unit: "cores", "CPU that a watched process of the server used, in cores."),
        .counter("server_cpu_time", unit: "seconds", "CPU time of a watched process of the server."),
        .gauge("server_thread_cpu", unit: "cores", "Share of a core that a thread of a watched process used."),
        .gauge("server_memory_bytes", unit: "bytes", "Resident memory of a watched process of the server."),
        .gauge(
            "server_memory_idle_bytes",
            unit: "bytes",
            "Resident memory of a watched process before the first client connected."
        ),
        .gauge("server_descriptors", "Open descriptors of a watched process of the server."),
        .gauge("server_cpu_per_message", unit: "seconds", "CPU time of the watched server per message, in and out."),
        .gauge(
            "server_memory_per_connection",
            unit: "bytes",
            "Growth of the watched server's memory per connected client."
        ),
        .gauge("server_metric", "A series of the server's own page of metrics."),
        .gauge("server_sys", "A number that the broker publishes below its topic for the system."),
    ]

    private static let xmpp: [MetricHelp] = [
        .counter("stanza_offered", "Stanzas that became due."),
        .counter("stanza_sent", "Stanzas of which the kernel took the first byte."),
        .counter("stanza_not_sent", "Stanzas that became due and were never sent."),
        .counter("stanza_failed", "Stanzas that were refused, timed out, or lost their connection."),
        .counter("stanza_excused", "Stanzas without an answer when the plan cut their connection."),
        .counter("stanza_outstanding", "Stanzas neither answered nor failed when the drain ended, sent or not."),
        .counter("stanza_confirmed", "Stanzas confirmed by the server's closing tag or by stream management."),
        .counter("stanza_answered", "Requests with a result."),
        .counter("stanza_refused", "Stanzas that came back as an error."),
        .duration("stanza_blocked_duration", "From due to the moment at which the client could send."),
        .duration("message_duration", "From a message's write to its arrival."),
        .duration("presence_duration", "From a presence's write to its arrival."),
        .duration("iq_duration", "From the time at which a request was due to its answer."),
        .duration("iq_service_duration", "From a request's write to its answer."),
        .duration("muc_fanout_duration", "From due to received by the first and the last occupant of a room."),
        .duration("presence_fanout_duration", "From due to received by the first and the last contact."),
        .counter("muc_fanout_unfinished", "Room messages that some occupant did not get."),
        .counter("presence_fanout_unfinished", "Presences that some contact did not get."),
        .duration("muc_join_duration", "From a presence to a room to entered."),
        .duration("presence_setup_duration", "From the roster request to subscribed with all contacts."),
        .duration("sm_ack_duration", "From a stanza's write to its acknowledgement by stream management."),
        .counter("stanza_acked", "Stanzas that stream management acknowledged."),
    ]

    private static let decoders: [MetricHelp] = [
        .gauge("decode_packet_time", unit: "seconds", "CPU time to decode one packet."),
        .duration("decode_thousand_duration", "Time to decode 1,000 packets, one sample a round."),
        .gauge("decode_packet_allocated_bytes", unit: "bytes", "Bytes allocated to decode one packet."),
    ]
}
