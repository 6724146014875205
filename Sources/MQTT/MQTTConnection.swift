package import LoopContext
package import MQTTCodec
package import NIOCore
import SASL
import Transport

/// One MQTT connection on a channel: the last handler of its pipeline.
///
/// It decodes what is read where it lies, runs the session's actions and owns every write. What it has to answer
/// is collected in the loop's scratch buffer while a read is decoded; what the owner publishes then joins it, and
/// all leave in one write.
package final class MQTTConnection {
    /// The owner's number for the client.
    package let client: Int
    let loop: LoopContext
    /// Outlives the connection; the owner keeps it in its slab.
    let session: UnsafeMutablePointer<MQTTSession>
    let decoder: UnsafeMutablePointer<PacketDecoder>
    /// Kept alive by its connections; it does not own them in turn, their channels do.
    let observer: any MQTTConnectionObserver
    var context: ChannelHandlerContext?
    /// The context's: it makes one of its pipeline's each time it is asked.
    var channel: (any Channel)?
    /// What only some connections need; made for those.
    var extras: ConnectionExtras?
    /// Written to without the channel as long as that has nothing of its own to write, and nothing lies between.
    var socket = DirectSocket()
    /// Set once the connection must not be used any more; the last word to the owner follows or has been said.
    var end: ConnectionEnd?
    var hasEnded = false
    var isFinishing = false
    /// DISCONNECT has been handed to the channel: it was the last packet ([MQTT-3.14.4-1]).
    var hasSaidGoodbye = false
    var isReading = false
    var isDecoding = false
    var finishesAfterRead = false
    var isFlushing = false
    /// The kernel did not take all of the last write.
    var isBlocked = false
    /// Whether the current read turn brought bytes, and whether the last one brought the peer's FIN.
    var hasRead = false
    var sawFIN = false
    /// Nothing stands between this handler and the socket.
    var isBare = true
    /// What is received is looked at closely: an option wants something about it.
    let isCareful: Bool
    var connackDeadline = NIODeadline.distantFuture
    /// Bytes handed to the channel that the kernel had not taken when last asked.
    var pendingBytes = 0
    /// Bytes handed to the channel, or to the kernel at once, since it opened.
    package internal(set) var bytesHanded: UInt64 = 0

    package init(
        client: Int,
        loop: LoopContext,
        session: UnsafeMutablePointer<MQTTSession>,
        maximumPacketSize: Int?,
        observer: any MQTTConnectionObserver
    ) {
        self.client = client
        self.loop = loop
        self.session = session
        self.observer = observer
        self.isCareful = session.pointee.options.isCareful
        self.decoder = .allocate(capacity: 1)
        self.decoder.initialize(
            to: PacketDecoder(
                role: .client(session.pointee.options.version),
                maximumPacketSize: maximumPacketSize ?? 268_435_460
            )
        )
    }

    deinit {
        self.decoder.deinitialize(count: 1)
        self.decoder.deallocate()
    }

    // MARK: Coming up

    /// Sends CONNECT on the channel that has just come up.
    ///
    /// - Parameters:
    ///   - connect: as ``MQTTSession/connect(clientID:username:password:will:now:)`` made it.
    ///   - deadline: when CONNACK has to be there.
    ///   - isBare: whether nothing stands between this handler and the socket (``ConnectedChannel/isBare``).
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
        // No limit of the server's is known yet ([MQTT-3.2.2-15]).
        connect.encode(as: connect.version, into: &self.loop.scratch.pointee)
        self.flush()
    }

    /// Sends these bytes in place of CONNECT, right or wrong.
    ///
    /// The session must have been told, by ``MQTTSession/connectVerbatim(now:)``.
    package func start(verbatim bytes: [UInt8], deadline: NIODeadline, isBare: Bool = true) {
        self.begin(deadline: deadline, isBare: isBare)
        self.needsExtras.isVerbatim = true
        self.sendRaw(bytes)
    }

    private func begin(deadline: NIODeadline, isBare: Bool) {
        self.isBare = isBare
        self.connackDeadline = deadline
        self.observer.wantsTimer(self.client, at: deadline)
    }

    // MARK: What the owner asks for

    /// Whether a write would go to the kernel at once.
    package var isWritable: Bool {
        self.end == nil && !self.isFinishing && self.channel?.isWritable ?? false
    }

    /// Sends SUBSCRIBE; `nil` when no identifier is free, nobody is connected, or the server does not take a packet so
    /// large.
    package func subscribe(_ subscriptions: [Subscription], properties: Properties = Properties()) -> PacketID? {
        guard let id = self.session.pointee.subscribe(subscriptions.count) else { return nil }
        guard self.write(.subscribe(Subscribe(id, subscriptions, properties: properties))) else {
            self.session.pointee.withdraw(id)
            return nil
        }
        self.flushUnlessReading()
        return id
    }

    /// The same for UNSUBSCRIBE.
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
        self.session.pointee.pings(now: self.loop.now)
        self.write(.pingReq)
        self.flushUnlessReading()
        self.updateTimer()
    }

    /// Sends any bytes, right or wrong; the session knows nothing of them.
    package func sendRaw(_ bytes: [UInt8]) {
        self.append(bytes.count) { memory in
            memory.copyBytes(from: bytes)
            return bytes.count
        }
        self.flushUnlessReading()
    }

    /// DISCONNECT, then FIN; what the peer still sends is read until its own FIN.
    ///
    /// Before MQTT 5 the packet says nothing, whatever `disconnect` says (3.1.1 §3.14).
    package func finish(_ disconnect: Disconnect = Disconnect()) {
        guard self.end == nil, !self.isFinishing else { return }
        // A write that fails reads the socket dry at once, and the decoder is still at work on this read.
        if self.isDecoding {
            self.finishesAfterRead = true
            if disconnect != Disconnect() { self.needsExtras.goodbye = disconnect }
            return
        }
        self.isFinishing = true
        self.session.pointee.disconnect(disconnect)
        if !self.write(.disconnect(disconnect)) { self.write(.disconnect(Disconnect())) }
        self.flush()
        self.hasSaidGoodbye = true
        self.context?.close(mode: .output, promise: nil)
    }

    /// Closes at once.
    package func abort() { self.close(.aborted) }

    // MARK: Time

    package func timerFired(now: NIODeadline) {
        guard self.end == nil else { return }
        if now >= self.connackDeadline { return self.close(.connackTimedOut) }
        var expired: [InFlightPublish] = []
        let action = self.session.pointee.timerFired(now: now) { expired.append($0) }
        // Behind the session's own turn: the owner may look at the session, or close the connection.
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

    // MARK: Ends

    /// Says the reason to an MQTT 5 server, and closes (§4.13.1).
    func refuse(_ reason: ReasonCode, _ end: ConnectionEnd) {
        guard self.end == nil else { return }
        if self.session.pointee.options.version == .v5, self.session.pointee.state == .connected {
            self.write(.disconnect(Disconnect(reason: reason)))
            self.flush()
        }
        self.close(end)
    }

    /// The same for a rule that the server's packet breaks.
    func refuse(_ reason: ReasonCode, _ words: String) { self.refuse(reason, .violation(reason, words)) }

    func close(_ end: ConnectionEnd) {
        guard self.end == nil else { return }
        self.end = end
        if self.isReading { self.loop.scratch.pointee.clear() }
        let now = self.loop.refresh()
        self.observer.ending(self.client, unsent: self.countTaken())
        self.context?.close(promise: nil)
        self.session.pointee.connectionLost { publish, timedOut in
            self.observer.abandoned(self.client, publish, .connectionLost(timedOutBefore: timedOut), now: now)
        }
        guard !self.hasEnded else { return }
        self.hasEnded = true
        self.observer.ended(self.client, end, now: now)
    }
}
