import LoopContext
import MQTTCodec
package import NIOCore
import Transport

#if canImport(Glibc)
import Glibc
#endif

// The channel's events.
extension MQTTConnection: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.channel = context.channel
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        // The owner releases a connection when it ends, so each connection has to report an end.
        self.close(.closedByPeer)
        self.context = nil
        self.channel = nil
        self.socket.close()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        // A failed write makes NIO read the socket until it is empty. That can be after the end, or during the read
        // that ends it.
        guard self.end == nil, !self.isDecoding else { return self.loop.receive.give(back: buffer) }
        let now = self.loop.refresh()
        self.isReading = true
        self.hasRead = true
        let before = self.decoder.pointee.packets
        self.isDecoding = true
        let failure = buffer.withUnsafeReadableBytes { bytes -> DecodeError? in
            self.observer.read(self.client, bytes, atBoundary: self.decoder.pointee.isAtPacketBoundary)
            do throws(DecodeError) {
                if self.isCareful {
                    try self.decodeCarefully(bytes, now: now)
                } else {
                    var sink = InboundSink(connection: self, now: now)
                    try self.decoder.pointee.decode(bytes, into: &sink)
                }
                return nil
            } catch {
                return error
            }
        }
        self.isDecoding = false
        self.loop.receive.give(back: buffer)
        let held = self.isBlocked ? self.loop.scratch.pointee.readableBytes : 0
        self.session.pointee.received(now: now)
        let packets = Int(self.decoder.pointee.packets - before)
        if self.session.pointee.window.heldBack > 0 { self.sendHeldBack(now: now) }
        if self.end == nil { self.observer.readEnded(self.client, packets: packets, now: now) }
        if let failure {
            self.refuse(failure.reason, .malformed(failure))
        } else if self.end == nil {
            self.flush()
            if held > 0 { self.holdAnswers(held) }
            if self.finishesAfterRead { self.finish(self.extras?.goodbye ?? Disconnect()) }
        }
        self.isReading = false
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        // A read turn without bytes and without an error is the peer's FIN. After our own FIN, NIO does not report it
        // with `inputClosed`: `channelInactive` follows at once.
        self.sawFIN = !self.hasRead
        self.hasRead = false
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        // Each write makes the channel unwritable, then writable again once the kernel took all. Only a change after a
        // blocked write counts.
        guard self.isBlocked, !self.isFlushing, self.end == nil, self.channel?.isWritable ?? false else { return }
        self.isBlocked = false
        self.extras?.heldAnswers = 0
        self.countTaken()
        self.observer.writable(self.client, now: self.loop.refresh())
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return }
        if self.socket.wasReset { return self.close(.failed(ECONNRESET)) }
        // If bytes of ours are still in the channel, the FIN is no answer to our DISCONNECT.
        self.close(self.isFinishing && self.unsent == 0 ? .answered : .closedByPeer)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch ChannelFailure(error, isBare: self.isBare) {
        case .finished: self.close(self.isFinishing && self.unsent == 0 ? .answered : .closedByPeer)
        // The WebSocket layer sends the same reason to the server in its Close frame ([MQTT-6.0.0-1]).
        case .webSocket(let violation): self.close(.violation(.protocolError, violation.description))
        case .insecure(let failure): self.close(.insecure(failure))
        case .system(let number): self.close(.failed(number))
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if self.socket.wasReset { return self.close(.failed(ECONNRESET)) }
        // A lower layer reports a reset as an error, and its peer's regular close too.
        switch (self.isFinishing, self.sawFIN || !self.isBare) {
        case (true, true): self.close(.answered)
        case (true, false): self.close(.failed(ECONNRESET))
        case (false, _): self.close(.closedByPeer)
        }
    }
}
