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

    enum Entry {
        case sent(message: Int)
        case publisherLeft(client: Int, isConfirmed: Bool)
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

    static func < (left: Feature, right: Feature) -> Bool { left.rawValue < right.rawValue }
}
