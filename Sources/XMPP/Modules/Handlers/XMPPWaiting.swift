import NIOCore

/// Calls that wait for a stanza that is no answer to a request, by what they wait for.
///
/// Each call is answered once: with the stanza, a refusal, the time-out, or the end of the connection.
struct XMPPWaiting<Key: Hashable, Value> {
    typealias Answer = XMPP.Answer<Value>

    private struct Call {
        let deadline: NIODeadline
        let answer: Answer
    }

    private var calls: [Key: [Call]] = [:]
    private var minimum = NIODeadline.distantFuture

    /// No call times out before this; after an answer the first one may be later.
    ///
    /// The value is kept, because the connection reads it with each stanza.
    var earliest: NIODeadline { self.minimum }
    func has(_ key: Key) -> Bool { self.calls[key] != nil }

    mutating func add(_ key: Key, until deadline: NIODeadline, _ answer: @escaping Answer) {
        self.calls[key, default: []].append(Call(deadline: deadline, answer: answer))
        self.minimum = min(self.minimum, deadline)
    }

    /// Takes the calls that wait for this; they are to be answered by the taker.
    mutating func take(_ key: Key) -> [Answer] {
        guard let taken = self.calls.removeValue(forKey: key) else { return [] }
        if self.calls.isEmpty { self.minimum = .distantFuture }
        return taken.map(\.answer)
    }

    /// Takes what is overdue.
    mutating func takeOverdue(now: NIODeadline) -> [(Key, [Answer])] {
        guard self.minimum <= now else { return [] }
        var overdue: [(Key, [Answer])] = []
        self.minimum = .distantFuture
        for (key, calls) in self.calls {
            let late = calls.filter { $0.deadline <= now }
            let left = calls.filter { $0.deadline > now }
            for call in left { self.minimum = min(self.minimum, call.deadline) }
            guard !late.isEmpty else { continue }
            self.calls[key] = left.isEmpty ? nil : left
            overdue.append((key, late.map(\.answer)))
        }
        return overdue
    }

    mutating func takeAll() -> [Answer] {
        defer {
            self.calls = [:]
            self.minimum = .distantFuture
        }
        return self.calls.values.flatMap { $0.map(\.answer) }
    }
}

extension XMPPModuleContext {
    /// The end of a wait that begins now and takes as long as an answer may.
    var answerDeadline: NIODeadline { self.now + self.connection.stream.pointee.options.requestTimeout }

    /// Has the connection look at the handlers' deadlines again, after a call from outside of it.
    func updateTimer() {
        if self.connection.end == nil { self.connection.updateTimer() }
    }
}
