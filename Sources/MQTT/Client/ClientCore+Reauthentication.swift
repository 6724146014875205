import LoopContext
import MQTTCodec
import NIOCore

/// The calls that wait for a re-authentication; only one can run at a time (§4.12.1).
struct Reauthentication {
    private var waiters: [(waiter: Waiter<Void>, deadline: NIODeadline)] = []
    /// AUTH was sent and its exchange is not over: later calls wait for its end.
    var isUnderWay = false
    /// The first call has the earliest deadline: all have the same timeout.
    var deadline: NIODeadline { self.waiters.first?.deadline ?? .distantFuture }
    var isAwaited: Bool { self.waiters.contains { !$0.waiter.isDone } }

    mutating func add(_ waiter: Waiter<Void>, until deadline: NIODeadline) {
        self.waiters.removeAll { $0.waiter.isDone }
        self.waiters.append((waiter, deadline))
    }

    mutating func end(_ outcome: Waiter<Void>.Outcome) {
        self.isUnderWay = false
        let waiters = self.waiters
        self.waiters = []
        for (waiter, _) in waiters { waiter.complete(outcome) }
    }

    /// Ends calls after their timeout; the server may still answer.
    mutating func expire(now: NIODeadline) {
        while let first = self.waiters.first, now >= first.deadline {
            self.waiters.removeFirst()
            first.waiter.fail(.timedOut(.authentication))
        }
    }
}

extension ClientCore {
    func reauthenticate(_ waiter: Waiter<Void>) {
        guard !waiter.isDone else { return }
        let configuration = self.configuration
        guard configuration.authentication != nil, configuration.version == .v5, configuration.rawConnect == nil else {
            let words = "a client authenticates again as it did in its CONNECT: set authentication, in MQTT 5 (§4.12.1)"
            return waiter.fail(.invalid(words))
        }
        guard self.state == .connected, let connection = self.connection else { return waiter.fail(.notConnected) }
        self.reauthentication.add(waiter, until: self.context.now + TimeAmount(configuration.timeouts.acknowledgement))
        if !self.reauthentication.isUnderWay {
            self.reauthentication.isUnderWay = true
            // A mechanism that fails to begin ends the connection, and so this call.
            if !connection.reauthenticate() { self.reauthentication.end(.failure(.notConnected)) }
        }
        self.updateTimer()
        self.updateReading()
    }

    func reauthenticated(_ client: Int, now: NIODeadline) {
        guard client == self.epoch else { return }
        self.reauthentication.end(.success(()))
        self.updateTimer()
    }
}
