package enum DNSOutcome: Hashable, Sendable {
    /// At least one record, and their time to live in seconds.
    case records([DNSRecord], timeToLive: UInt32)
    /// The name does not exist, or has no such records.
    case nothing(timeToLive: UInt32)
    /// No server gave an answer.
    case failed(LookupFailure)
}

/// One query, sent to one server after another until one has answered; without IO.
///
/// A datagram that does not answer this query is ignored, because it may be forged.
///
/// Spec: RFC 1035 §7.3, RFC 5452 §9.
package struct DNSExchange {
    package enum Order: Hashable {
        /// Query this server, and wait for ``DNSExchange/patience``.
        case ask(server: Int, isTCP: Bool, id: UInt16)
        case done(DNSOutcome)
        case wait
    }

    /// Timeout per server, in milliseconds.
    package static let patience: Int64 = 2_000
    /// Attempts at most, over all servers.
    package static let attempts = 4
    /// Seconds to cache a negative answer without a time to live, which RFC 2308 §5 does not cache; retries query
    /// again.
    static let briefly: UInt32 = 1
    /// One day; a longer time to live is treated as a mistake.
    static let longest: UInt32 = 86_400

    package let question: DNSQuestion
    private let names: [String]
    private var server = 0
    private var attempt = 0
    private var isTCP = false
    private var id: UInt16 = 0
    private var last = "no answer"
    private var isDone = false

    /// - Parameters:
    ///   - question: the question.
    ///   - servers: their names for error messages; at least one.
    package init(_ question: DNSQuestion, servers: [String]) {
        precondition(!servers.isEmpty, "a query needs at least one server")
        self.question = question
        self.names = servers
    }

    /// Queries the first server.
    package mutating func begin(id: UInt16) -> Order { self.ask(id) }

    /// The current server has timed out or cannot be reached; `id` is for the next query.
    package mutating func gaveUp(because words: String = "no answer", id: UInt16) -> Order {
        guard !self.isDone else { return .wait }
        self.last = "\(self.names[self.server]): \(words)"
        guard self.attempt < Self.attempts else { return self.finish(.failed(LookupFailure(self.last))) }
        self.server = (self.server + 1) % self.names.count
        self.isTCP = false
        return self.ask(id)
    }

    private mutating func ask(_ id: UInt16) -> Order {
        self.attempt += 1
        self.id = id
        return .ask(server: self.server, isTCP: self.isTCP, id: id)
    }

    /// A message arrived from the current server, over the current transport.
    ///
    /// - Parameters:
    ///   - bytes: one message.
    ///   - nextID: the id of a following query.
    /// - Returns: the next step.
    package mutating func received(_ bytes: [UInt8], nextID: UInt16) -> Order {
        guard !self.isDone else { return .wait }
        let message: DNSMessage
        do throws(DNSMessageError) {
            message = try DNSMessage(bytes)
        } catch {
            // Over TCP only the server can have sent it.
            return self.isTCP ? self.gaveUp(because: "an answer that cannot be read", id: nextID) : .wait
        }
        guard message.id == self.id, message.name == self.question.name, message.kind == self.question.kind.rawValue
        else { return self.isTCP ? self.gaveUp(because: "an answer to something else", id: nextID) : .wait }
        if message.isTruncated {
            guard !self.isTCP else { return self.gaveUp(because: "an answer cut short over TCP", id: nextID) }
            // TCP continues the same attempt.
            self.isTCP = true
            self.id = nextID
            return .ask(server: self.server, isTCP: true, id: nextID)
        }
        switch message.code {
        case 0, 3: return self.finish(self.outcome(of: message))
        case 1: return self.gaveUp(because: "FORMERR", id: nextID)
        case 2: return self.gaveUp(because: "SERVFAIL", id: nextID)
        case 4: return self.gaveUp(because: "NOTIMP", id: nextID)
        case 5: return self.gaveUp(because: "REFUSED", id: nextID)
        default: return self.gaveUp(because: "code \(message.code)", id: nextID)
        }
    }

    private func outcome(of message: DNSMessage) -> DNSOutcome {
        let records = message.answers(to: self.question)
        guard !records.isEmpty, message.code == 0 else {
            return .nothing(timeToLive: min(message.negativeTimeToLive ?? Self.briefly, Self.longest))
        }
        // An alias in the chain may have a shorter time to live.
        let seconds = message.records.map(\.timeToLive).min() ?? 0
        return .records(records, timeToLive: min(seconds, Self.longest))
    }

    private mutating func finish(_ outcome: DNSOutcome) -> Order {
        self.isDone = true
        return .done(outcome)
    }
}
