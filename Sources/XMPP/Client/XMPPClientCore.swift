import LoopContext
import NIOCore
import Transport
import XMPPCodec

/// A client on its event loop: stream, connection and calls that wait.
final class XMPPClientCore: LoopTenant {
    let home: XMPPClientLoop
    let configuration: XMPPClientConfiguration
    let inbox: XMPPInbox
    private let states: Broadcast<XMPPClientState>
    private let log: XMPPClientLog
    let ping = XMPPPing()
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
    private var connectWaiter: XMPPClientWaiter<JID>?
    private var disconnectWaiters: [XMPPClientWaiter<Void>] = []
    /// Stanzas that wait because the server reads too slowly.
    var sends: CircularBuffer<(stanza: XMPPElement, waiter: XMPPClientWaiter<Void>)> = []

    init(
        _ configuration: XMPPClientConfiguration,
        _ eventLoop: any EventLoop,
        _ inbox: XMPPInbox,
        _ states: Broadcast<XMPPClientState>,
        _ log: XMPPClientLog
    ) {
        self.configuration = configuration
        self.inbox = inbox
        self.states = states
        self.log = log
        self.home = XMPPClientLoop.of(eventLoop)
        let place = self.home.tenants.add(self)
        self.index = place.index
        self.timer = place.timers[0]
    }

    deinit {
        self.stream?.deinitialize(count: 1)
        self.stream?.deallocate()
    }

    var context: LoopContext { self.home.context }

    private func change(to state: XMPPClientState) {
        self.log.tell(state, domain: self.domain)
        self.states.send(state)
    }

    // MARK: Connecting

    func connect(_ waiter: XMPPClientWaiter<JID>) {
        guard self.connectWaiter == nil, self.connection == nil else {
            waiter.complete(.failure(.alreadyConnected))
            return
        }
        do throws(XMPPClientError) {
            try self.prepare()
        } catch {
            waiter.complete(.failure(error))
            return
        }
        self.connectWaiter = waiter
        self.deadline = self.context.now + TimeAmount(self.configuration.connectTimeout)
        self.change(to: .connecting)
        // XEP-0198 §5: a session is resumed at the server's preferred location, or else at any that allows it.
        let place = self.stream.flatMap { $0.pointee.canResume ? $0.pointee.resumptionLocation : nil }
        self.attempt(self.nextHost.take() ?? place.flatMap { XMPPHost($0) }, mayFallBack: true)
    }

    /// Makes what all connections share; again if it failed.
    private func prepare() throws(XMPPClientError) {
        guard self.stream == nil else { return }
        let account = try self.configuration.account()
        self.domain = account.jid.domain
        self.tls = try self.startTLSLayer()
        self.connector = try self.makeConnector()
        let stream = UnsafeMutablePointer<XMPPStream>.allocate(capacity: 1)
        stream.initialize(to: XMPPStream(account, options: self.configuration.streamOptions(self.home.keys)))
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
        guard let stream = self.stream, let connector else { return }
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
                    connection.plugIn([self.ping])
                    self.connection = connection
                }
                return connection
            },
            done: { result in
                guard epoch == self.epoch else {
                    if case .success(let connected) = result { connected.channel.close(promise: nil) }
                    return
                }
                if host != nil, mayFallBack, case .failure = result {
                    self.connection = nil
                    self.attempt(nil)
                    return self.watchRequests()
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
            self.connection?.start(
                deadline: self.deadline,
                isBare: connected.isBare,
                isSecure: connected.isDirectTLS || self.isAlwaysSecure
            )
        case .failure(let error):
            self.connection = nil
            let end = XMPPClientEnd(kind: error.kind, words: error.description, mayHeal: !error.isLocal)
            self.fail(.noConnection(end), end)
        }
    }

    // MARK: Leaving

    func giveUp(_ error: XMPPClientError) {
        guard self.connectWaiter != nil else { return }
        self.leave()
        self.fail(error, XMPPClientEnd(.aborted))
    }

    /// Abandons the connection and ignores its further events.
    private func leave() {
        self.epoch += 1
        let connection = self.connection
        self.connection = nil
        connection?.abort()
        self.watchRequests()
    }

    func cancel(_ waiter: XMPPClientWaiter<JID>) {
        if self.connectWaiter === waiter { self.giveUp(.cancelled) }
    }

    private func fail(_ error: XMPPClientError, _ end: XMPPClientEnd) {
        let waiter = self.connectWaiter
        self.connectWaiter = nil
        self.watchRequests()
        self.change(to: .closed(end))
        waiter?.complete(.failure(error))
        self.tellGone()
    }

    private func tellGone() {
        let waiting = self.disconnectWaiters
        self.disconnectWaiters = []
        for waiter in waiting { waiter.complete(.success(())) }
    }

    func disconnect(_ waiter: XMPPClientWaiter<Void>) {
        guard self.connectWaiter == nil else {
            self.giveUp(.disconnected)
            self.failRequests()
            waiter.complete(.success(()))
            return
        }
        guard let connection = self.connection else {
            self.failRequests()
            waiter.complete(.success(()))
            return
        }
        self.disconnectWaiters.append(waiter)
        self.failSends(.disconnected)
        if self.disconnectWaiters.count == 1 { self.change(to: .disconnecting) }
        connection.finish()
    }

    func letGo() {
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
        let waiter = self.connectWaiter
        self.connectWaiter = nil
        self.change(to: .connected(session))
        waiter?.complete(.success(session.jid))
    }

    func hasEnded(_ end: XMPPConnectionEnd) {
        self.connection = nil
        if case .redirected(let host?) = end {
            self.log.redirected(to: host.name)
            // §4.9.3.19; the stream counts how often. The certificate stays the domain's.
            if self.connectWaiter != nil { return self.attempt(host) }
            self.nextHost = host
        }
        let told = XMPPClientEnd(end)
        self.failSends(.ended(told))
        self.watchRequests()
        guard self.connectWaiter == nil else { return self.fail(.ended(told), told) }
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
        self.watchRequests()
    }

    /// Requests that wait for a resumption have the same timeout as others.
    private func watchRequests() {
        // A connection that has started has the stream's time in its hands.
        guard self.stream?.pointee.hasWaiting ?? false, let deadline = self.stream?.pointee.deadline else { return }
        self.schedule(at: deadline)
    }

    private func failRequests() {
        for handler in self.stream?.pointee.takeAllWaiting() ?? [] { handler(.failure(.connectionLost)) }
    }
}
