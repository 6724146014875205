import LoopContext
import MQTTCodec
import NIOCore
package import Transport

#if canImport(Glibc)
import Glibc
#endif

// The wire's events.
extension MQTTConnection: WireUser {
    package func received(_ bytes: UnsafeRawBufferPointer) {
        // A failed write makes NIO read the socket until it is empty. That can be after the end, or during the read
        // that ends it.
        guard self.end == nil, !self.isDecoding else { return }
        let now = self.loop.refresh()
        self.isReading = true
        let before = self.decoder.pointee.packets
        self.isDecoding = true
        self.observer.read(self.client, bytes, atBoundary: self.decoder.pointee.isAtPacketBoundary)
        let failure = self.decode(bytes, now: now)
        self.isDecoding = false
        let held = self.wire.isBlocked ? self.wire.unwritten : 0
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

    private func decode(_ bytes: UnsafeRawBufferPointer, now: NIODeadline) -> DecodeError? {
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

    package func took(_ bytes: Int) { self.observer.wrote(self.client, bytes: bytes) }

    package func becameWritable() {
        guard self.end == nil else { return }
        self.extras?.heldAnswers = 0
        self.observer.writable(self.client, now: self.loop.refresh())
    }

    package func ended(_ end: WireEnd) {
        switch end {
        // If bytes of ours are still with the channel, the FIN is no answer to our DISCONNECT.
        case .finished(let hasAll): self.close(self.isFinishing && hasAll ? .answered : .closedByPeer)
        case .gone: self.close(self.isFinishing ? .failed(ECONNRESET) : .closedByPeer)
        // The WebSocket layer sends the same reason to the server in its Close frame ([MQTT-6.0.0-1]).
        case .webSocket(let violation): self.close(.violation(.protocolError, violation.description))
        case .insecure(let failure): self.close(.insecure(failure))
        case .failed(let number): self.close(.failed(number))
        }
    }
}
