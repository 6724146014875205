import NIOCore

/// One connect to a domain that is not done.
final class ServiceAttempt {
    let client: Int
    let deadline: NIODeadline
    let begun: NIODeadline
    /// Tries one target until the time given.
    let start: (ServiceAttempt, ServiceTarget, NIODeadline) -> Void
    let done: (Result<ConnectedChannel, ConnectError>) -> Void
    var targets: ArraySlice<ServiceTarget> = []
    /// What was spent before the target at hand.
    var spent = ConnectPhases()

    init(
        client: Int,
        deadline: NIODeadline,
        begun: NIODeadline,
        start: @escaping (ServiceAttempt, ServiceTarget, NIODeadline) -> Void,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        self.client = client
        self.deadline = deadline
        self.begun = begun
        self.start = start
        self.done = done
    }
}

/// Both questions for a domain's services, put once for all who wait; an answer that has come is kept until both have.
final class ServiceRenewal {
    var standard: ServiceAnswer?
    var direct: ServiceAnswer?

    var answers: ServiceAnswers? {
        guard let standard, let direct else { return nil }
        return ServiceAnswers(standard: standard, direct: direct)
    }
}

struct ServiceAnswers {
    let standard: ServiceAnswer
    let direct: ServiceAnswer
}

/// A generator of any type where one type is wanted.
struct OpenedGenerator: RandomNumberGenerator {
    var inner: any RandomNumberGenerator

    init(_ inner: any RandomNumberGenerator) { self.inner = inner }

    mutating func next() -> UInt64 { self.inner.next() }
}

extension ConnectPhases {
    /// What two steps of one connect took together.
    func followed(by next: ConnectPhases) -> ConnectPhases {
        func sum(_ left: TimeAmount?, _ right: TimeAmount?) -> TimeAmount? {
            guard let left, let right else { return left ?? right }
            return left + right
        }
        return ConnectPhases(
            dns: sum(self.dns, next.dns),
            tcp: sum(self.tcp, next.tcp),
            tls: sum(self.tls, next.tls),
            webSocket: sum(self.webSocket, next.webSocket)
        )
    }
}
