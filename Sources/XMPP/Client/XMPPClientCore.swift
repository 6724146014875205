import LoopContext
import NIOCore
import Transport
import XMPPCodec

/// A client on its event loop: stream, connection and calls that wait.
final class XMPPClientCore: LoopTenant {
    let home: XMPPClientLoop
    let configuration: XMPPClientConfiguration
    let inbox: XMPPInbox<XMPPElement>
    private let states: Broadcast<XMPPClientState>
    private let log: XMPPClientLog
    /// The handlers in the order of the client's modules; the client's own are the last.
    private let handlers: [(module: ObjectIdentifier?, handler: any XMPPHandler)]
    private var index = -1
    private var timer: TimerID?
    var domain = ""
    private(set) var stream: UnsafeMutablePointer<XMPPStream>?
    /// Connects to the configured host, or to the domain's servers according to the DNS.
    private var connector: (any ClientConnector)?
    /// Connects to the host of a redirect.
    private var detour: TCPConnector?
    /// Where the next connect begins: a host that the server has named.
    private var nextHost: XMPPHost?
    private var deadline = NIODeadline.distantFuture
    /// The server of the connection, for STARTTLS.
    private(set) var target = Target(host: "", port: 0)
    private(set) var tls: TLSLayer?
    private(set) var connection: XMPPConnection?
    /// The number of the current connection; events of older connections are ignored.
    private(set) var epoch = 0
    /// The callers of the attempt to connect; `nil` without an attempt.
    private var connecting: [XMPPClientWaiter<JID>]?
    /// The attempt is one of ``reconnect``, which goes on without callers.
    private var isReconnecting = false
    /// The handler of the client's ``XMPPReconnect``.
    private let reconnect: ReconnectHandler?
    private var reconnectTime = NIODeadline.distantFuture
    private var disconnectWaiters: [XMPPClientWaiter<Void>] = []
    /// Stanzas that wait because the server reads too slowly.
    var sends: CircularBuffer<WaitingSend> = []
    /// Stanzas of the session that the server has acknowledged.
    var acknowledged: UInt64 = 0
    /// Calls that wait for the acknowledgement of a stanza, by its number in the session.
    var unacknowledged: CircularBuffer<(number: UInt64, waiter: XMPPClientWaiter<Void>)> = []
    /// The stream's byte counts at the beginning of the connection.
    private var bytesBefore = (sent: UInt64(0), received: UInt64(0))

    init(_ handle: XMPPClientHandle) {
        self.configuration = handle.configuration
        self.inbox = handle.inbox
        self.states = handle.broadcast
        self.log = handle.log
        self.home = XMPPClientLoop.of(handle.eventLoop)
        let handlers: [(module: ObjectIdentifier?, handler: any XMPPHandler)] =
            handle.modules.map { (ObjectIdentifier($0), $0.makeHandler()) } + [(nil, PingHandler())]
        self.handlers = handlers
        self.reconnect = handlers.lazy.compactMap { $0.handler as? ReconnectHandler }.first
        let place = self.home.tenants.add(self)
        self.index = place.index
        self.timer = place.timers[0]
    }

    deinit {
        self.stream?.deinitialize(count: 1)
        self.stream?.deallocate()
    }

    var context: LoopContext { self.home.context }

    /// The handler that this module made.
    func handler(of module: any XMPPModule) -> (any XMPPHandler)? {
        self.handlers.first { $0.module == ObjectIdentifier(module) }?.handler
    }

    private func change(to state: XMPPClientState) {
        self.log.tell(state, domain: self.domain)
        self.states.send(state)
    }

    // MARK: Connecting

    func connect(_ waiter: XMPPClientWaiter<JID>) {
        if self.isReconnecting, self.connecting != nil {
            self.connecting?.append(waiter)
            return
        }
        guard self.connecting == nil, self.connection == nil else { return waiter.fail(.alreadyConnected) }
        do throws(XMPPClientError) {
            try self.prepare()
        } catch {
            waiter.fail(error)
            return
        }
        self.begin([waiter])
    }

    private func begin(_ waiters: [XMPPClientWaiter<JID>]) {
        self.connecting = waiters
        self.isReconnecting = waiters.isEmpty
        self.reconnectTime = .distantFuture
        self.deadline = self.context.now + TimeAmount(self.configuration.connectTimeout)
        self.change(to: .connecting)
        // XEP-0198 §5: a session is resumed at the server's preferred location, or else at any that allows it.
        let place = self.stream.flatMap { $0.pointee.canResume ? $0.pointee.resumptionLocation : nil }
        self.attempt(self.nextHost.take() ?? place.flatMap { XMPPHost($0) }, mayFallBack: true)
    }

