import LoopContext
import MQTTCodec
import NIOCore
import SASL
import Transport

extension ClientCore {
    /// Connects to `target` or the configured server; with `begins` the client's session does not belong to that
    /// server.
    ///
    /// With `new` the client has this configuration from now on, unless it has another `identity` by now.
    func connect(
        _ waiter: Waiter<MQTTConnectResult>,
        _ new: MQTTClientConfiguration? = nil,
        target: Target?,
        begins: Bool,
        identity: Int? = nil
    ) {
        guard !waiter.isDone else { return }
        guard !self.isEarlier(identity) else { return waiter.fail(.cancelled) }
        guard self.state == .created || self.state == .closed else { return waiter.fail(.alreadyConnected) }
        let configuration = new ?? self.configuration
        if let words = configuration.problem ?? target?.problem { return waiter.fail(.invalid(words)) }
        if let error = self.storeProblem(of: configuration.clientID) { return waiter.fail(error) }
        self.epoch += 1
        self.connectWaiter = waiter
        self.connectDeadline = self.context.now + TimeAmount(configuration.timeouts.connect)
        self.isPreparing = true
        self.change(to: .connecting)
        guard let new, new.clientID != self.configuration.clientID else {
            if let new, new.isChanged(from: self.configuration) { self.adopt(new) }
            self.prepare(target ?? self.configuration.target, begins: begins)
            return self.releaseHeld()
        }
        // The changes of the old identifier are in the store before the store is read for the new one. No message
        // adds to them: later ones are held.
        self.forgetStored()
        self.whenStored {
            self.adopt(new)
            self.prepare(target ?? new.target, begins: begins)
            self.releaseHeld()
        }
        self.updateTimer()
    }

    private func prepare(_ target: Target, begins: Bool) {
        let epoch = self.epoch
        self.session.pointee.isOfAnotherServer = begins && self.keepsSession
        self.seed.log.connecting(to: target.host, port: target.port, clientID: self.clientID)
        self.whenLoaded { error in
            guard self.epoch == epoch, self.isPreparing else { return }
            if let error {
                self.failConnect(error)
            } else if self.configuration.rawConnect != nil {
                self.open(target, MQTTCredentials.Fields())
            } else {
                self.findLogin(target)
            }
        }
        self.settle()
    }

    private func findLogin(_ target: Target) {
        let configuration = self.configuration
        switch configuration.credentials {
        case .none, .password:
            if configuration.credentialsProvider == nil {
                return self.loggedIn(target, self.fields(of: configuration.credentials))
            }
        case .tokenFile, .alibabaCloud: break
        }
        let (seed, epoch, id) = (self.seed, self.epoch, self.clientID)
        Task {
            let outcome: Result<MQTTCredentials.Fields, MQTTClientError>
            do {
                let credentials = try await configuration.credentialsProvider?(id) ?? configuration.credentials
                outcome = .success(try credentials.fields(clientID: id, keepAlive: configuration.keepAlive))
            } catch {
                let mayHeal = (error as? MQTTCredentialsError)?.mayHeal ?? true
                outcome = .failure(mayHeal ? .noCredentials("\(error)") : .invalid("\(error)"))
            }
            seed.executeIfLive { core in
                if core.epoch == epoch, core.isPreparing { core.loggedIn(target, outcome) }
            }
        }
    }

    private func fields(of credentials: MQTTCredentials) -> Result<MQTTCredentials.Fields, MQTTClientError> {
        do throws(MQTTCredentialsError) {
            return .success(try credentials.fields(clientID: self.clientID, keepAlive: self.configuration.keepAlive))
        } catch {
            return .failure(.invalid("\(error)"))
        }
    }

    private func loggedIn(_ target: Target, _ login: Result<MQTTCredentials.Fields, MQTTClientError>) {
        switch login {
        case .success(let fields): self.open(target, fields)
        case .failure(let error): self.failConnect(error)
        }
    }

    /// The authenticator for AUTH; an unusable mechanism is an error before anything is sent.
    func makeAuthenticator() throws(SASLError) -> MQTTAuthenticator? {
        guard self.configuration.version == .v5, let authentication = self.configuration.authentication else {
            return nil
        }
        let mechanism = try authentication.make(self.home.keys)
        return MQTTAuthenticator { mechanism }
    }

    private func open(_ target: Target, _ login: MQTTCredentials.Fields) {
        let opening: Opening
        do throws(MQTTClientError) {
            opening = try self.opening(login)
        } catch {
            return self.failConnect(error)
        }
        if let connect = self.configuration.transport.connect { return self.open(target, connect, opening) }
        if self.connectorTarget != target {
            self.dropConnector()
            self.connector = TCPConnector(
                context: self.context,
                targets: [target],
                layers: self.home.borrowLayers(self.configuration.transport),
                racing: self.configuration.racing,
                lookup: self.seed.lookup
            )
            self.connectorTarget = target
        }
        self.isPreparing = false
        let epoch = self.epoch
        self.connector?.connect(
            client: 0,
            deadline: self.connectDeadline,
            handler: { self.makeConnection().makeHandler() },
            done: { result in self.opened(result, opening, epoch: epoch) }
        )
        self.updateTimer()
    }

