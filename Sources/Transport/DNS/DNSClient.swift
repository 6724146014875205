package import NIOCore

/// Resolves names for one event loop.
package protocol AddressResolver: AnyObject {
    /// Resolves the addresses of `host`.
    ///
    /// - Parameters:
    ///   - host: a name.
    ///   - preference: the families that the caller uses; the answer may have addresses of others.
    ///   - now: the current time.
    ///   - completion: called later, on the loop, if this returns `nil`; otherwise never.
    /// - Returns: the answer, with port 0, if it is cached.
    func resolve(
        _ host: String,
        _ preference: AddressPreference,
        now: NIODeadline,
        completion: @escaping (Result<[SocketAddress], LookupFailure>) -> Void
    ) -> Result<[SocketAddress], LookupFailure>?
}

extension NameResolver: AddressResolver {
    /// The system's resolver asks for both families, and its answer has both.
    package func resolve(
        _ host: String,
        _ preference: AddressPreference,
        now: NIODeadline,
        completion: @escaping (Answer) -> Void
    ) -> Answer? {
        self.resolve(host, now: now, completion: completion)
    }
}

/// A caching DNS client for one event loop: one query serves all waiting callers, and expired answers are queried
/// again.
///
/// Each query has its own socket, and thus an unpredictable port, and an unpredictable id (RFC 5452 §9.2). Answers are
/// cached for their time to live, failures for one second.
package final class DNSClient {
    private enum Entry {
        case pending(Waiting<DNSOutcome>)
        case known(DNSOutcome, until: NIODeadline)
    }

    /// Cached names at most; beyond it expired ones are removed first, then all.
    private static let capacity = 4_096

    let eventLoop: any EventLoop
    private let servers: [SocketAddress]
    private let names: [String]
    private var entries: [DNSQuestion: Entry] = [:]
    /// Queries sent to servers, for the audit.
    package private(set) var questions = 0

    /// - Parameters:
    ///   - eventLoop: the loop on which everything runs.
    ///   - servers: recursive name servers, at least one, in the order to use them.
    package init(eventLoop: any EventLoop, servers: [SocketAddress]) {
        precondition(!servers.isEmpty, "a client of the DNS has a server")
        self.eventLoop = eventLoop
        self.servers = servers
        self.names = servers.map { "\($0.ipAddress ?? "?"):\($0.port ?? 0)" }
    }

    /// Queries a record.
    ///
    /// - Parameters:
    ///   - question: the question; its name is a host name.
    ///   - now: the current time.
    ///   - completion: called later, on the loop, if this returns `nil`; otherwise never.
    /// - Returns: the outcome, if it is cached.
    package func ask(
        _ question: DNSQuestion,
        now: NIODeadline,
        completion: @escaping (DNSOutcome) -> Void
    ) -> DNSOutcome? {
        switch self.entries[question] {
        case .known(let outcome, let until) where now < until: return outcome
        case .pending(let waiting):
            waiting.completions.append(completion)
            return nil
        case .known, nil:
            self.makeRoom(now)
            self.entries[question] = .pending(Waiting(completion))
            self.questions += 1
            let lookup = DNSLookup(question, servers: self.servers, names: self.names, eventLoop: self.eventLoop)
            lookup.begin { outcome in self.finish(question, outcome) }
            return nil
        }
    }

    private func finish(_ question: DNSQuestion, _ outcome: DNSOutcome) {
        guard case .pending(let waiting)? = self.entries[question] else { return }
        // At least one second, so that ten thousand clients that connect at once cause one query.
        let seconds: Int64 =
            switch outcome {
            case .records(_, let seconds), .nothing(let seconds): max(Int64(seconds), 1)
            case .failed: 1
            }
        self.entries[question] = .known(outcome, until: self.eventLoop.now + .seconds(seconds))
        for completion in waiting.completions { completion(outcome) }
    }

    private func makeRoom(_ now: NIODeadline) {
        guard self.entries.count >= Self.capacity else { return }
        func isWanted(_ entry: Entry, stillValid: Bool) -> Bool {
            switch entry {
            case .pending: true
            case .known(_, let until): stillValid && now < until
            }
        }
        self.entries = self.entries.filter { isWanted($0.value, stillValid: true) }
        if self.entries.count >= Self.capacity {
            self.entries = self.entries.filter { isWanted($0.value, stillValid: false) }
        }
    }
}

