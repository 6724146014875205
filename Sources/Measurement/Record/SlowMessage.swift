/// One of the slowest messages of a run; times are seconds from the start of the run.
///
/// A time that the run does not know is absent.
package struct SlowMessage: Codable, Hashable, Sendable {
    /// The metric that the message is slow in: `publish_ack_duration`, `delivery_duration`, `iq_duration`.
    package var metric: String
    /// The time from due to the answer or the arrival.
    package var seconds: Double
    package var due: Double
    package var written: Double?
    package var acknowledged: Double?
    package var received: Double?
    /// The sender; absent if it is no client of this run.
    package var client: String?
    /// The receiver of a delivery.
    package var receiver: String?
    /// The sender's group, in a run of several; the receiver's if the sender is not known.
    package var group: String?
    package var stream: String?
    package var qos: Int?
    /// How late the event loop was for its next timer when it recorded the message, in seconds; absent if it was not.
    package var loopLag: Double?

    package init(metric: String, seconds: Double, due: Double, client: String?) {
        self.metric = metric
        self.seconds = seconds
        self.due = due
        self.client = client
    }

    /// Whether it comes before the other in a list; equally slow messages come in the order of their due times.
    package func isBefore(_ other: SlowMessage) -> Bool {
        if self.seconds != other.seconds { return self.seconds > other.seconds }
        if self.due != other.due { return self.due < other.due }
        let (one, two) = (self.client ?? "", other.client ?? "")
        return one != two ? one < two : self.receiver ?? "" < other.receiver ?? ""
    }

    /// The same message in a run that began so many seconds earlier.
    package func later(by seconds: Double) -> SlowMessage {
        var message = self
        message.due += seconds
        message.written = self.written.map { $0 + seconds }
        message.acknowledged = self.acknowledged.map { $0 + seconds }
        message.received = self.received.map { $0 + seconds }
        return message
    }

    private enum CodingKeys: String, CodingKey {
        case metric, seconds, due, written, acknowledged, received, client, receiver, group, stream, qos
        case loopLag = "loop_lag"
    }
}

extension [SlowMessage] {
    /// The slowest ``RunRecord/slowestLimit`` of them, the slowest first.
    package var slowest: [SlowMessage] { Array(self.sorted { $0.isBefore($1) }.prefix(RunRecord.slowestLimit)) }
}
