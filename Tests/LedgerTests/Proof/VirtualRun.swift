import Ledger

/// What clients and a virtual server do in a run, in one order.
struct VirtualRun {
    typealias Target = ProofPlan.Target

    struct Message {
        var client: Int
        var stream: Int
        var topic: Int
        var qos: UInt8
        /// Its place in the log.
        var sent: Int
        var isUnsent = false
        /// Sent on a connection that the run itself ended, and without an answer.
        var isOutstanding = false
        var isResent = false
        /// Acknowledged, or confirmed at the end of its connection.
        var isKnown = false
        /// Acknowledged with 0x10.
        var isAdmitted = false
    }

    struct Arrival {
        var message: Int
        var client: Int
        var target: Target
        /// Of the delivery.
        var qos: UInt8
        var isRedelivery: Bool
        /// The client has had another connection in this session.
        var isResumed: Bool
    }

    /// What a publisher's event loop is told about a target, or about one of the members of a share group.
    struct Notice: Hashable {
        var target: Target
        var visit: UInt64
        var event: PresenceMark.Event
    }

    /// A message that was due, and never got a number.
    struct NeverSent {
        var client: Int
        var stream: Int
        var topic: Int
    }

    /// How the run ended.
    struct Ending {
        /// Nanoseconds without a message or a publish before the first probe; `nil` without a probe.
        var quiet: Int64?
        /// The longest delivery, in nanoseconds.
        var longest: Int64 = 0
        /// Clients whose connection had no answer to its probe, or was gone.
        var unproved: Set<Int> = []
    }

    enum Entry {
        case sent(message: Int)
        case publisherLeft(client: Int, PublisherLedger.ConnectionFate)
        /// 0 times: a fault of the server; more than once: another.
        case arrived(Arrival, times: Int)
        case left(client: Int, visit: Int)
        case noticed(loop: Int, Notice)
    }

    let plan: ProofPlan
    var messages: [Message] = []
    var log: [Entry] = []
    /// Clients that are away at the end, with their last visits.
    var absent: [Int: Int] = [:]
    /// Share groups without members at the end, with the last times when they had some.
    var empty: [Int: Int] = [:]
    var neverSent: [NeverSent] = []
    var ending = Ending()
    var features: Set<Feature> = []

    /// The visit of a client that is a member of a share group.
    static func memberVisit(_ client: Int, _ visit: Int) -> UInt64 {
        PresenceMark.memberVisits * UInt64(client + 1) + UInt64(visit)
    }
}

/// What a plan exercises: the pairs of these are counted.
enum Feature: String, CaseIterable, Comparable {
    case oneCopy = "one copy for overlapping filters"
    case copyPerFilter = "a copy per filter"
    case clusterDelay = "cluster delay"
    case cleanSession = "clean session ended"
    case keptSession = "kept session resumed"
    case sessionLost = "session lost"
    case sessionExpired = "session expired"
    case messageExpired = "message expired"
    case noLocal = "No Local"
    case retainAsPublished = "retain as published"
    case mixedQoS = "mixed QoS"
    case downgraded = "downgraded grant"
    case shareChurn = "share group members leave"
    case redelivery = "redelivery"
    case resend = "publisher resends"
    case severalTopics = "several topics a stream"
    case neverSent = "publish never sent"
    case outstanding = "publish without an answer"
    case unproved = "receiver without an answer"
    case quiet = "quiet end"

    static func < (left: Feature, right: Feature) -> Bool { left.rawValue < right.rawValue }
}

extension VirtualRun {
    mutating func noteFeatures() {
        for case .arrived(let arrival, _) in self.log {
            let facts = self.messages[arrival.message]
            let receiver = self.plan.group(of: arrival.client)
            guard let reach = self.plan.reach[facts.topic].first(where: { $0.target == arrival.target }) else {
                continue
            }
            let filters = self.plan.filters(of: reach, from: facts.client)
            if filters.count > 1 { self.features.insert(receiver.copiesPerFilter ? .copyPerFilter : .oneCopy) }
            if filters.count < reach.filters.count { self.features.insert(.noLocal) }
            if self.plan.grant(of: arrival.target) < min(facts.qos, filters.map(\.qos).max() ?? 0) {
                self.features.insert(.downgraded)
            }
            let stream = self.plan.group(of: facts.client).streams[facts.stream]
            if stream.isRetained, receiver.retainsAsPublished { self.features.insert(.retainAsPublished) }
            if Set(stream.topics).count > 1 { self.features.insert(.severalTopics) }
        }
        for facts in self.messages {
            for reach in self.plan.reach[facts.topic] where self.plan.filters(of: reach, from: facts.client).isEmpty {
                self.features.insert(.noLocal)
            }
        }
        if Set(self.messages.map(\.qos)).count == 3 { self.features.insert(.mixedQoS) }
        if self.plan.clusterDelay > 0 { self.features.insert(.clusterDelay) }
        if !self.neverSent.isEmpty { self.features.insert(.neverSent) }
        if self.messages.contains(where: \.isOutstanding) { self.features.insert(.outstanding) }
        if !self.ending.unproved.isEmpty { self.features.insert(.unproved) }
        if let quiet = self.ending.quiet, quiet >= max(1_000_000_000, self.ending.longest) {
            self.features.insert(.quiet)
        }
    }
}
