package import LoopContext
package import MQTTCodec
package import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// One MQTT connection on a channel: the only handler of its pipeline.
///
/// It decodes what is read where it lies, runs the session's actions and owns every write. What it has to answer
/// is collected in the loop's scratch buffer while a read is decoded; what the owner publishes then joins it, and
/// all leave in one write.
package final class MQTTConnection: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The owner's number for the client.
    package let client: Int
    private let loop: LoopContext
    /// Outlives the connection; the owner keeps it in its slab.
    private let session: UnsafeMutablePointer<MQTTSession>
    private let decoder: UnsafeMutablePointer<PacketDecoder>
    /// Kept alive by its connections; it does not own them in turn, their channels do.
    private let observer: any MQTTConnectionObserver
    private var context: ChannelHandlerContext?
    /// The context's: it makes one of its pipeline's each time it is asked.
    private var channel: (any Channel)?
    /// The channel's socket; `nil` until it is asked for, and -1 for a channel without one.
    ///
    /// Written to without the channel as long as that has nothing of its own to write. Nothing lies between the two:
    /// this is the only handler.
    private var socket: CInt?
    /// Set once the connection must not be used any more; the last word to the owner follows or has been said.
    private var end: ConnectionEnd?
    private var hasEnded = false
    private var isFinishing = false
    /// DISCONNECT has been handed to the channel: it was the last packet ([MQTT-3.14.4-1]).
    private var hasSaidGoodbye = false
    private var isReading = false
    private var isDecoding = false
    private var finishesAfterRead = false
    private var isFlushing = false
    /// The kernel did not take all of the last write.
    private var isBlocked = false
    /// Something went by way of the channel, which may still have it.
    private var channelMayHold = false
    /// Whether the current read turn brought bytes, and whether the last one brought the peer's FIN.
    private var hasRead = false
    private var sawFIN = false
    private var connackDeadline = NIODeadline.distantFuture
    /// Bytes handed to the channel that the kernel had not taken when last asked.
    private var pendingBytes = 0
    private var handed: UInt64 = 0
    /// Bytes handed to the channel, or to the kernel at once, since it opened.
    package var bytesHanded: UInt64 { self.handed }

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

    // MARK: What the owner asks for

    /// Sends CONNECT on the channel that has just come up.
    package func start(_ connect: Connect, deadline: NIODeadline) {
        self.connackDeadline = deadline
        self.observer.wantsTimer(self.client, at: deadline)
        self.write(.connect(connect))
        self.flush()
    }

    /// Room for `capacity` bytes behind what waits for the next ``flush()``; `body` returns how many it wrote.
    package func append(_ capacity: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
        self.loop.scratch.pointee.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity, body)
    }

    /// Appends a packet to what waits for the next ``flush()``.
    package func write(_ packet: Packet) {
        packet.encode(as: self.session.pointee.options.version, into: &self.loop.scratch.pointee)
    }

    /// Writes what waits.
    ///
    /// - Returns: bytes of this connection that the kernel has not taken.
    @discardableResult
    package func flush() -> Int {
        guard let context = self.context, self.end == nil, !self.hasSaidGoodbye else {
            self.loop.scratch.pointee.clear()
            return 0
        }
        let count = self.loop.scratch.pointee.readableBytes
        guard count > 0 else { return self.unsent }
        self.handed += UInt64(count)
        self.session.pointee.sent(now: self.loop.now)
        if self.sendAtOnce(count) {
            self.observer.wrote(self.client, bytes: count)
            return 0
        }
        self.pendingBytes += self.loop.scratch.pointee.readableBytes
        let out = self.loop.scratch.pointee
        self.loop.scratch.pointee = ByteBuffer()
        self.isFlushing = true
        self.channelMayHold = true
        context.writeAndFlush(self.wrapOutboundOut(out), promise: nil)
        self.isFlushing = false
        // If the kernel took everything the bytes are the loop's own again, and `clear` keeps their memory.
        self.loop.scratch.pointee = consume out
        self.loop.scratch.pointee.clear()
        let unsent = self.countTaken()
        self.isBlocked = unsent > 0
        return unsent
    }

    /// Writes to the socket itself, a tenth of what the same costs by way of the channel.
    ///
    /// - Returns: whether the kernel took all. What it did not take, for want of room or because the connection is
    ///   broken, is still in the scratch buffer: the channel writes it, or finds out what is wrong.
    private func sendAtOnce(_ count: Int) -> Bool {
        // Who only comes and goes need not ask for it, which costs 2 µs.
        guard self.session.pointee.state == .connected, let channel = self.channel, channel.isActive,
            channel.isWritable, self.isEmpty(channel)
        else { return false }
        let socket = self.socket ?? self.findSocket(of: channel)
        guard socket >= 0 else { return false }
        // NIO has SIGPIPE ignored.
        let taken = self.loop.scratch.pointee.withUnsafeReadableBytes { send(socket, $0.baseAddress, count, 0) }
        if taken == count {
            self.loop.scratch.pointee.clear()
            return true
        }
        if taken > 0 {
            self.loop.scratch.pointee.moveReaderIndex(forwardBy: taken)
            self.observer.wrote(self.client, bytes: taken)
        }
        return false
    }

    /// Whether nothing that the channel still has would be overtaken: a single byte leaves it writable.
    private func isEmpty(_ channel: any Channel) -> Bool {
        guard self.channelMayHold else { return true }
        self.channelMayHold = ((try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0) > 0
        return !self.channelMayHold
    }

    private func findSocket(of channel: any Channel) -> CInt {
        let pipeline = channel.pipeline.syncOperations
        let socket = (try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }) ?? -1
        self.socket = socket
        return socket
    }

    /// Tells the owner of bytes that the kernel has taken since it was last asked.
    ///
    /// - Returns: bytes that it has not taken.
    @discardableResult
    private func countTaken() -> Int {
        let unsent = self.unsent
        if self.pendingBytes > unsent { self.observer.wrote(self.client, bytes: self.pendingBytes - unsent) }
        self.pendingBytes = unsent
        return unsent
    }

    /// Bytes handed to the channel that the kernel has not taken.
    package var unsent: Int {
        guard let channel = self.channel, !channel.isWritable else { return 0 }
        // NIO knows it exactly at the peer's FIN and in `errorCaught`, for a failing read is told of before the close.
        // A channel closed by a failing write has forgotten: what was known last is the best there is.
        guard channel.isActive else { return self.pendingBytes }
        return (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Whether a write would go to the kernel at once.
    package var isWritable: Bool {
        self.end == nil && !self.isFinishing && self.channel?.isWritable ?? false
    }

    package func subscribe(_ subscriptions: [Subscription]) -> PacketID? {
        guard let id = self.session.pointee.subscribe(subscriptions.count) else { return nil }
        self.write(.subscribe(Subscribe(id, subscriptions)))
        self.flushUnlessReading()
        return id
    }

    package func unsubscribe(_ filters: [String]) -> PacketID? {
        guard let id = self.session.pointee.unsubscribe(filters.count) else { return nil }
        self.write(.unsubscribe(Unsubscribe(id, filters: filters)))
        self.flushUnlessReading()
        return id
    }

    package func ping() {
        self.session.pointee.pings(now: self.loop.now)
        self.write(.pingReq)
        self.flushUnlessReading()
        self.updateTimer()
    }

    /// DISCONNECT, then FIN; what the peer still sends is read until its own FIN.
    package func finish() {
        guard self.end == nil, !self.isFinishing else { return }
        // A write that fails reads the socket dry at once, and the decoder is still at work on this read.
        if self.isDecoding {
            self.finishesAfterRead = true
            return
        }
        self.isFinishing = true
        self.session.pointee.disconnect()
        self.write(.disconnect(Disconnect()))
        self.flush()
        self.hasSaidGoodbye = true
        self.context?.close(mode: .output, promise: nil)
    }

    /// Closes at once.
    package func abort() { self.close(.aborted) }

    package func timerFired(now: NIODeadline) {
        guard self.end == nil else { return }
        if now >= self.connackDeadline { return self.close(.connackTimedOut) }
        var expired: [InFlightPublish] = []
        let action = self.session.pointee.timerFired(now: now) { expired.append($0) }
        // Behind the session's own turn: the owner may look at the session, or close the connection.
        for publish in expired { self.observer.abandoned(self.client, publish, .timedOut, now: now) }
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

    // MARK: The channel

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.channel = context.channel
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        // The owner lets go of a connection when it ends, so none goes without an end.
        self.close(.closedByPeer)
        self.context = nil
        self.channel = nil
        self.socket = -1
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        // A write that fails reads the socket dry at once: behind the end, or in the middle of the read that ends it.
        guard self.end == nil, !self.isDecoding else { return self.loop.receive.give(back: buffer) }
        let now = self.loop.refresh()
        self.isReading = true
        self.hasRead = true
        let before = self.decoder.pointee.packets
        self.isDecoding = true
        let failure = buffer.withUnsafeReadableBytes { bytes -> DecodeError? in
            self.observer.read(self.client, bytes, atBoundary: self.decoder.pointee.isAtPacketBoundary)
            var sink = InboundSink(connection: self, now: now)
            do throws(DecodeError) {
                try self.decoder.pointee.decode(bytes, into: &sink)
                return nil
            } catch {
                return error
            }
        }
        self.isDecoding = false
        self.loop.receive.give(back: buffer)
        self.session.pointee.received(now: now)
        let packets = Int(self.decoder.pointee.packets - before)
        if self.end == nil { self.observer.readEnded(self.client, packets: packets, now: now) }
        if let failure {
            self.refuse(failure.reason, .malformed(failure))
        } else if self.end == nil {
            self.flush()
            if self.finishesAfterRead { self.finish() }
        }
        self.isReading = false
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // A read turn that brought no bytes and no error is the peer's FIN. With our own side closed already NIO
        // tells of it in no other way: `inputClosed` does not come, `channelInactive` follows at once.
        self.sawFIN = !self.hasRead
        self.hasRead = false
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        // Every write makes the channel unwritable and, once the kernel took all, writable again: news only later.
        guard self.isBlocked, !self.isFlushing, self.end == nil, self.channel?.isWritable ?? false else { return }
        self.isBlocked = false
        self.countTaken()
        self.observer.writable(self.client, now: self.loop.refresh())
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return }
        // With bytes of ours still in the channel the FIN answers something else.
        self.close(self.isFinishing && self.unsent == 0 ? .answered : .closedByPeer)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.close(.failed((error as? IOError)?.errnoCode ?? ECONNRESET))
    }

    package func channelInactive(context: ChannelHandlerContext) {
        switch (self.isFinishing, self.sawFIN) {
        case (true, true): self.close(.answered)
        case (true, false): self.close(.failed(ECONNRESET))
        case (false, _): self.close(.closedByPeer)
        }
    }

    /// Says the reason to an MQTT 5 server, and closes (§4.13.1).
    private func refuse(_ reason: ReasonCode, _ end: ConnectionEnd) {
        guard self.end == nil else { return }
        if self.session.pointee.options.version == .v5, self.session.pointee.state == .connected {
            self.write(.disconnect(Disconnect(reason: reason)))
            self.flush()
        }
        self.close(end)
    }

    private func close(_ end: ConnectionEnd) {
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

    private func flushUnlessReading() {
        if !self.isReading { self.flush() }
    }

    private func updateTimer() {
        if let deadline = self.session.pointee.deadline { self.observer.wantsTimer(self.client, at: deadline) }
    }
}

// MARK: - Packets

extension MQTTConnection {
    fileprivate func received(_ view: PublishView, now: NIODeadline) -> Bool {
        guard self.session.pointee.state != .connecting else { return self.isEarly(.publish) }
        // This side announces no topic alias, so an empty topic stands for none (§3.3.2.3.4).
        if view.topic.isEmpty {
            self.refuse(.topicAliasInvalid, .violation(.topicAliasInvalid, "a topic alias that was not allowed"))
            return false
        }
        switch self.session.pointee.receivedPublish(view.qos, id: view.packetID) {
        case .deliver:
            self.observer.message(self.client, view, now: now)
        case .deliverAndAcknowledge:
            self.observer.message(self.client, view, now: now)
            self.acknowledge(.pubAck, view.packetID)
        case .deliverAndRecord:
            self.observer.message(self.client, view, now: now)
            self.acknowledge(.pubRec, view.packetID)
        case .recordAgain:
            self.acknowledge(.pubRec, view.packetID)
        }
        return self.end == nil
    }

    fileprivate func received(_ type: PacketType, id: UInt16, reason: UInt8, now: NIODeadline) -> Bool {
        guard self.session.pointee.state != .connecting else { return self.isEarly(type) }
        if type == .pubRel {
            let answer = self.session.pointee.receivedPubRel(id: id)
            if answer == .success || self.session.pointee.options.version != .v5 {
                self.acknowledge(.pubComp, id)
            } else if let id = PacketID(rawValue: id) {
                self.write(.pubComp(PubComp(id, reason: answer)))
            }
            return true
        }
        switch self.session.pointee.received(type, id: id, reason: reason) {
        case .completed(let publish, let timedOut):
            self.observer.acknowledged(
                self.client,
                type,
                reason: reason,
                publish,
                finished: true,
                timedOut: timedOut,
                now: now
            )
        case .release(let publish, let timedOut):
            self.acknowledge(.pubRel, id)
            self.observer.acknowledged(
                self.client,
                type,
                reason: reason,
                publish,
                finished: false,
                timedOut: timedOut,
                now: now
            )
        case .releaseAgain:
            self.acknowledge(.pubRel, id)
        case .unknown where type == .pubRec && self.session.pointee.options.version == .v5:
            if let id = PacketID(rawValue: id) {
                self.write(.pubRel(PubRel(id, reason: .packetIdentifierNotFound)))
            }
        case .unknown:
            break
        case .wrongFlow:
            self.refuse(.protocolError, .violation(.protocolError, "\(type) for a publish of another QoS (§4.3)"))
            return false
        }
        return self.end == nil
    }

    fileprivate func received(_ packet: Packet, now: NIODeadline) -> Bool {
        switch packet {
        case .connAck(let connack):
            self.received(connack, now: now)
        // A server that refuses with DISCONNECT says at least why.
        case .subAck where self.session.pointee.state == .connecting,
            .unsubAck where self.session.pointee.state == .connecting,
            .pingResp where self.session.pointee.state == .connecting:
            return self.isEarly(packet.type)
        case .subAck(let answer):
            switch self.session.pointee.received(answer) {
            case .answered: self.observer.subscribed(self.client, answer.packetID, codes: answer.codes, now: now)
            case .unknown: break
            case .mismatch: self.refuse(.protocolError, .violation(.protocolError, "SUBACK does not fit its SUBSCRIBE"))
            }
        case .unsubAck(let answer):
            switch self.session.pointee.received(answer) {
            case .answered: self.observer.unsubscribed(self.client, answer.packetID, now: now)
            case .unknown: break
            case .mismatch:
                self.refuse(.protocolError, .violation(.protocolError, "UNSUBACK does not fit its UNSUBSCRIBE"))
            }
        case .pingResp:
            if let duration = self.session.pointee.pingAnswered(now: now) {
                self.observer.pingAnswered(self.client, after: duration, now: now)
            }
        case .disconnect(let disconnect):
            self.close(.disconnected(disconnect.reason, disconnect.properties.reasonString))
        default:
            // The decoder refuses what a server never sends; AUTH comes only to those who asked for it (§4.12).
            self.refuse(.protocolError, .violation(.protocolError, "\(packet.type) was not asked for"))
        }
        return self.end == nil
    }

    /// Something else than CONNACK came first ([MQTT-3.2.0-1]).
    private func isEarly(_ type: PacketType) -> Bool {
        self.refuse(.protocolError, .violation(.protocolError, "\(type) before CONNACK"))
        return false
    }

    private func received(_ connack: ConnAck, now: NIODeadline) {
        switch self.session.pointee.received(connack, now: now) {
        case .connected(let resumed):
            self.connackDeadline = .distantFuture
            if resumed {
                self.session.pointee.resume(now: now) { id, publish, released in
                    if released { self.acknowledge(.pubRel, id) }
                    if !released { self.observer.resend(self.client, id: id, publish, now: now) }
                }
            } else {
                self.session.pointee.discardState { publish, timedOut in
                    self.observer.abandoned(
                        self.client,
                        publish,
                        .connectionLost(timedOutBefore: timedOut),
                        now: now
                    )
                }
            }
            self.updateTimer()
            self.observer.connected(self.client, connack, resumed: resumed, now: now)
        case .refused(let code):
            self.close(.refused(code))
        case .violation(let reason, let words):
            self.refuse(reason, .violation(reason, words))
        }
    }

    private func acknowledge(_ type: PacketType, _ id: UInt16) {
        self.loop.scratch.pointee.writeWithUnsafeMutableBytes(minimumWritableBytes: 4) { bytes in
            guard let base = bytes.baseAddress else { return 0 }
            AcknowledgementBytes.write(type, id: id, to: base)
            return 4
        }
    }
}

/// Hands the decoder's packets to the connection; lives for one read.
private struct InboundSink: PacketSink {
    let connection: MQTTConnection
    let now: NIODeadline

    mutating func publish(_ view: PublishView) -> Bool {
        self.connection.received(view, now: self.now)
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.connection.received(type, id: id, reason: reason, now: self.now)
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.connection.received(packet, now: self.now)
    }
}