    func dropConnector() {
        guard let connector = self.connector else { return }
        self.connector = nil
        self.connectorTarget = nil
        connector.retire()
        self.home.returnLayers(self.configuration.transport)
    }

    /// The CONNECT; all state of the last connection ends here.
    func packet(_ login: MQTTCredentials.Fields) -> Connect {
        let configuration = self.configuration
        return self.session.pointee.connect(
            clientID: self.clientID,
            username: login.userName,
            password: login.password,
            will: configuration.will,
            now: self.context.now
        )
    }

    func makeConnection() -> MQTTConnection {
        let connection = MQTTConnection(client: self.epoch, loop: self.context, session: self.session, observer: self)
        self.connection = connection
        return connection
    }

    private func opened(_ result: Result<ConnectedChannel, ConnectError>, _ opening: Opening, epoch: Int) {
        guard epoch == self.epoch, self.state == .connecting else {
            if case .success(let connected) = result { connected.channel?.close(promise: nil) }
            return
        }
        switch result {
        case .success(let connected):
            self.channel = connected.channel
            if let connection = self.connection { self.start(connection, opening, isBare: connected.isBare) }
        case .failure(let error):
            self.connection = nil
            self.failConnect(.noConnection(MQTTConnectFailure(kind: error.kind, words: error.description)))
        }
    }

    /// Ends an attempt that has no connection yet; does nothing without an attempt.
    func failConnect(_ error: MQTTClientError) {
        guard self.state == .connecting, self.connection == nil else { return }
        let waiter = self.connectWaiter
        self.connectWaiter = nil
        self.isPreparing = false
        self.connectDeadline = .distantFuture
        self.transportTask.take()?.cancel()
        self.whenStored = nil
        // Later results of this attempt are ignored.
        self.epoch += 1
        self.connector?.cancelAll()
        self.change(to: .closed)
        self.tell(error == .disconnected || error == .shutDown ? .closed : .failed(error))
        waiter?.fail(error)
        self.failRaw(error)
        for waiter in self.disconnectWaiters { waiter.complete(.success(())) }
        self.disconnectWaiters = []
        self.settle()
    }

    /// The task that waits for the connection was cancelled.
    func cancelConnect(_ waiter: Waiter<MQTTConnectResult>) {
        guard self.connectWaiter === waiter else { return }
        self.giveUpConnect(.cancelled)
    }

    private func giveUpConnect(_ error: MQTTClientError) {
        if let connection = self.connection {
            let waiter = self.connectWaiter
            self.connectWaiter = nil
            connection.abort()
            waiter?.fail(error)
        } else {
            self.failConnect(error)
        }
    }

    // MARK: Disconnecting

    /// With `keepsQueue` unsent messages and their callers stay for the next connection.
    ///
    /// They stay too if the client has another `identity` by now: its messages are not meant.
    func disconnect(_ waiter: Waiter<Void>, _ disconnect: Disconnect, keepsQueue: Bool, identity: Int? = nil) {
        if !keepsQueue, !self.isEarlier(identity) { self.endWaiting() }
        switch self.state {
        case .created, .closed:
            waiter.complete(.success(()))
        case .connecting:
            self.disconnectWaiters.append(waiter)
            self.giveUpConnect(.disconnected)
        case .connected:
            self.disconnectWaiters.append(waiter)
            self.disconnectDeadline = self.context.now + TimeAmount(self.configuration.timeouts.disconnect)
            self.change(to: .disconnecting)
            // Unread bytes would hold up the server's FIN.
            self.updateReading()
            self.connection?.finish(disconnect)
        case .disconnecting:
            self.disconnectWaiters.append(waiter)
        }
        self.settle()
    }

    /// Closes without DISCONNECT, so the server publishes the will.
    func abort() {
        switch self.state {
        case .created, .closed: break
        case .connecting: self.giveUpConnect(.disconnected)
        case .connected, .disconnecting: self.connection?.abort()
        }
    }
}

extension Target {
    /// The reason why this address cannot be used.
    fileprivate var problem: String? {
        if self.host.isEmpty { return "a host is needed" }
        return self.port == 0 ? "port 0 is no port" : nil
    }
}

extension MQTTClientConfiguration {
    var target: Target { Target(host: self.host, port: Int(self.port ?? self.transport.defaultPort)) }

    /// Settings that cannot work, even with `validates` set to `false`.
    var problem: String? {
        if let words = self.target.problem { return words }
        if !(1...65_535).contains(self.limits.window) { return "a window holds 1 to 65,535 messages" }
        if self.limits.inbox < 1 { return "an inbox holds at least 1 message" }
        if self.limits.inboxBytes < 1 { return "an inbox holds at least 1 byte" }
        if self.receiveMaximum == 0 { return "a receive maximum of 0 is forbidden (§3.1.2.11.3)" }
        // A number that is not one is in no range.
        if !(0...1).contains(self.keepAliveJitter) { return "a keep-alive jitter is a part of it, from 0 to 1" }
        if self.maximumPacketSize == 0 { return "a maximum packet size of 0 is forbidden (§3.1.2.11.4)" }
        return nil
    }
}
