import LoopContext
import NIOCore
import NIOPosix
import TestSupport
import Transport
import XMPP

/// One client on real sockets, one connection after the other, on an event loop of its own.
final class LiveClient: Sendable {
    /// How it gets to the server.
    enum Way: String, Sendable, CaseIterable {
        case clear, startTLS, direct, webSocket, secureWebSocket
    }

    struct NotReady: Error, CustomStringConvertible {
        let description: String
    }

    /// Everything of the client, on its loop.
    final class State: XMPPConnectionObserver {
        let context: LoopContext
        let place: StreamPlace
        let server: XMPPServer
        let way: Way
        let modules: [any XMPPHandler]
        let heard: Heard
        private var connector: TCPConnector?
        private var tls: TLSLayer?
        private var timers: TimerOwner?
        private var timer: TimerID?
        private(set) var connection: XMPPConnection?
        private(set) var readiness: XMPPReadiness?
        private(set) var end: XMPPConnectionEnd?
        private(set) var acknowledged = 0
        /// Bodies of the messages that came.
        private(set) var bodies: [String] = []
        private var waiting: [(condition: (State) -> Bool, promise: EventLoopPromise<Void>)] = []

        init(
            _ context: LoopContext,
            _ place: StreamPlace,
            _ server: XMPPServer,
            _ way: Way,
            _ modules: [any XMPPHandler],
            _ heard: Heard
        ) {
            self.context = context
            self.place = place
            self.server = server
            self.way = way
            self.modules = modules
            self.heard = heard
            heard.changed = { [weak self] in self?.changed() }
        }

        /// The module of this kind.
        func module<Module: XMPPHandler>(_ type: Module.Type) throws -> Module {
            for module in self.modules { if let module = module as? Module { return module } }
            throw NotReady(description: "no \(type)")
        }

        private func settings(alpn: [String] = []) -> TLSSettings {
            var settings = TLSSettings()
            settings.authorityFile = self.server.certificates.authority
            settings.xmppDomain = self.server.domain
            settings.applicationProtocols = alpn
            return settings
        }

        private func layers() throws -> (port: Int, [any ConnectLayer]) {
            let webSocket = try WebSocketSettings.xmpp(path: self.server.kind.webSocketPath)
            switch self.way {
            case .clear, .startTLS: return (self.server.port, [])
            case .direct:
                let tls = try TLSLayer(self.settings(alpn: ["xmpp-client"]), loop: self.context)
                return (self.server.directTLSPort, [tls])
            case .webSocket:
                return (
                    self.server.webSocketPort,
                    [WebSocketLayer(webSocket, isSecure: false, receive: self.context.receive)]
                )
            case .secureWebSocket:
                let tls = try TLSLayer(self.settings(), loop: self.context)
                return (
                    self.server.secureWebSocketPort,
                    [tls, WebSocketLayer(webSocket, isSecure: true, receive: nil)]
                )
            }
        }

        func connect() throws {
            self.readiness = nil
            self.end = nil
            let (port, layers) = try self.layers()
            let connector = TCPConnector(
                context: self.context,
                targets: [Target(host: "127.0.0.1", port: port)],
                layers: layers
            )
            self.connector = connector
            if self.timers == nil {
                let owner = self.context.timers.addOwner { [weak self] _, _ in
                    guard let self else { return }
                    self.connection?.timerFired(now: self.context.now)
                }
                self.timers = owner
                self.timer = self.context.timers.register(owner)
            }
            let deadline = self.context.refresh() + .seconds(60)
            let connection = XMPPConnection(
                client: 0,
                loop: self.context,
                stream: self.place.pointer,
                observer: self
            )
            connection.plugIn(self.modules)
            self.connection = connection
            connector.connect(client: 0, deadline: deadline, handler: { connection.makeHandler() }) { result in
                switch result {
                case .success(let connected):
                    self.context.refresh()
                    let isSecure = self.way == .direct || self.way == .secureWebSocket
                    connection.start(deadline: deadline, isBare: connected.isBare, isSecure: isSecure)
                case .failure(let error): self.ended(0, .notConnected(error.reason), now: self.context.now)
                }
            }
        }

        func needsTLS(
            _ client: Int,
            channel: any Channel,
            before wire: Wire,
            done: @escaping (Result<Void, ConnectError.Reason>) -> Void
        ) {
            do {
                let layer = try TLSLayer(self.settings(), loop: self.context)
                self.tls = layer
                let target = Target(host: "127.0.0.1", port: self.server.port)
                layer.begin(channel, client: client, target: target, position: .before(wire), done: done)
            } catch {
                done(.failure(.cancelled))
            }
        }

        func ready(_ client: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) {
            self.readiness = readiness
            self.changed()
        }

        func received(_ client: Int, _ element: borrowing ElementView, now: NIODeadline) {
            if element.kind == .message, let body = element.element().child("body")?.text { self.bodies.append(body) }
            self.changed()
        }

