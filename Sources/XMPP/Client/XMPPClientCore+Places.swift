import LoopContext
import NIOCore
import Transport

// Where a client connects to, and through what.
extension XMPPClientCore {
    private var isWebSocket: Bool { self.configuration.webSocketPath != nil }

    /// Whether every connection uses TLS from the first byte.
    var isAlwaysSecure: Bool {
        self.configuration.encryption == .direct || self.isWebSocket && self.configuration.encryption != .off
    }

    private func layer(_ use: XMPPClientLoop.TLSKey.Use) throws(XMPPClientError) -> TLSLayer {
        try self.home.layer(
            XMPPClientLoop.TLSKey(
                domain: self.domain,
                use: use,
                verifies: self.configuration.verifies,
                authorityFile: self.configuration.authorityFile,
                certificateFile: self.configuration.certificateFile,
                keyFile: self.configuration.keyFile
            )
        )
    }

    func startTLSLayer() throws(XMPPClientError) -> TLSLayer? {
        self.configuration.encryption == .off || self.isWebSocket ? nil : try self.layer(.startTLS)
    }

    func makeConnector() throws(XMPPClientError) -> any ClientConnector {
        if self.configuration.peerRole == .recipient {
            throw .invalid("the stream was accepted from a peer; only the peer can connect again")
        }
        if let host = self.configuration.host {
            guard !host.isEmpty else { throw .invalid("a host is a name or an address, and it is empty") }
            let port = self.configuration.port.map { Int($0) } ?? self.usualPort
            return TCPConnector(
                context: self.context,
                targets: [Target(host: host, port: port)],
                layers: try self.layers(),
                racing: self.racing
            )
        }
        guard !self.isWebSocket else { throw .invalid("a WebSocket needs the host to connect to") }
        let encryption = self.configuration.encryption
        let kinds: ServiceKinds =
            switch encryption {
            case .off, .allowed: .standard
            case .direct: .direct
            case .preferred, .required: .both
            }
        let dns = try self.home.dns(self.configuration.nameServers)
        return ServiceConnector(
            context: self.context,
            domain: self.domain,
            kinds: kinds,
            dns: dns,
            layers: ServiceConnector.Layers(direct: encryption == .off ? [] : [try self.layer(.direct)]),
            racing: self.racing,
            // The system's resolver knows more sources than the DNS; it is used unless DNS servers are configured.
            resolver: self.configuration.nameServers.isEmpty ? nil : dns
        )
    }

    /// The connector to a host that the server named; `nil` if its requirements are missing, which `prepare` has
    /// reported.
    func makeDetour(to host: XMPPHost) -> TCPConnector? {
        guard let layers = try? self.layers() else { return nil }
        return TCPConnector(
            context: self.context,
            targets: [Target(host: host.name, port: host.port ?? self.usualPort)],
            layers: layers,
            racing: self.racing
        )
    }

    private var racing: AddressRacing { AddressRacing(choice: self.configuration.addressPreference) }

    private var usualPort: Int {
        if self.configuration.isComponent { return 5_347 }
        if self.isWebSocket { return self.configuration.encryption == .off ? 80 : 443 }
        return self.configuration.encryption == .direct ? 5_223 : 5_222
    }

    private func layers() throws(XMPPClientError) -> [any ConnectLayer] {
        guard let path = self.configuration.webSocketPath else {
            return self.configuration.encryption == .direct ? [try self.layer(.direct)] : []
        }
        let isSecure = self.configuration.encryption != .off
        let settings: WebSocketSettings
        do throws(WebSocketSettings.Problem) {
            settings = try .xmpp(path: path)
        } catch {
            throw .invalid(error.description)
        }
        let webSocket = WebSocketLayer(settings, isSecure: isSecure, receive: isSecure ? nil : self.context.receive)
        return isSecure ? [try self.layer(.webSocket), webSocket] : [webSocket]
    }
}

extension XMPPClientConfiguration.AddressPreference: AddressChoice {}

extension XMPPClientCore: XMPPConnectionObserver {
    func needsTLS(
        _ client: Int,
        channel: any Channel,
        before wire: Wire,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        guard let tls = self.tls else { return done(.failure(.cancelled)) }
        tls.begin(channel, client: client, target: self.target, position: .before(wire), done: done)
    }

    func ready(_ client: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) {
        guard client == self.epoch else { return }
        self.becameReady(XMPPSession(jid, readiness, peer: self.stream?.pointee.account.peer))
    }

    func received(_ client: Int, _ element: borrowing ElementView, now: NIODeadline) {
        self.deliver(element.element())
    }

    private func deliver(_ stanza: XMPPElement) { self.inbox.put(stanza, size: stanza.estimatedSize) }

    func received(_ client: Int, filtered stanza: XMPPElement, now: NIODeadline) -> Bool {
        if !stanza.isRequest { self.deliver(stanza) }
        return false
    }

    func wantsTimer(_ client: Int, at time: NIODeadline) {
        if client == self.epoch { self.schedule(at: time) }
    }

    func wrote(_ client: Int, bytes: Int) {}
    func ending(_ client: Int, unsent: Int) {}

    func ended(_ client: Int, _ end: XMPPConnectionEnd, now: NIODeadline) {
        if client == self.epoch { self.hasEnded(end) }
    }

    func writable(_ client: Int, now: NIODeadline) {
        while let connection = self.connection, connection.isWritable, let send = self.sends.popFirst() {
            if !send.waiter.isDone { self.send(send, on: connection) }
        }
    }

    func acknowledged(_ client: Int, count: Int, now: NIODeadline) {
        if client == self.epoch { self.acknowledged(count) }
    }
}
