/// The answers of a run in short, derived from its record and time line.
///
/// A value that the run does not know is absent.
package struct FindingsRecord: Codable, Hashable, Sendable {
    /// The result in one sentence: the first thing that broke, or that nothing broke.
    package var sentence: String
    /// The number of the event that the sentence is about.
    package var evidence: Int?
    /// The events in the order of time.
    package var events: [FindingEvent]
    /// The second of the run from which on rates and latencies stayed level.
    package var steadySecond: Int?
    /// The second of the run from which on, to the end of the drain, the server answered and delivered nothing due.
    package var silentSecond: Int?
    package var clientsPlanned: Int?
    /// The number of clients that came up at first.
    package var clientsUp: Int?
    /// The time from the first connect to the moment at which every planned client was up.
    package var allUpSeconds: Double?
    /// Sent at QoS 1 and 2, and not acknowledged yet: the highest number at the end of an interval.
    package var peakInFlight: FindingPoint?
    /// The slope of what was offered and not acknowledged, in messages per second of the measured phase.
    package var backlogSlope: Double?
    /// The slope of a backlog that grew until the end of the load; absent for a backlog that is level or gone.
    package var backlogGrowth: Double?
    /// From the end of an overload, a stage with a higher rate, until response times were as before it.
    package var recoverySeconds: Double?
    /// True if the server was not back when the load ended, and its response times did not fall; else absent.
    package var isMetastable: Bool?
    /// The interval with the highest p99.
    package var worstSecond: FindingPoint?
    /// The longest span of the load without an acknowledgement or a delivery; `value` is its length in seconds.
    package var longestSilence: FindingPoint?
    /// The share of measured intervals in which the latency thresholds held.
    package var withinObjective: Double?
    /// The most frequent error.
    package var topError: String?
    /// How many times the load the generator could have offered, from its busiest loop.
    package var headroom: Double?
    /// The largest error of the clocks of several hosts, in seconds.
    package var clockErrorSeconds: Double?

    /// The sentence, or its begin, of a run in which nothing broke.
    package static let calm = "nothing broke"
    package var isCalm: Bool { self.evidence == nil && self.sentence.lowercased().hasPrefix(Self.calm) }

    package init(sentence: String, evidence: Int? = nil, events: [FindingEvent] = []) {
        self.sentence = sentence
        self.evidence = evidence
        self.events = events
    }

    private enum CodingKeys: String, CodingKey {
        case sentence, evidence, events
        case steadySecond = "steady_second"
        case silentSecond = "silent_second"
        case clientsPlanned = "clients_planned"
        case clientsUp = "clients_up"
        case allUpSeconds = "all_up_seconds"
        case peakInFlight = "peak_in_flight"
        case backlogSlope = "backlog_slope"
        case backlogGrowth = "backlog_growth"
        case recoverySeconds = "recovery_seconds"
        case isMetastable = "metastable"
        case worstSecond = "worst_second"
        case longestSilence = "longest_silence"
        case withinObjective = "within_objective"
        case topError = "top_error"
        case headroom
        case clockErrorSeconds = "clock_error_seconds"
    }
}

/// A value and the interval of the time line that it was seen in.
package struct FindingPoint: Codable, Hashable, Sendable {
    /// Full seconds from the start of the run.
    package var second: Int
    package var value: Double
    /// The series, such as `publish_ack_duration qos=1`; absent if the value is of all series.
    package var metric: String?
    package var stage: String?
    /// True if the value is only known to be at least so much; else absent.
    package var bound: Bool?

    package init(second: Int, value: Double, metric: String? = nil, stage: String? = nil) {
        self.second = second
        self.value = value
        self.metric = metric
        self.stage = stage
    }
}

/// A mark on the time line.
package struct FindingEvent: Codable, Hashable, Sendable {
    package enum Kind: String, Codable, Sendable {
        case error
        /// Many clients lost their connections, or left by plan.
        case storm
        /// Nothing was acknowledged or delivered although messages were in flight.
        case stall
        /// A threshold of a latency or rate was first broken.
        case threshold
        /// The generator was at its own limit.
        case generator
        /// A thread of a watched server filled a core, and the generator did not.
        case server
        /// A latency or a rate left its level.
        case change
    }

    /// The number from 1, in the order of time.
    package var number: Int
    package var kind: Kind
    /// Full seconds from the start of the run.
    package var second: Int
    /// The seconds that it lasted; absent for a moment.
    package var seconds: Double?
    package var stage: String?
    package var text: String

    package init(number: Int, kind: Kind, second: Int, seconds: Double? = nil, stage: String? = nil, text: String) {
        self.number = number
        self.kind = kind
        self.second = second
        self.seconds = seconds
        self.stage = stage
        self.text = text
    }
}
