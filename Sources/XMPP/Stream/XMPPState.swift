package import NIOCore

/// How far a stream has come.
package enum XMPPState: String, Hashable, Sendable, CaseIterable {
    case disconnected
    /// The stream header is sent, or SASL2 has succeeded; the server's header and features are awaited.
    case opening
    /// The features have arrived, and a step without a state of its own is in progress.
    case negotiating
    /// `<starttls/>` is out.
    case startTLS1 = "requesting TLS"
    /// The TLS handshake is on.
    case startTLS2 = "TLS handshake"
    /// The server has accepted the step, and a new stream header is due.
    case postNegotiation = "restarting"
    case registering
    case auth = "authenticating"
    case binding
    case startSession = "starting the session"
    /// `<enable/>` or `<resume/>` is out.
    case managing = "enabling stream management"
    case connected
    /// The closing tag is out, and the server's is awaited.
    case closing

    /// The name that people see.
    package var words: String { self.rawValue }
}

/// A part of the time between a connection and a stream that is ready.
///
/// The parts do not overlap.
package enum XMPPPhase: String, Hashable, Sendable, CaseIterable {
    /// The time from each stream header, and from the success of SASL2, to the server's features.
    case stream
    /// The time from `<starttls/>` to the end of the handshake.
    case tls
    case register
    /// The time from `<auth/>` or `<authenticate/>` to `<success/>`.
    case sasl
    /// Resource, session and stream management, as far as SASL2 has not dealt with them.
    case bind
}

/// How long each phase took; `nil` for one that there was not.
package struct XMPPPhases: Hashable, Sendable {
    package private(set) var stream: TimeAmount?
    package private(set) var tls: TimeAmount?
    package private(set) var register: TimeAmount?
    package private(set) var sasl: TimeAmount?
    package private(set) var bind: TimeAmount?

    package subscript(phase: XMPPPhase) -> TimeAmount? {
        switch phase {
        case .stream: self.stream
        case .tls: self.tls
        case .register: self.register
        case .sasl: self.sasl
        case .bind: self.bind
        }
    }

    mutating func add(_ time: TimeAmount, to phase: XMPPPhase) {
        let sum = (self[phase] ?? .zero) + time
        switch phase {
        case .stream: self.stream = sum
        case .tls: self.tls = sum
        case .register: self.register = sum
        case .sasl: self.sasl = sum
        case .bind: self.bind = sum
        }
    }

    /// The total without TLS, whose phase is reported separately.
    package var session: TimeAmount {
        var sum = TimeAmount.zero
        for phase in XMPPPhase.allCases where phase != .tls { sum = sum + (self[phase] ?? .zero) }
        return sum
    }
}

/// When a space has to show that the connection is still there (RFC 6120 §4.6.1).
///
/// It looks four times in an interval, and so is late by a quarter at most; a look that can find nothing is left out.
struct KeepAlive {
    private static let shortest = TimeAmount.seconds(20)

    /// Zero: never.
    private var interval = TimeAmount.zero
    private var began = NIODeadline.uptimeNanoseconds(0)
    private(set) var lastActivity = NIODeadline.uptimeNanoseconds(0)

    mutating func begin(_ interval: TimeAmount, now: NIODeadline) {
        self.interval = interval > .zero ? max(interval, Self.shortest) : .zero
        self.began = now
        self.lastActivity = now
    }

    /// Bytes have gone one way or the other.
    mutating func noteActivity(now: NIODeadline) { self.lastActivity = now }

    /// The first look at which the silence is long enough.
    var deadline: NIODeadline? {
        guard self.interval > .zero else { return nil }
        let quarter = self.interval.nanoseconds / 4
        let silent = (self.lastActivity + self.interval - self.began).nanoseconds
        return self.began + .nanoseconds((silent + quarter - 1) / quarter * quarter)
    }

    func isDue(now: NIODeadline) -> Bool {
        guard self.interval > .zero else { return false }
        return now - self.lastActivity >= self.interval
    }
}
