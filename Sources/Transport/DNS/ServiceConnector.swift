package import LoopContext
package import NIOCore

/// The services of a domain to use.
package enum ServiceKinds: String, Hashable, Sendable {
    /// STARTTLS, or no TLS.
    case standard
    /// TLS from the first byte.
    case direct
    /// Both, in the order of the domain's priorities.
    case both

    var hasStandard: Bool { self != .direct }
    var hasDirect: Bool { self != .standard }
}

/// Connects the clients of one event loop to the hosts that serve a domain's XMPP.
///
/// The domain's SRV records are looked up once for all waiting connects, and cached for their time to live. Each
/// connect draws its own order of targets and tries them in turn before its deadline. Each target gets an equal part of
/// the time left, so that one without an answer does not use up all of it. Certificates are checked for the domain
/// (``TLSSettings/xmppDomain``), never for a target.
///
/// Spec: RFC 6120 §3.2, XEP-0368.
package final class ServiceConnector: ClientConnector {
    /// The layers of a connection, for STARTTLS and for direct TLS.
    package struct Layers {
        package var standard: [any ConnectLayer]
        /// Includes TLS, with ALPN `xmpp-client`.
        package var direct: [any ConnectLayer]

        package init(standard: [any ConnectLayer] = [], direct: [any ConnectLayer] = []) {
            self.standard = standard
            self.direct = direct
        }
    }

    private let context: LoopContext
    private let domain: String
    private let kinds: ServiceKinds
    /// `nil` if the domain is an address or too long for the DNS; then there are no records.
    private let standardQuestion: DNSQuestion?
    private let directQuestion: DNSQuestion?
    private let isName: Bool
    private let dns: DNSClient
    private let layers: Layers
    private let hasDirectTLS: Bool
    private let connector: TCPConnector
    private var generator: any RandomNumberGenerator
    private var owner: TimerOwner?
    private var timer: TimerID?

    private var waiting = CircularBuffer<ServiceAttempt>()
    /// The queries that they wait for.
    private var renewal: ServiceRenewal?
    /// The time that the timer is set to.
    private var armed: NIODeadline?

    /// - Parameters:
    ///   - context: the context of the event loop.
    ///   - domain: the domain of the JIDs.
    ///   - kinds: the services to use; with `both`, direct TLS is skipped if `layers` have no TLS.
    ///   - dns: resolves the domain's records.
    ///   - sources: addresses to connect from.
    ///   - layers: the layers between TCP and the client's handler.
    ///   - racing: the addresses of one target compete; `nil` tries them in turn. Targets are always tried in turn,
    ///     because their order is the domain's (RFC 2782).
    ///   - resolver: resolves the targets' addresses: the DNS client itself, or the system.
    ///   - generator: draws among targets of the same priority.
    package init(
        context: LoopContext,
        domain: String,
        kinds: ServiceKinds,
        dns: DNSClient,
        sources: SourceAddresses = .any,
        layers: Layers = Layers(),
        racing: AddressRacing? = nil,
        resolver: (any AddressResolver)? = nil,
        generator: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.context = context
        let isAddress = (try? SocketAddress(ipAddress: domain, port: 0)) != nil
        let name = isAddress ? nil : DomainName.ascii(domain)
        self.isName = name != nil
        self.domain = name ?? domain
        self.hasDirectTLS = layers.direct.contains { $0.phase == .tls }
        self.kinds = kinds == .both && !self.hasDirectTLS ? .standard : kinds
        self.standardQuestion = name.flatMap { DomainName.ascii("_xmpp-client._tcp.\($0)") }
            .map { DNSQuestion($0, .srv) }
        self.directQuestion = name.flatMap { DomainName.ascii("_xmpps-client._tcp.\($0)") }
            .map { DNSQuestion($0, .srv) }
        self.dns = dns
        self.layers = layers
        self.generator = generator
        self.connector = TCPConnector(
            context: context,
            targets: [Target(host: self.domain, port: ServiceTargets.standardPort)],
            sources: sources,
            racing: racing,
            resolver: resolver
        )
        let owner = context.timers.addOwner { [weak self] _, _ in self?.expire() }
        self.owner = owner
        self.timer = context.timers.register(owner, tag: 0)
    }

    /// Connects a client to one of the domain's targets.
    ///
    /// The channel has the target, and whether TLS is up already (``ConnectedChannel/isDirectTLS``).
    package func connect(client: Int, place: Int, turn: Int, deadline: NIODeadline, for observer: some ConnectObserver)
    {
        let now = self.context.refresh()
        let attempt = ServiceAttempt(
            client: client,
            place: place,
            deadline: deadline,
            begun: now,
            for: observer,
            connector: self
        )
        guard self.isName else {
            attempt.targets = [Self.literal(self.domain, self.kinds)]
            return self.tryNext(attempt)
        }
        if let answers = self.answers(now) {
            self.begin(attempt, answers)
        } else {
            self.waiting.append(attempt)
            self.arm(deadline)
        }
    }

    package func cancelAll() {
        let waiting = self.waiting
        self.waiting = []
        self.disarm()
        for attempt in waiting { self.fail(attempt, .cancelled) }
        self.connector.cancelAll()
    }

    /// Cancels all connects in progress and returns the timers to the loop: no further connect is possible.
    package func retire() {
        self.cancelAll()
        self.connector.retire()
        if let timer = self.timer.take() { self.context.timers.unregister(timer) }
        if let owner = self.owner.take() { self.context.timers.removeOwner(owner) }
    }

    // MARK: Records

    /// Both answers if they are cached; otherwise they are queried once, and passed to all waiting connects.
    private func answers(_ now: NIODeadline) -> ServiceAnswers? {
        guard self.renewal == nil else { return nil }
        let renewal = ServiceRenewal()
        renewal.standard =
            self.kinds.hasStandard ? self.ask(self.standardQuestion, now, renewal, \.standard) : .notWanted
        renewal.direct = self.kinds.hasDirect ? self.ask(self.directQuestion, now, renewal, \.direct) : .notWanted
        if let answers = renewal.answers { return answers }
        self.renewal = renewal
        return nil
    }

    private func ask(
        _ question: DNSQuestion?,
        _ now: NIODeadline,
        _ renewal: ServiceRenewal,
        _ place: ReferenceWritableKeyPath<ServiceRenewal, ServiceAnswer?>
    ) -> ServiceAnswer? {
        guard let question else { return .nothing }
        let known = self.dns.ask(question, now: now) { [weak self] outcome in
            renewal[keyPath: place] = ServiceAnswer(outcome)
            self?.arrived(renewal)
        }
        return known.map(ServiceAnswer.init)
    }

    /// An observer of a failed connect may connect again or cancel all connects before this returns.
    private func arrived(_ renewal: ServiceRenewal) {
        guard self.renewal === renewal, let answers = renewal.answers else { return }
        self.renewal = nil
        let now = self.context.refresh()
        for _ in 0..<self.waiting.count {
            guard let attempt = self.waiting.popFirst() else { break }
            attempt.spent.dns = now - attempt.begun
            self.begin(attempt, answers)
        }
        if self.waiting.isEmpty { self.disarm() }
    }

    private func begin(_ attempt: ServiceAttempt, _ answers: ServiceAnswers) {
        do throws(LookupFailure) {
            attempt.targets = try self.draw(answers.standard, answers.direct)[...]
            self.tryNext(attempt)
        } catch {
            self.fail(attempt, .resolve(error.text))
        }
    }

    private func draw(_ standard: ServiceAnswer, _ direct: ServiceAnswer) throws(LookupFailure) -> [ServiceTarget] {
        var generator = OpenedGenerator(self.generator)
        defer { self.generator = generator.inner }
        return try ServiceTargets.order(domain: self.domain, standard: standard, direct: direct, using: &generator)
    }

    private static func literal(_ domain: String, _ kinds: ServiceKinds) -> ServiceTarget {
        let isBracketed = domain.hasPrefix("[") && domain.hasSuffix("]")
        let host = isBracketed ? String(domain.dropFirst().dropLast()) : domain
        let port = kinds == .direct ? ServiceTargets.directPort : ServiceTargets.standardPort
        return ServiceTarget(target: Target(host: host, port: port), isDirectTLS: kinds == .direct)
    }

    // MARK: Targets

    private func tryNext(_ attempt: ServiceAttempt) {
        let left = attempt.targets.count
        guard let target = attempt.targets.popFirst() else { preconditionFailure("looked at before") }
        attempt.isDirectTLS = target.isDirectTLS
        let now = self.context.refresh()
        let share = (attempt.deadline - now).nanoseconds / Int64(left)
        self.connector.connect(
            client: attempt.client,
            to: target.target,
            layers: target.isDirectTLS ? self.layers.direct : self.layers.standard,
            deadline: left == 1 ? attempt.deadline : now + .nanoseconds(max(share, 0)),
            for: attempt
        )
    }

    func tried(_ attempt: ServiceAttempt, _ result: Result<ConnectedChannel, ConnectError>) {
        switch result {
        case .success(var connected):
            connected.isDirectTLS = attempt.isDirectTLS && self.hasDirectTLS
            connected.phases = attempt.spent.followed(by: connected.phases)
            attempt.end(.success(connected))
        case .failure(let error):
            let isLast = attempt.targets.isEmpty || error.reason == .cancelled || error.reason == .descriptorsExhausted
            let phases = attempt.spent.followed(by: error.phases)
            guard !isLast, self.context.refresh() < attempt.deadline else {
                attempt.end(.failure(ConnectError(error.reason, target: error.target, phases: phases)))
                return
            }
            attempt.spent = phases
            self.tryNext(attempt)
        }
    }

    private func fail(_ attempt: ServiceAttempt, _ reason: ConnectError.Reason) {
        let target = Target(host: self.domain, port: ServiceTargets.standardPort)
        attempt.end(.failure(ConnectError(reason, target: target, phases: attempt.spent)))
    }

    // MARK: Deadline of waiting connects

    private func arm(_ deadline: NIODeadline) {
        guard let timer, deadline < self.armed ?? .distantFuture else { return }
        self.armed = deadline
        self.context.timers.schedule(timer, at: deadline)
    }

    private func disarm() {
        self.armed = nil
        if let timer { self.context.timers.cancel(timer) }
    }

    private func expire() {
        self.armed = nil
        let now = self.context.refresh()
        let late = self.waiting.filter { $0.deadline <= now }
        self.waiting.removeAll { $0.deadline <= now }
        if let next = self.waiting.lazy.map(\.deadline).min() { self.arm(next) }
        for attempt in late { self.fail(attempt, .timedOut(.dns)) }
    }
}
