import NIOCore

/// The state that the connections of a server share; it belongs to the event loop.
final class LiveHub {
    let routes: [String: LiveRoute]
    let hosts: LiveHosts
    let limits: LiveLimits
    let counter: LiveCounter
    private let eventLoop: any EventLoop
    private var connections: [ObjectIdentifier: LiveConnection] = [:]
    /// The text of the latest event while a stream is open: kept longer, it would be out of date.
    private(set) var latest: ByteBuffer?
    /// Whether ``latest`` is the last event, which is kept.
    private(set) var isOver = false
    private var nextID: UInt64 = 1
    /// Set when the server closes.
    private var closed: EventLoopPromise<Void>?

    init(
        routes: [String: LiveRoute],
        hosts: LiveHosts,
        limits: LiveLimits,
        counter: LiveCounter,
        eventLoop: any EventLoop
    ) {
        self.routes = routes
        self.hosts = hosts
        self.limits = limits
        self.counter = counter
        self.eventLoop = eventLoop
    }

    /// A time of ``limits``.
    func time(_ seconds: Double) -> TimeAmount { .nanoseconds(Int64(seconds * 1e9)) }

    /// Nil if there are as many connections as there may be.
    func makeConnection() -> LiveConnection? {
        guard self.connections.count < self.limits.connections, self.closed == nil else { return nil }
        let connection = LiveConnection(self)
        self.connections[ObjectIdentifier(connection)] = connection
        return connection
    }

    func remove(_ connection: LiveConnection) {
        self.connections[ObjectIdentifier(connection)] = nil
        if self.connections.isEmpty { self.closed?.succeed() }
    }

    func streamBegins() { self.counter.streamBegins() }

    func streamEnds() {
        self.counter.streamEnds()
        if self.counter.listeners == 0, !self.isOver { self.latest = nil }
    }

    func send(_ event: LiveEvent) {
        guard !self.isOver else { return }
        self.isOver = event.isLast
        let text = LiveText.event(event, id: self.nextID)
        self.nextID += 1
        if event.isLast || self.counter.listeners > 0 { self.latest = text }
        for connection in self.connections.values { connection.offer(text, isLast: event.isLast) }
    }

    /// Ends all connections: each after what it has begun to write, at the latest after ``LiveLimits/lingerSeconds``.
    func close() -> EventLoopFuture<Void> {
        let promise = self.eventLoop.makePromise(of: Void.self)
        self.closed = promise
        for connection in self.connections.values { connection.finish() }
        if self.connections.isEmpty { promise.succeed() }
        self.eventLoop.assumeIsolated().scheduleTask(in: self.time(self.limits.lingerSeconds)) {
            for connection in self.connections.values { connection.close() }
        }
        return promise.futureResult
    }
}
