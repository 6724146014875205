/// What became of a question.
package enum DNSOutcome: Hashable, Sendable {
    /// At least one record, and how many seconds they hold.
    case records([DNSRecord], timeToLive: UInt32)
    /// The name does not exist, or has no such records.
    case nothing(timeToLive: UInt32)
    /// Nobody could say.
    case failed(LookupFailure)
}

/// One question, put to one server after the other until one has answered it; without IO.
///
/// A datagram that is not the answer to this question is as if it had not come: it may be somebody's guess.
///
/// Spec: RFC 1035 §7.3, RFC 5452 §9.
package struct DNSExchange {
    package enum Order: Hashable {
        /// Ask this server, and wait for ``DNSExchange/patience``.
        case ask(server: Int, isTCP: Bool, id: UInt16)
        case done(DNSOutcome)
        /// Wait on.
        case wait
    }

    /// How long a server is waited for, in milliseconds.
    package static let patience: Int64 = 2_000
    /// Times that a question is put, over all servers.
    package static let attempts = 4
    /// What is told about nothing, when the server names no time (RFC 2308 §5 has none; a retry shall ask again).
    static let briefly: UInt32 = 1
    /// A day: more is taken for a mistake.
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
    ///   - question: what to ask.
    ///   - servers: their names for messages; at least one.
    package init(_ question: DNSQuestion, servers: [String]) {
        precondition(!servers.isEmpty, "somebody has to be asked")
        self.question = question
        self.names = servers
    }

    /// Asks the first server.
    package mutating func begin(id: UInt16) -> Order { self.ask(id) }

    /// The server at hand has not answered in time, or cannot be reached; `id` is for the next question.
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

    /// Something came from the server at hand, over what it was asked.
    ///
    /// - Parameters:
    ///   - bytes: one message.
    ///   - nextID: for the question that may follow.
    /// - Returns: what to do.
    package mutating func received(_ bytes: [UInt8], nextID: UInt16) -> Order {
        guard !self.isDone else { return .wait }
        let message: DNSMessage
        do throws(DNSMessageError) {
            message = try DNSMessage(bytes)
        } catch {
            // Over TCP nobody else could have sent it.
            return self.isTCP ? self.gaveUp(because: "an answer that cannot be read", id: nextID) : .wait
        }
        guard message.id == self.id, message.name == self.question.name, message.kind == self.question.kind.rawValue
        else { return self.isTCP ? self.gaveUp(because: "an answer to something else", id: nextID) : .wait }
        if message.isTruncated {
            guard !self.isTCP else { return self.gaveUp(because: "an answer cut short over TCP", id: nextID) }
            // The same try goes on.
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
        // An alias on the way may hold for less.
        let seconds = message.records.map(\.timeToLive).min() ?? 0
        return .records(records, timeToLive: min(seconds, Self.longest))
    }

    private mutating func finish(_ outcome: DNSOutcome) -> Order {
        self.isDone = true
        return .done(outcome)
    }
}
