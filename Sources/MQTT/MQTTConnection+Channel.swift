import LoopContext
import MQTTCodec
package import NIOCore
import Transport

#if canImport(Glibc)
import Glibc
#endif

// What the channel tells.
extension MQTTConnection: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.channel = context.channel
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        // The owner lets go of a connection when it ends, so none goes without an end.
        self.close(.closedByPeer)
        self.context = nil
        self.channel = nil
        self.socket.close()
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
        self.session.pointee.received(now: now)
        let packets = Int(self.decoder.pointee.packets - before)
        if self.session.pointee.window.heldBack > 0 { self.sendHeldBack(now: now) }
        if self.end == nil { self.observer.readEnded(self.client, packets: packets, now: now) }
        if let failure {
            self.refuse(failure.reason, .malformed(failure))
        } else if self.end == nil {
            self.flush()
            if self.finishesAfterRead { self.finish(self.extras?.goodbye ?? Disconnect()) }
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
        if self.socket.wasReset { return self.close(.failed(ECONNRESET)) }
        // With bytes of ours still in the channel the FIN answers something else.
        self.close(self.isFinishing && self.unsent == 0 ? .answered : .closedByPeer)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch ChannelFailure(error, isBare: self.isBare) {
        case .finished: self.close(self.isFinishing && self.unsent == 0 ? .answered : .closedByPeer)
        // The WebSocket below says the same to the server in its Close frame ([MQTT-6.0.0-1]).
        case .webSocket(let violation): self.close(.violation(.protocolError, violation.description))
        case .insecure(let failure): self.close(.insecure(failure))
        case .system(let number): self.close(.failed(number))
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if self.socket.wasReset { return self.close(.failed(ECONNRESET)) }
        // A layer below tells of a reset as an error, and of its peer's goodbye in no other way.
        switch (self.isFinishing, self.sawFIN || !self.isBare) {
        case (true, true): self.close(.answered)
        case (true, false): self.close(.failed(ECONNRESET))
        case (false, _): self.close(.closedByPeer)
        }
    }
}
