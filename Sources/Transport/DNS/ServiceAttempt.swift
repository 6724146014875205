import NIOCore

/// One connect to a domain in progress; it observes the connects to the domain's targets.
final class ServiceAttempt: ConnectObserver {
    let client: Int
    let deadline: NIODeadline
    let begun: NIODeadline
    private let place: Int
    private let observer: any ConnectObserver
    private weak var connector: ServiceConnector?
    var targets: ArraySlice<ServiceTarget> = []
    /// Whether the current target has direct TLS.
    var isDirectTLS = false
    /// The time spent before the current target.
    var spent = ConnectPhases()

    init(
        client: Int,
        place: Int,
        deadline: NIODeadline,
        begun: NIODeadline,
        for observer: any ConnectObserver,
        connector: ServiceConnector
    ) {
        self.client = client
        self.place = place
        self.deadline = deadline
        self.begun = begun
        self.observer = observer
        self.connector = connector
    }

    func makeHandler(_: Int) -> any ChannelHandler { self.observer.makeHandler(self.place) }

    func connectEnded(_: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline) {
        self.connector?.tried(self, result)
    }

    func end(_ result: Result<ConnectedChannel, ConnectError>) {
        self.observer.connectEnded(self.place, result, deadline: self.deadline)
    }
}

/// The two queries for a domain's services, sent once for all waiting connects.
///
/// The first answer is kept until the second has arrived.
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

/// Wraps a generator of any type in one concrete type.
struct OpenedGenerator: RandomNumberGenerator {
    var inner: any RandomNumberGenerator

    init(_ inner: any RandomNumberGenerator) { self.inner = inner }

    mutating func next() -> UInt64 { self.inner.next() }
}

extension ConnectPhases {
    /// The sum of two parts of one connect.
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
