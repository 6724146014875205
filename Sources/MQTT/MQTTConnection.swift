package import LoopContext
package import MQTTCodec
package import NIOCore
import SASL
package import Transport

/// One MQTT connection: the user of a wire.
///
/// It decodes each read in place, runs the session's actions and owns every write. Answers are collected in the loop's
/// scratch buffer while a read is decoded. Packets that the owner publishes then join them, and all leave in one write.
package final class MQTTConnection {
    /// The owner's number for the client.
    package let client: Int
    var loop: LoopContext { self.wire.loop }
    /// Outlives the connection; the owner stores it in its slab.
    let session: UnsafeMutablePointer<MQTTSession>
    let decoder: UnsafeMutablePointer<PacketDecoder>
    /// Kept alive by its connections.
    ///
    /// It does not own them: their wires do.
    let observer: any MQTTConnectionObserver
    package let wire: Wire
    /// State that only some connections need; created on first use.
    var extras: ConnectionExtras?
    /// Set when the connection must not be used any more; `ended` of the owner follows or has been called.
    var end: ConnectionEnd?
    var hasEnded = false
    var isFinishing = false
    /// DISCONNECT has been passed to the channel: it was the last packet ([MQTT-3.14.4-1]).
    var hasSaidGoodbye = false
    var isReading = false
    var isDecoding = false
    var finishesAfterRead = false
    /// An option requires extra checks of received packets.
    let isCareful: Bool
    var connackDeadline = NIODeadline.distantFuture
    /// Bytes passed on since the connection opened.
    package var bytesHanded: UInt64 { self.wire.bytesHanded }

    package init(
        client: Int,
        loop: LoopContext,
        session: UnsafeMutablePointer<MQTTSession>,
        observer: any MQTTConnectionObserver
    ) {
        self.client = client
        self.wire = Wire(loop)
        self.session = session
        self.observer = observer
        let options = session.pointee.options
        self.isCareful = options.isCareful
        self.decoder = .allocate(capacity: 1)
        let limit = options.maximumPacketSize ?? PacketProblem.largestPacket
        self.decoder.initialize(to: PacketDecoder(connection: .client(options.version), maximumPacketSize: limit))
    }

    deinit {
        self.decoder.deinitialize(count: 1)
        self.decoder.deallocate()
    }

    // MARK: Start

    /// Sends CONNECT on a new connection.
    ///
    /// - Parameters:
    ///   - connect: as returned by ``MQTTSession/connect(clientID:username:password:will:now:)``.
    ///   - deadline: the time by which CONNACK must arrive.
    ///   - isBare: whether no layer lies between the wire and the socket (``ConnectedChannel/isBare``).
    ///   - authenticator: adds its method and data, and answers AUTH (§4.12).
    package func start(
        _ connect: Connect,
        deadline: NIODeadline,
        isBare: Bool = true,
        authenticator: MQTTAuthenticator? = nil
    ) {
        self.begin(deadline: deadline, isBare: isBare)
        var connect = connect
        if var authenticator {
            do throws(SASLError) {
                connect.properties.entries += try authenticator.begin().entries
            } catch {
                return self.close(.notAuthenticated(error))
            }
            self.needsExtras.authenticator = authenticator
        }
        // No limit of the server is known yet ([MQTT-3.2.2-15]).
        connect.encode(as: connect.version, into: &self.wire.out.pointee)
        self.flush()
    }

    /// Sends raw bytes, valid or not, in place of CONNECT.
    ///
    /// The caller first calls ``MQTTSession/connectVerbatim(now:)`` of the session.
    package func start(verbatim bytes: [UInt8], deadline: NIODeadline, isBare: Bool = true) {
        self.begin(deadline: deadline, isBare: isBare)
        self.needsExtras.isVerbatim = true
        self.sendRaw(bytes)
    }

    private func begin(deadline: NIODeadline, isBare: Bool) {
        self.wire.isBare = isBare
        self.connackDeadline = deadline
        self.observer.wantsTimer(self.client, at: deadline)
    }

    // MARK: The owner's calls

    /// Whether a write would go to the kernel at once.
    package var isWritable: Bool { self.end == nil && !self.isFinishing && self.wire.isWritable }

    /// Sends SUBSCRIBE; `nil` if no identifier is free, no connection is up, or the packet is too large for the server.
    package func subscribe(_ subscriptions: [Subscription], properties: Properties = Properties()) -> PacketID? {
        guard let id = self.session.pointee.subscribe(subscriptions.count) else { return nil }
        guard self.write(.subscribe(Subscribe(id, subscriptions, properties: properties))) else {
            self.session.pointee.withdraw(id)
            return nil
        }
        self.flushUnlessReading()
        return id
    }

    /// Sends UNSUBSCRIBE; `nil` in the same cases as for SUBSCRIBE.
    package func unsubscribe(_ filters: [String], properties: Properties = Properties()) -> PacketID? {
        guard let id = self.session.pointee.unsubscribe(filters.count) else { return nil }
        guard self.write(.unsubscribe(Unsubscribe(id, filters: filters, properties: properties))) else {
            self.session.pointee.withdraw(id)
            return nil
        }
        self.flushUnlessReading()
        return id
    }

    /// Sends PINGREQ, on a connection that is up.
    package func ping() {
        guard self.session.pointee.state == .connected else { return }
        self.session.pointee.beginPing(now: self.loop.now)
        self.write(.pingReq)
        self.flushUnlessReading()
        self.updateTimer()
    }

    package var pingInterval: TimeAmount { self.session.pointee.pingInterval }

    /// Sends raw bytes, valid or not; the session does not know of them.
    package func sendRaw(_ bytes: [UInt8]) {
        self.append(bytes.count) { memory in
            memory.copyBytes(from: bytes)
            return bytes.count
        }
        self.flushUnlessReading()
    }

    /// Sends DISCONNECT, then FIN; bytes from the peer are read until its own FIN.
    ///
    /// Before MQTT 5 the packet is empty, and `disconnect` has no effect (3.1.1 §3.14).
    package func finish(_ disconnect: Disconnect = Disconnect()) {
        guard self.end == nil, !self.isFinishing else { return }
        // A failed write makes NIO read the socket until it is empty, while the decoder still works on this read.
        if self.isDecoding {
            self.finishesAfterRead = true
            if disconnect != Disconnect() { self.needsExtras.goodbye = disconnect }
            return
        }
        self.isFinishing = true
        self.session.pointee.disconnect(disconnect)
        if !self.write(.disconnect(disconnect)) { self.write(.disconnect(Disconnect())) }
        self.flush(isLast: true)
        self.hasSaidGoodbye = true
        self.wire.shutOutput()
    }

    /// The same, and ends a session that would outlive its owner (§3.14.2.2.2).
    package func finishForGood() {
        let endsSession =
            self.session.pointee.options.sessionEndsWithOwner
            && self.session.pointee.limits.sessionExpiry > 0
        self.finish(endsSession ? Disconnect(properties: [.sessionExpiryInterval(0)]) : Disconnect())
    }

    /// Closes at once.
    package func abort() { self.close(.aborted) }

    // MARK: Time

    package func timerFired(now: NIODeadline) {
        guard self.end == nil else { return }
        if now >= self.connackDeadline { return self.close(.connackTimedOut) }
        var expired: [InFlightPublish] = []
        let action = self.session.pointee.timerFired(now: now) { expired.append($0) }
        // Called after the session's own turn, because the owner may access the session or close the connection.
        for publish in expired { self.observer.abandoned(self.client, publish, .timedOut, now: now) }
        guard self.end == nil else { return }
        if self.session.pointee.options.dupTimeout != nil, self.repeatOverdue(now: now) { self.flush() }
        guard self.end == nil else { return }
        switch action {
        case .none: break
        case .ping:
            self.write(.pingReq)
            self.flush()
        case .pingTimedOut: return self.close(.pingTimedOut)
        }
        self.updateTimer()
    }

    func updateTimer() {
        if let deadline = self.session.pointee.deadline { self.observer.wantsTimer(self.client, at: deadline) }
    }

    // MARK: Errors

    /// Sends the reason to an MQTT 5 server, and closes (§4.13.1).
    func refuse(_ reason: ReasonCode, _ end: ConnectionEnd) {
        guard self.end == nil else { return }
        if self.session.pointee.options.version == .v5, self.session.pointee.state == .connected {
            self.write(.disconnect(Disconnect(reason: reason)))
            self.flush()
        }
        self.close(end)
    }

    /// Refuses a packet of the server that breaks a rule.
    func refuse(_ reason: ReasonCode, _ words: String) { self.refuse(reason, .violation(reason, words)) }

    func close(_ end: ConnectionEnd) {
        guard self.end == nil else { return }
        self.end = end
        self.wire.dropUnwritten()
        let now = self.loop.refresh()
        self.observer.ending(self.client, unsent: self.wire.countTaken())
        self.wire.close()
        self.session.pointee.connectionLost { publish, timedOut in
            self.observer.abandoned(self.client, publish, .connectionLost(timedOutBefore: timedOut), now: now)
        }
        guard !self.hasEnded else { return }
        self.hasEnded = true
        self.observer.ended(self.client, end, now: now)
    }
}