    /// Makes what all connections share; again if it failed.
    private func prepare() throws(XMPPClientError) {
        guard self.stream == nil || self.connector == nil else { return }
        let account = try self.configuration.account()
        self.domain = account.jid.domain
        self.tls = try self.startTLSLayer()
        self.connector = try self.makeConnector()
        if self.stream == nil { self.makeStream(account) }
    }

    /// The channel of a peer takes the place of a connect.
    func adopt(_ channel: any Channel) throws {
        let account = try self.configuration.account()
        self.domain = account.jid.domain
        self.makeStream(account)
        guard let stream = self.stream else { return }
        self.context.refresh()
        self.connecting = []
        self.change(to: .connecting)
        self.epoch += 1
        let connection = XMPPConnection(
            client: self.epoch,
            loop: self.context,
            stream: stream,
            observer: self,
            memory: self.home.memory
        )
        connection.plugIn(self.handlers.map(\.handler))
        try connection.attach(to: channel)
        self.connection = connection
        // The listener's channels have no handler in between, but their buffers are NIO's own.
        connection.start(
            deadline: self.context.now + TimeAmount(self.configuration.connectTimeout),
            isBare: false,
            isSecure: false
        )
    }

    private func makeStream(_ account: XMPPAccount) {
        let stream = UnsafeMutablePointer<XMPPStream>.allocate(capacity: 1)
        stream.initialize(to: XMPPStream(account, options: self.configuration.streamOptions(self.home.keys)))
        stream.pointee.token = self.configuration.token
        self.stream = stream
    }

    /// `host`: `nil` for the usual way.
    private func attempt(_ host: XMPPHost?, mayFallBack: Bool = false) {
        self.epoch += 1
        let epoch = self.epoch
        var connector = self.connector
        if let host {
            self.detour?.retire()
            self.detour = self.makeDetour(to: host)
            connector = self.detour
        }
        guard let stream = self.stream, let connector else {
            let end = XMPPClientEnd(XMPPConnectionEnd.aborted)
            return self.fail(.noConnection(end), end, .never)
        }
        connector.connect(
            client: 0,
            deadline: self.deadline,
            handler: {
                let connection = XMPPConnection(
                    client: epoch,
                    loop: self.context,
                    stream: stream,
                    observer: self,
                    memory: self.home.memory
                )
                // One of an attempt that was given up is on no stream, and is closed when it is up.
                if epoch == self.epoch {
                    connection.plugIn(self.handlers.map(\.handler))
                    self.connection = connection
                }
                return connection.makeHandler()
            },
            done: { result in
                guard epoch == self.epoch else {
                    if case .success(let connected) = result { connected.channel?.close(promise: nil) }
                    return
                }
                if host != nil, mayFallBack, case .failure = result {
                    self.connection = nil
                    self.attempt(nil)
                    return self.watchTime()
                }
                self.connected(result)
            }
        )
    }

    private func connected(_ result: Result<ConnectedChannel, ConnectError>) {
        switch result {
        case .success(let connected):
            self.target = connected.target
            self.context.refresh()
            self.bytesBefore = self.bytes
            self.connection?.start(
                deadline: self.deadline,
                isBare: connected.isBare,
                isSecure: connected.isDirectTLS || self.isAlwaysSecure
            )
        case .failure(let error):
            self.connection = nil
            let end = XMPPClientEnd(kind: error.kind, words: error.description, mayHeal: !error.isLocal)
            self.fail(.noConnection(end), end, error.isLocal ? .never : .soon)
        }
    }

    // MARK: Leaving

    func giveUp(_ error: XMPPClientError) {
        guard self.connecting != nil else { return }
        self.leave()
        self.fail(error, XMPPClientEnd(.aborted), .never)
    }

    /// Abandons the connection and ignores its further events.
    private func leave() {
        self.epoch += 1
        let connection = self.connection
        self.connection = nil
        connection?.abort()
        self.watchTime()
    }

    func cancel(_ waiter: XMPPClientWaiter<JID>) {
        guard self.connecting?.contains(where: { $0 === waiter }) ?? false else { return }
        if self.isReconnecting {
            self.connecting?.removeAll { $0 === waiter }
        } else {
            self.giveUp(.cancelled)
        }
    }

    private func fail(_ error: XMPPClientError, _ end: XMPPClientEnd, _ retry: XMPPRetry) {
        let waiters = self.connecting ?? []
        self.connecting = nil
        self.planReconnect(end, retry)
        self.change(to: .closed(end))
        for waiter in waiters { waiter.fail(error) }
        self.tellGone()
    }

    private func planReconnect(_ end: XMPPClientEnd, _ retry: XMPPRetry) {
        // Only a peer that opened the stream can open it again.
        if self.configuration.peerRole != .recipient,
            let (time, host) = self.reconnect?.plan(after: end, retry, now: self.context.now)
        {
            self.reconnectTime = time
            self.nextHost = host ?? self.nextHost
        }
        self.watchTime()
    }

