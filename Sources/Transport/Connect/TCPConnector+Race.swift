import LoopContext
import NIOCore

// Overlapping attempts to the addresses of one name (RFC 8305).
//
// Only TCP is raced. TLS, PROXY header and WebSocket follow on the first connection: a connect has one handshake, and
// the server sees one client. A layer that fails ends the connect, as it does without a race.
extension TCPConnector {
    /// Connects to the first of the addresses that answers.
    func race(_ attempt: ConnectAttempt, _ addresses: [SocketAddress], _ racing: AddressRacing) {
        let ordered = racing.preference.order(addresses)
        guard !ordered.isEmpty else { return self.fail(attempt, .resolve(racing.preference.missing)) }
        let reachable = ordered.filter(self.sources.canReach)
        let now = self.context.refresh()
        attempt.connectBegun = now
        attempt.addresses = []
        let isLiteral = (try? SocketAddress(ipAddress: attempt.target.host, port: 0)) != nil
        let race = AddressRace(reachable, delay: racing.delay, now: now, isComplete: isLiteral)
        let sockets = RacingSockets(race)
        attempt.race = sockets
        self.continueRace(attempt, sockets, racing)
    }

    /// Starts the attempts that are due; called again at the race's deadline and after each failure.
    func continueRace(_ attempt: ConnectAttempt, _ sockets: RacingSockets, _ racing: AddressRacing) {
        let now = self.context.refresh()
        // A failure or a success can be reported before the start returns.
        while attempt.race === sockets, let address = sockets.race.next(now: now) {
            self.connect(attempt, sockets, to: address, racing)
        }
        guard attempt.race === sockets, !attempt.isDone else { return }
        if sockets.race.asksAgain(now: now) { return self.askAgain(attempt, sockets, racing) }
        if sockets.race.isLost(now: now) { return self.fail(attempt, sockets.reason) }
        self.schedule(attempt, sockets)
    }

    private func schedule(_ attempt: ConnectAttempt, _ sockets: RacingSockets) {
        let timer = self.timers[Int(attempt.slot)]
        self.context.timers.schedule(timer, at: min(sockets.race.deadline ?? .distantFuture, attempt.deadline))
    }

    /// A resolver stops waiting for the slower family 50 ms after the other one (RFC 8305 §3): its answer may be there
    /// by now.
    private func askAgain(_ attempt: ConnectAttempt, _ sockets: RacingSockets, _ racing: AddressRacing) {
        let add = { [weak self] (answer: NameResolver.Answer) in
            guard let self, attempt.race === sockets, !attempt.isDone else { return }
            var addresses = (try? answer.get()) ?? []
            for index in addresses.indices { addresses[index].port = attempt.target.port }
            sockets.race.add(racing.preference.order(addresses).filter(self.sources.canReach))
            self.continueRace(attempt, sockets, racing)
        }
        let known = self.resolver.resolve(
            attempt.target.host,
            racing.preference,
            now: self.context.now,
            completion: add
        )
        if let known { return add(known) }
        self.schedule(attempt, sockets)
    }

    private func connect(
        _ attempt: ConnectAttempt,
        _ sockets: RacingSockets,
        to address: SocketAddress,
        _ racing: AddressRacing
    ) {
        let lane = sockets.open()
        let source = self.sources.address(forClient: self.route(attempt.client), to: address)
        self.channel(to: address, from: source, made: { lane.channel = $0 }, isBinding: { lane.isBinding = $0 })
            .whenComplete { result in
                guard !lane.isOver, attempt.race === sockets, !attempt.isDone else {
                    // A connection that was up already when another one was taken.
                    if case .success(let channel) = result { channel.close(promise: nil) }
                    return
                }
                lane.isOver = true
                switch result {
                case .success(let channel):
                    sockets.close(except: lane)
                    attempt.race = nil
                    attempt.channel = channel
                    self.context.timers.schedule(self.timers[Int(attempt.slot)], at: attempt.deadline)
                    self.succeed(attempt, channel)
                case .failure(let error):
                    sockets.reason = ConnectError.Reason(error, isBinding: lane.isBinding)
                    // Another address would need a descriptor too.
                    if sockets.reason == .descriptorsExhausted { sockets.race.stop() }
                    sockets.race.failed(now: self.context.refresh())
                    self.continueRace(attempt, sockets, racing)
                }
            }
    }
}