extension DNSClient: AddressResolver {
    /// Queries the families that are used, together; the answer has IPv4 first.
    ///
    /// Once one family has addresses, the other has 50 ms left (RFC 8305 §3), because some resolvers never answer for
    /// IPv6. `localhost` names (RFC 6761 §6.3) are resolved without a query.
    package func resolve(
        _ host: String,
        _ preference: AddressPreference,
        now: NIODeadline,
        completion: @escaping (Result<[SocketAddress], LookupFailure>) -> Void
    ) -> Result<[SocketAddress], LookupFailure>? {
        guard let name = DomainName.ascii(host) else { return .failure(LookupFailure("'\(host)' is no host name")) }
        if name == "localhost" || name.hasSuffix(".localhost") { return .success(Self.loopback) }
        let both = DNSAddresses(self.eventLoop, completion)
        // A family that is not used has no addresses.
        (both.first, both.second) = (.nothing(timeToLive: 0), .nothing(timeToLive: 0))
        if preference.admits(.inet) {
            both.first = self.ask(DNSQuestion(name, .a), now: now) { outcome in
                both.first = outcome
                both.tell()
            }
        }
        if preference.admits(.inet6) {
            both.second = self.ask(DNSQuestion(name, .aaaa), now: now) { outcome in
                both.second = outcome
                both.tell()
            }
        }
        if let answer = both.answer { return answer }
        both.limit()
        return nil
    }

    private static let loopback = ["127.0.0.1", "::1"].compactMap { try? SocketAddress(ipAddress: $0, port: 0) }
}

/// The answers for a name's two address families.
private final class DNSAddresses {
    static let patience = TimeAmount.milliseconds(50)

    var first: DNSOutcome?
    var second: DNSOutcome?
    private let eventLoop: any EventLoop
    private var completion: ((Result<[SocketAddress], LookupFailure>) -> Void)?
    private var timer: Scheduled<Void>?

    init(_ eventLoop: any EventLoop, _ completion: @escaping (Result<[SocketAddress], LookupFailure>) -> Void) {
        self.eventLoop = eventLoop
        self.completion = completion
    }

    /// The merged answer, once both families have answered.
    var answer: Result<[SocketAddress], LookupFailure>? {
        guard let first, let second else { return nil }
        return Self.joined([first, second])
    }

    private static func joined(_ outcomes: [DNSOutcome]) -> Result<[SocketAddress], LookupFailure> {
        var addresses: [SocketAddress] = []
        var failure: LookupFailure?
        for outcome in outcomes {
            switch outcome {
            case .records(let records, _): addresses += records.compactMap(\.socketAddress)
            case .nothing: break
            case .failed(let why): failure = why
            }
        }
        guard addresses.isEmpty else { return .success(addresses) }
        return .failure(failure ?? LookupFailure("no address"))
    }

    func tell() {
        guard let answer else { return self.limit() }
        self.finish(answer)
    }

    /// Ends the wait if one family has addresses and the other has not answered.
    func limit() {
        guard self.timer == nil, let outcome = self.first ?? self.second else { return }
        let half = Self.joined([outcome])
        guard case .success = half else { return }
        self.timer = self.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { self.finish(half) }
    }

    private func finish(_ answer: Result<[SocketAddress], LookupFailure>) {
        self.timer?.cancel()
        guard let completion = self.completion.take() else { return }
        completion(answer)
    }
}

extension DNSRecord {
    fileprivate var socketAddress: SocketAddress? {
        guard case .address(let bytes) = self.content else { return nil }
        return try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: 0)
    }
}