    private func stopReconnecting() {
        self.reconnectTime = .distantFuture
        self.reconnect?.reset()
    }

    private func tellGone() {
        let waiting = self.disconnectWaiters
        self.disconnectWaiters = []
        for waiter in waiting { waiter.complete(.success(())) }
    }

    func disconnect(_ waiter: XMPPClientWaiter<Void>) {
        self.stopReconnecting()
        guard self.connecting == nil else {
            self.giveUp(.disconnected)
            self.forgetSession()
            waiter.complete(.success(()))
            return
        }
        guard let connection = self.connection else {
            self.forgetSession()
            for (_, handler) in self.handlers { handler.ended(XMPPClientEnd(XMPPConnectionEnd.aborted)) }
            waiter.complete(.success(()))
            return
        }
        self.disconnectWaiters.append(waiter)
        self.failSends(.disconnected)
        if self.disconnectWaiters.count == 1 { self.change(to: .disconnecting) }
        connection.finish()
    }

    func letGo() {
        self.stopReconnecting()
        self.giveUp(.disconnected)
        self.failSends(.disconnected)
        self.leave()
        self.failRequests()
        self.detour?.retire()
        (self.connector as? TCPConnector)?.retire()
        (self.connector as? ServiceConnector)?.retire()
        self.connector = nil
        if let timer = self.timer.take() { self.home.tenants.remove(self.index, timer, of: XMPPClientLoop.all) }
    }

    // MARK: Events of the connection

    func becameReady(_ session: XMPPSession) {
        let waiters = self.connecting ?? []
        self.connecting = nil
        if !session.isResumed { self.beginSession() }
        self.change(to: .connected(session))
        for waiter in waiters { waiter.complete(.success(session.jid)) }
    }

    func hasEnded(_ end: XMPPConnectionEnd) {
        self.connection = nil
        if case .redirected(let host?) = end {
            self.log.redirected(to: host.name)
            // §4.9.3.19; the stream counts how often. The certificate stays the domain's.
            if self.connecting != nil { return self.attempt(host) }
            self.nextHost = host
        }
        let told = XMPPClientEnd(end)
        self.failSends(.ended(told))
        if !(self.stream?.pointee.canResume ?? false) {
            self.failUnacknowledged(self.disconnectWaiters.isEmpty ? .ended(told) : .disconnected)
        }
        guard self.connecting == nil else { return self.fail(.ended(told), told, end.retry) }
        self.planReconnect(told, end.retry)
        self.change(to: .closed(told))
        self.tellGone()
    }

    // MARK: Time

    func schedule(at time: NIODeadline) {
        if let timer = self.timer { self.context.timers.schedule(timer, at: time) }
    }

    func timerFired(_ number: Int) {
        let now = self.context.now
        for handler in self.stream?.pointee.takeOverdue(now: now) ?? [] { handler(.failure(.timedOut)) }
        self.connection?.timerFired(now: now)
        if let end = self.sessionEnd, now >= end { self.failUnacknowledged(Self.lost) }
        if now >= self.reconnectTime { self.begin([]) } else { self.watchTime() }
    }

    /// When the server has dropped the session, for calls that wait for acknowledgements.
    private var sessionEnd: NIODeadline? {
        self.connection == nil && !self.unacknowledged.isEmpty ? self.stream?.pointee.resumptionDeadline : nil
    }

    /// Watches, without a connection, the time of the next reconnect, and of calls that wait for a resumption.
    private func watchTime() {
        var deadline = min(self.reconnectTime, self.sessionEnd ?? .distantFuture)
        // A connection that has started has the stream's time in its hands.
        if self.stream?.pointee.hasWaiting ?? false, let time = self.stream?.pointee.deadline {
            deadline = min(deadline, time)
        }
        if deadline != .distantFuture { self.schedule(at: deadline) }
    }

    /// A later connect begins a new session: stanzas whose calls have failed are not sent again.
    private func forgetSession() {
        self.stream?.pointee.forgetResumption()
        self.failRequests()
    }

    private func failRequests() {
        self.failUnacknowledged(.disconnected)
        for handler in self.stream?.pointee.takeAllWaiting() ?? [] { handler(.failure(.connectionLost)) }
    }

    // MARK: Counts

    private var bytes: (sent: UInt64, received: UInt64) {
        self.stream.map { ($0.pointee.bytesSent, $0.pointee.bytesReceived) } ?? (0, 0)
    }

    var byteCounts: XMPPByteCounts {
        let (all, before) = (self.bytes, self.bytesBefore)
        return XMPPByteCounts(
            sent: all.sent,
            received: all.received,
            sentOnConnection: all.sent - before.sent,
            receivedOnConnection: all.received - before.received
        )
    }
}
