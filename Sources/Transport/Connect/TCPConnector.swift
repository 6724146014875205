import CPosix
package import LoopContext
package import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#endif

/// Makes the TCP connections of one event loop's clients.
///
/// Clients use the targets in turn by number, unless a route overrides this. Names are looked up off the loop, and all
/// their addresses are tried in turn, with one socket at a time, or raced (``AddressRacing``). The layers follow, in
/// order. Each connect in progress has one timer of the loop's wheel for its deadline.
package final class TCPConnector: ClientConnector {
    let context: LoopContext
    private let targets: [Target]
    /// The addresses of targets that need no lookup.
    private let literals: [SocketAddress?]
    let sources: SourceAddresses
    private let layers: [any ConnectLayer]
    let route: @Sendable (_ client: Int) -> Int
    let resolver: any AddressResolver
    /// `nil` opens one socket at a time.
    private let racing: AddressRacing?
    /// Connections are sockets of this loop, and no channels.
    private let ownLoop: SocketLoop?
    private var owner: TimerOwner?

    /// Connects in progress, by slot; each slot keeps its timer.
    private var attempts: [ConnectAttempt?] = []
    private(set) var timers: [TimerID] = []
    private var freeSlots: [Int32] = []

    /// `route` returns the number that selects a client's target and source address.
    ///
    /// Without `resolver` it has one of its own, which asks `lookup`.
    ///
    /// With `racing` the addresses of a name compete; without it they are tried in the resolver's order.
    ///
    /// - Precondition: `targets` is not empty.
    package init(
        context: LoopContext,
        targets: [Target],
        sources: SourceAddresses = .any,
        layers: [any ConnectLayer] = [],
        route: @escaping @Sendable (_ client: Int) -> Int = { $0 },
        racing: AddressRacing? = nil,
        resolver: (any AddressResolver)? = nil,
        lookup: @escaping NameLookup = NameResolver.system
    ) {
        precondition(!targets.isEmpty, "a plan has a target")
        let ownLoop = context.eventLoop as? SocketLoop
        precondition(ownLoop == nil || layers.isEmpty && racing == nil, "a loop of sockets has plain TCP alone")
        self.ownLoop = ownLoop
        self.context = context
        self.targets = targets
        self.literals = targets.map { try? SocketAddress(ipAddress: $0.host, port: $0.port) }
        self.sources = sources
        self.layers = layers
        self.route = route
        self.resolver = resolver ?? NameResolver(eventLoop: context.eventLoop, lookup: lookup)
        self.racing = racing
        self.owner = context.timers.addOwner { [weak self] _, slot in self?.expire(slot) }
    }

    /// Connects in progress.
    package var pending: Int { self.attempts.count - self.freeSlots.count }

    /// Connects a client: resolves its target's name, tries each address in turn, adds the handler.
    package func connect(client: Int, place: Int, turn: Int, deadline: NIODeadline, for observer: some ConnectObserver)
    {
        let index = (self.route(client) + turn) % self.targets.count
        self.connect(client, place, self.targets[index], self.literals[index], self.layers, deadline, observer)
    }

    /// Connects a client to a given target, through given layers.
    func connect(
        client: Int,
        to target: Target,
        layers: [any ConnectLayer],
        deadline: NIODeadline,
        for observer: some ConnectObserver
    ) {
        let address = try? SocketAddress(ipAddress: target.host, port: target.port)
        self.connect(client, 0, target, address, layers, deadline, observer)
    }

    private func connect(
        _ client: Int,
        _ place: Int,
        _ target: Target,
        _ address: SocketAddress?,
        _ layers: [any ConnectLayer],
        _ deadline: NIODeadline,
        _ observer: any ConnectObserver
    ) {
        let slot = self.takeSlot()
        let attempt = ConnectAttempt(
            slot: slot,
            client: client,
            place: place,
            target: target,
            layers: layers,
            deadline: deadline,
            observer: observer
        )
        self.attempts[Int(slot)] = attempt
        self.context.timers.schedule(self.timers[Int(slot)], at: deadline)

        if let address {
            self.start(attempt, addresses: [address])
        } else {
            self.resolve(attempt)
        }
    }

    package func cancelAll() {
        for attempt in self.attempts { if let attempt { self.fail(attempt, .cancelled) } }
    }

    /// Cancels all connects in progress and returns the timers to the loop: no further connect is possible.
    package func retire() {
        self.cancelAll()
        for timer in self.timers { self.context.timers.unregister(timer) }
        self.timers = []
        self.attempts = []
        self.freeSlots = []
        if let owner = self.owner.take() { self.context.timers.removeOwner(owner) }
    }

    // MARK: Steps

    private func resolve(_ attempt: ConnectAttempt) {
        let begun = self.context.refresh()
        let preference = self.racing?.preference ?? .ipv4First
        let known = self.resolver.resolve(attempt.target.host, preference, now: begun) { [weak self] answer in
            guard let self, !attempt.isDone else { return }
            attempt.phases.dns = self.context.refresh() - begun
            self.resolved(attempt, answer)
        }
        if let known { self.resolved(attempt, known) }
    }

    private func resolved(_ attempt: ConnectAttempt, _ answer: NameResolver.Answer) {
        switch answer {
        case .failure(let failure):
            self.fail(attempt, .resolve(failure.text))
        case .success(var addresses):
            for index in addresses.indices { addresses[index].port = attempt.target.port }
            self.start(attempt, addresses: addresses)
        }
    }

    private func start(_ attempt: ConnectAttempt, addresses: [SocketAddress]) {
        if let racing = self.racing { return self.race(attempt, addresses, racing) }
        attempt.addresses = addresses.filter(self.sources.canReach)[...]
        attempt.connectBegun = self.context.refresh()
        self.tryNext(attempt, after: .sourceAddress)
    }

    /// Connects to the next address; if there is none, the attempt fails with the last address's error.
    private func tryNext(_ attempt: ConnectAttempt, after reason: ConnectError.Reason) {
        guard let address = attempt.addresses?.popFirst() else {
            self.fail(attempt, reason)
            return
        }
        let source = self.sources.address(forClient: self.route(attempt.client), to: address)
        guard let loop = self.ownLoop else { return self.connect(attempt, to: address, from: source) }
        do throws(ConnectError.Reason) {
            self.connect(attempt, try SocketConnect.begin(to: address, from: source), to: address, on: loop)
        } catch {
            self.tryNext(attempt, afterFailed: error)
        }
    }

    /// Another address would need a descriptor too.
    private func tryNext(_ attempt: ConnectAttempt, afterFailed reason: ConnectError.Reason) {
        if reason == .descriptorsExhausted { attempt.addresses = [] }
        self.tryNext(attempt, after: reason)
    }

    /// Continues with a connect that has begun; to loopback it is over as a rule.
    private func connect(
        _ attempt: ConnectAttempt,
        _ descriptor: CInt,
        to address: SocketAddress,
        on loop: SocketLoop
    ) {
        let state = address.isIPv4Loopback ? SocketConnect.state(of: descriptor, to: address) : .connecting
        if case .failed(let reason) = state {
            close(descriptor)
            return self.tryNext(attempt, after: reason)
        }
        var connecting: (() -> Void)?
        if case .connecting = state {
            connecting = { [weak self] in
                guard let self, !attempt.isDone, let socket = attempt.own else { return }
                switch SocketConnect.state(of: socket.descriptor, to: address) {
                case .connecting: break
                case .connected: self.finish(attempt, socket)
                case .failed(let reason):
                    attempt.own.take()?.discard()
                    self.tryNext(attempt, after: reason)
                }
            }
        }
        do throws(ConnectError.Reason) {
            let socket = try LoopSocket.add(descriptor, to: loop, connecting: connecting)
            attempt.own = socket
            if case .connected = state { self.finish(attempt, socket) }
        } catch {
            self.fail(attempt, error)
        }
    }

    /// The socket is connected, and no layer follows.
    private func finish(_ attempt: ConnectAttempt, _ socket: LoopSocket) {
        guard let wire = attempt.observer.makeHandler(attempt.place) as? Wire else {
            preconditionFailure("a loop of sockets has wires alone")
        }
        attempt.phases.tcp = self.context.refresh() - attempt.connectBegun
        attempt.own = nil
        self.release(attempt)
        socket.connect(wire)
        let connected = ConnectedChannel(channel: nil, target: attempt.target, phases: attempt.phases)
        attempt.observer.connectEnded(attempt.place, .success(connected), deadline: attempt.deadline)
    }

    private func connect(_ attempt: ConnectAttempt, to address: SocketAddress, from source: SocketAddress?) {
        attempt.isBinding = false
        self.channel(to: address, from: source, made: { attempt.channel = $0 }, isBinding: { attempt.isBinding = $0 })
            .whenComplete { result in
                guard !attempt.isDone else { return }
                switch result {
                case .success(let channel):
                    self.succeed(attempt, channel)
                case .failure(let error):
                    let reason = ConnectError.Reason(error, isBinding: attempt.isBinding)
                    self.tryNext(attempt, afterFailed: reason)
                }
            }
    }

    /// Connects a channel, which `made` gets before it connects.
    func channel(
        to address: SocketAddress,
        from source: SocketAddress?,
        made: @escaping (any Channel) -> Void,
        isBinding: @escaping (Bool) -> Void
    ) -> EventLoopFuture<any Channel>.Isolated {
        let bound = NIOLoopBound((self, made, isBinding), eventLoop: self.context.eventLoop)
        return ClientBootstrap(group: self.context.eventLoop)
            // The wheel's timer is the effective one, but NIO requires a timeout too.
            .connectTimeout(.hours(24))
            .channelInitializer { channel in
                let (connector, made, isBinding) = bound.value
                made(channel)
                return connector.prepare(channel, source: source, isBinding: isBinding)
            }
            .connect(to: address)
            .assumeIsolated()
    }

    /// Sets the options of a channel, and binds it to `source`.
    private func prepare(
        _ channel: any Channel,
        source: SocketAddress?,
        isBinding: @escaping (Bool) -> Void
    ) -> EventLoopFuture<Void> {
        do {
            try channel.setLoopOptions(receive: self.context.receive.makeAllocator())
            guard let source else { return channel.eventLoop.makeSucceededVoidFuture() }
            isBinding(true)
            // connect(2) chooses the port, for the pair of source and target.
            let option = NIOBSDSocket.Option(rawValue: clamor_ip_bind_address_no_port())
            try channel.syncOptions?.setOption(ChannelOptions.Types.SocketOption(level: .ip, name: option), value: 1)
            let bound = channel.bind(to: source)
            bound.assumeIsolated().whenSuccess { isBinding(false) }
            return bound
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
    }

    func succeed(_ attempt: ConnectAttempt, _ channel: any Channel) {
        attempt.phases.tcp = self.context.refresh() - attempt.connectBegun
        self.nextLayer(attempt, channel)
    }

    /// Begins the next layer; after the last one the client's handler takes over.
    private func nextLayer(_ attempt: ConnectAttempt, _ channel: any Channel) {
        guard attempt.layer < attempt.layers.count else { return self.finish(attempt, channel) }
        let layer = attempt.layers[attempt.layer]
        let begun = self.context.refresh()
        layer.begin(channel, client: attempt.client, target: attempt.target) { [weak self] result in
            guard let self, !attempt.isDone else { return }
            switch result {
            case .success:
                attempt.phases.note(layer.phase, self.context.refresh() - begun)
                attempt.layer += 1
                self.nextLayer(attempt, channel)
            case .failure(let reason):
                self.fail(attempt, reason)
            }
        }
    }

    private func finish(_ attempt: ConnectAttempt, _ channel: any Channel) {
        let handler = attempt.observer.makeHandler(attempt.place)
        do {
            try channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            // The peer has closed the channel in the meantime.
            (handler as? Wire)?.abandon()
            self.fail(attempt, .reset)
            return
        }
        self.release(attempt)
        let connected = ConnectedChannel(
            channel: channel,
            target: attempt.target,
            phases: attempt.phases,
            isBare: attempt.layers.allSatisfy { $0.phase == .proxy }
        )
        attempt.observer.connectEnded(attempt.place, .success(connected), deadline: attempt.deadline)
    }

    private func expire(_ slot: Int32) {
        guard let attempt = self.attempts[Int(slot)] else { return }
        if let sockets = attempt.race, let racing = self.racing, self.context.now < attempt.deadline {
            return self.continueRace(attempt, sockets, racing)
        }
        let isUp = attempt.phases.tcp != nil
        let phase = isUp ? attempt.layers[attempt.layer].phase : attempt.addresses == nil ? .dns : .tcp
        self.fail(attempt, .timedOut(phase))
    }

    func fail(_ attempt: ConnectAttempt, _ reason: ConnectError.Reason) {
        self.release(attempt)
        attempt.own.take()?.discard()
        attempt.race.take()?.close()
        attempt.channel?.close(promise: nil)
        attempt.channel = nil
        let error = ConnectError(reason, target: attempt.target, phases: attempt.phases)
        attempt.observer.connectEnded(attempt.place, .failure(error), deadline: attempt.deadline)
    }

    // MARK: Slots

    private func takeSlot() -> Int32 {
        if let slot = self.freeSlots.popLast() { return slot }
        guard let owner = self.owner else { preconditionFailure("set in init") }
        let slot = Int32(self.attempts.count)
        self.attempts.append(nil)
        self.timers.append(self.context.timers.register(owner, tag: slot))
        return slot
    }

    private func release(_ attempt: ConnectAttempt) {
        attempt.isDone = true
        self.context.timers.cancel(self.timers[Int(attempt.slot)])
        self.attempts[Int(attempt.slot)] = nil
        self.freeSlots.append(attempt.slot)
    }
}
