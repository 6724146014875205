import CPosix
package import LoopContext
package import NIOCore
import NIOPosix

/// Makes the connections of one event loop's clients.
package protocol ClientConnector: AnyObject {
    /// Connects a client, and adds the handler.
    ///
    /// - Parameters:
    ///   - client: its number, from 0.
    ///   - deadline: when a connect that is not finished is given up.
    ///   - handler: makes the channel's one handler, on the loop, when the connection is up.
    ///   - done: called once, on the loop, with the handler in the pipeline and before its `channelActive`; a failure
    ///     may come before this returns.
    func connect(
        client: Int,
        deadline: NIODeadline,
        handler: @escaping () -> some ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    )
}

/// Makes the TCP connections of one event loop's clients.
///
/// Clients go to the targets in turn, by number. A name is looked up off the loop; all its addresses are tried, one
/// after the other. The deadline is one timer of the loop's wheel for each connect under way.
package final class TCPConnector: ClientConnector {
    private let context: LoopContext
    private let targets: [Target]
    /// The addresses of those targets that need no lookup.
    private let literals: [SocketAddress?]
    private let sources: SourceAddresses
    private let resolver: NameResolver
    private var owner: TimerOwner?

    /// Connects under way, by slot; each slot has its timer, for good.
    private var attempts: [ConnectAttempt?] = []
    private var timers: [TimerID] = []
    private var freeSlots: [Int32] = []

    /// - Precondition: `targets` is not empty.
    package init(
        context: LoopContext,
        targets: [Target],
        sources: SourceAddresses = .any,
        lookup: @escaping NameLookup = NameResolver.system
    ) {
        precondition(!targets.isEmpty, "a plan has a target")
        self.context = context
        self.targets = targets
        self.literals = targets.map { try? SocketAddress(ipAddress: $0.host, port: $0.port) }
        self.sources = sources
        self.resolver = NameResolver(eventLoop: context.eventLoop, lookup: lookup)
        self.owner = context.timers.addOwner { [weak self] _, slot in self?.expire(slot) }
    }

    /// Connects under way.
    package var pending: Int { self.attempts.count - self.freeSlots.count }

    package func target(ofClient client: Int) -> Target { self.targets[client % self.targets.count] }

    /// Connects a client: resolves its target's name, tries each address in turn, adds the handler.
    ///
    /// - Parameters:
    ///   - client: its number, from 0; picks target and source address.
    ///   - deadline: when a connect that is not finished is given up; the same that CONNACK has to meet.
    ///   - handler: makes the channel's one handler, on the loop, when the connection is up.
    ///   - done: called once, on the loop, with the handler in the pipeline and before its `channelActive`; a failure
    ///     may come before this returns.
    package func connect(
        client: Int,
        deadline: NIODeadline,
        handler: @escaping () -> some ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        let slot = self.takeSlot()
        let attempt = ConnectAttempt(
            slot: slot,
            client: client,
            target: self.target(ofClient: client),
            addHandler: { try $0.pipeline.syncOperations.addHandler(handler()) },
            done: done
        )
        self.attempts[Int(slot)] = attempt
        self.context.timers.schedule(self.timers[Int(slot)], at: deadline)

        if let address = self.literals[client % self.targets.count] {
            self.start(attempt, addresses: [address])
        } else {
            self.resolve(attempt)
        }
    }

    /// Gives up all that is under way; each is reported as cancelled.
    package func cancelAll() {
        for attempt in self.attempts { if let attempt { self.fail(attempt, .cancelled) } }
    }

    // MARK: Steps

    private func resolve(_ attempt: ConnectAttempt) {
        let begun = self.context.refresh()
        let known = self.resolver.resolve(attempt.target.host, now: begun) { [weak self] answer in
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
        attempt.addresses = addresses.filter(self.sources.canReach)[...]
        attempt.connectBegun = self.context.refresh()
        self.tryNext(attempt, after: .sourceAddress)
    }

    /// Connects to the next address; without one the attempt has failed, for the reason the last one gave.
    private func tryNext(_ attempt: ConnectAttempt, after reason: ConnectError.Reason) {
        guard let address = attempt.addresses?.popFirst() else {
            self.fail(attempt, reason)
            return
        }
        attempt.isBinding = false
        let source = self.sources.address(forClient: attempt.client, to: address)
        let bound = NIOLoopBound((self, attempt), eventLoop: self.context.eventLoop)
        ClientBootstrap(group: self.context.eventLoop)
            // The wheel's timer is the one that counts; NIO wants to have one too.
            .connectTimeout(.hours(24))
            .channelInitializer { channel in
                let (connector, attempt) = bound.value
                return connector.prepare(channel, for: attempt, source: source)
            }
            .connect(to: address)
            .assumeIsolated()
            .whenComplete { result in
                guard !attempt.isDone else { return }
                switch result {
                case .success(let channel):
                    self.succeed(attempt, channel)
                case .failure(let error):
                    let reason = ConnectError.Reason(error, isBinding: attempt.isBinding)
                    // Another address needs a descriptor too.
                    if reason == .descriptorsExhausted { attempt.addresses = [] }
                    self.tryNext(attempt, after: reason)
                }
            }
    }

    private func prepare(
        _ channel: any Channel,
        for attempt: ConnectAttempt,
        source: SocketAddress?
    ) -> EventLoopFuture<Void> {
        attempt.channel = channel
        do {
            try channel.setLoopOptions(
                receive: self.context.receive.makeAllocator()
            )
            guard let source else { return channel.eventLoop.makeSucceededVoidFuture() }
            attempt.isBinding = true
            // The port is chosen by connect(2), for source and target together.
            let option = NIOBSDSocket.Option(rawValue: clamor_ip_bind_address_no_port())
            try channel.syncOptions?.setOption(ChannelOptions.Types.SocketOption(level: .ip, name: option), value: 1)
            let bound = channel.bind(to: source)
            bound.assumeIsolated().whenSuccess { attempt.isBinding = false }
            return bound
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
    }

    private func succeed(_ attempt: ConnectAttempt, _ channel: any Channel) {
        attempt.phases.tcp = self.context.refresh() - attempt.connectBegun
        do {
            try attempt.addHandler(channel)
        } catch {
            // Closed by the peer in the meantime.
            self.fail(attempt, .reset)
            return
        }
        self.release(attempt)
        attempt.done(
            .success(ConnectedChannel(channel: channel, target: attempt.target, phases: attempt.phases))
        )
    }

    private func expire(_ slot: Int32) {
        guard let attempt = self.attempts[Int(slot)] else { return }
        self.fail(attempt, .timedOut(attempt.addresses == nil ? .dns : .tcp))
    }

    private func fail(_ attempt: ConnectAttempt, _ reason: ConnectError.Reason) {
        self.release(attempt)
        attempt.channel?.close(promise: nil)
        attempt.channel = nil
        attempt.done(.failure(ConnectError(reason, target: attempt.target, phases: attempt.phases)))
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

/// One connect under way.
private final class ConnectAttempt {
    let slot: Int32
    let client: Int
    let target: Target
    let addHandler: (any Channel) throws -> Void
    let done: (Result<ConnectedChannel, ConnectError>) -> Void

    var phases = ConnectPhases()
    /// Those still to try; `nil` until they are known.
    var addresses: ArraySlice<SocketAddress>?
    var connectBegun = NIODeadline.uptimeNanoseconds(0)
    var channel: (any Channel)?
    var isBinding = false
    var isDone = false

    init(
        slot: Int32,
        client: Int,
        target: Target,
        addHandler: @escaping (any Channel) throws -> Void,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        self.slot = slot
        self.client = client
        self.target = target
        self.addHandler = addHandler
        self.done = done
    }
}

extension Channel {
    /// Sets what a client's channel needs; on its loop, before it reads.
    fileprivate func setLoopOptions(receive: LoopReceiveAllocator) throws {
        guard let options = self.syncOptions else { preconditionFailure("socket channels have synchronous options") }
        // TCP_NODELAY is the bootstrap's own choice.
        try options.setOption(.recvAllocator, value: receive)
        try options.setOption(.maxMessagesPerRead, value: 1)
        // The lowest that there is: more than one byte left makes the channel unwritable, all gone writable again.
        try options.setOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
        try options.setOption(.allowRemoteHalfClosure, value: true)
    }
}