        func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool {
            if stanza.name == "message", let body = stanza.child("body")?.text { self.bodies.append(body) }
            self.changed()
            return false
        }

        func acknowledged(_ client: Int, count: Int, now: NIODeadline) {
            self.acknowledged += count
            self.changed()
        }

        func wrote(_ client: Int, bytes: Int) {}
        func writable(_ client: Int, now: NIODeadline) {}
        func ending(_ client: Int, unsent: Int) {}
        func ended(_ client: Int, _ end: XMPPConnectionEnd, now: NIODeadline) {
            self.end = end
            self.connection = nil
            self.changed()
        }

        func wantsTimer(_ client: Int, at: NIODeadline) {
            guard let timer = self.timer else { return }
            self.context.timers.schedule(timer, at: at)
        }

        func wait(_ promise: EventLoopPromise<Void>, until condition: @escaping (State) -> Bool) {
            self.waiting.append((condition, promise))
            self.changed()
        }

        /// For tests whose modules have heard of something.
        func changed() {
            let ready = self.waiting.filter { $0.condition(self) || self.end != nil }
            self.waiting.removeAll { $0.condition(self) || self.end != nil }
            for entry in ready {
                if entry.condition(self) {
                    entry.promise.succeed(())
                } else {
                    entry.promise.fail(NotReady(description: self.end?.description ?? "gone"))
                }
            }
        }
    }

    /// In the clear a loop whose sockets have no channels.
    private let group: any EventLoopGroup
    private let eventLoop: any EventLoop
    private let state: NIOLoopBound<State>

    init(
        _ server: XMPPServer,
        _ account: XMPPAccount,
        _ way: Way,
        _ options: XMPPStreamOptions,
        modules: @escaping @Sendable (Heard) -> [any XMPPHandler] = { _ in [] }
    ) async throws {
        let socketLoop = way == .clear && SocketLoop.isAvailable ? SocketLoop() : nil
        self.group = socketLoop ?? MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = self.group.next()
        self.eventLoop = loop
        var options = options
        switch way {
        case .clear:
            options.tlsPolicy = .off
            options.allowsPlainWithoutTLS = true
        case .startTLS: options.tlsPolicy = .required
        case .direct: options.tlsPolicy = .direct
        case .webSocket:
            options.framing = .webSocket
            options.tlsPolicy = .off
            options.allowsPlainWithoutTLS = true
        case .secureWebSocket:
            options.framing = .webSocket
            options.tlsPolicy = .direct
        }
        let all = options
        self.state = try await loop.submit {
            let place = StreamPlace(XMPPStream(account, options: all))
            let heard = Heard()
            let context = LoopContext(eventLoop: loop)
            socketLoop?.adopt(context)
            let state = State(context, place, server, way, modules(heard), heard)
            return NIOLoopBound(state, eventLoop: loop)
        }.get()
    }

    /// Connects, and returns when the stream is ready.
    func connect() async throws {
        try await self.run { try $0.connect() }
        try await self.until { $0.readiness != nil }
    }

    func run<Answer: Sendable>(_ body: @escaping @Sendable (State) throws -> Answer) async throws -> Answer {
        let state = self.state
        return try await self.eventLoop.submit { try body(state.value) }.get()
    }

    /// Returns when the condition holds, and throws when the connection ends first.
    func until(_ condition: @escaping @Sendable (State) -> Bool) async throws {
        let (state, loop) = (self.state, self.eventLoop)
        try await loop.flatSubmit {
            let promise = loop.makePromise(of: Void.self)
            state.value.wait(promise, until: condition)
            return promise.futureResult
        }.get()
    }

    /// Starts something on the connection and returns what it is answered.
    func ask<Value: Sendable>(
        _ start:
            @escaping @Sendable (
                XMPPConnection, State, @escaping (Result<Value, XMPPRequestError>) -> Void
            ) throws -> Void
    ) async throws -> Value {
        let (state, loop) = (self.state, self.eventLoop)
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: Value.self)
            do {
                guard let connection = state.value.connection else { throw NotReady(description: "no connection") }
                state.value.context.refresh()
                try start(connection, state.value) { promise.completeWith($0.mapError { $0 as any Error }) }
            } catch {
                promise.fail(error)
            }
            return promise.futureResult
        }.get()
    }

    /// Takes leave, and returns how that ended.
    func leave() async throws -> XMPPConnectionEnd? {
        try await self.run { state in
            state.context.refresh()
            state.connection?.finish()
        }
        try? await self.until { $0.end != nil }
        return try await self.run { $0.end }
    }

    func shutdown() async throws {
        try await self.run { state in
            state.connection?.abort()
            state.context.timers.stop()
        }
        try await self.group.shutdownGracefully()
    }
}
