import LoopContext
package import MQTTCodec
import NIOCore
import Transport

// The write side: collects the owner's packets and the answers, and passes them to the kernel.
extension MQTTConnection {
    /// Makes room for `capacity` bytes after the bytes that wait for ``flush()``; `body` returns how many it wrote.
    package func append(_ capacity: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
        self.loop.scratch.pointee.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity, body)
    }

    /// Appends a packet to the bytes that wait for the next ``flush()``.
    ///
    /// - Returns: `false`, with nothing appended, if the packet exceeds the server's maximum packet size. The reason
    ///   string and the user properties are left out first if that helps ([MQTT-3.2.2-15], [MQTT-3.4.2-2]).
    @discardableResult
    package func write(_ packet: Packet) -> Bool {
        let version = self.session.pointee.options.version
        let limit = Int(self.session.pointee.limits.maximumPacketSize ?? .max)
        let start = self.loop.scratch.pointee.writerIndex
        packet.encode(as: version, into: &self.loop.scratch.pointee)
        if self.loop.scratch.pointee.writerIndex - start <= limit { return true }
        self.loop.scratch.pointee.moveWriterIndex(to: start)
        guard let shorter = packet.withoutReasons else { return false }
        shorter.encode(as: version, into: &self.loop.scratch.pointee)
        if self.loop.scratch.pointee.writerIndex - start <= limit { return true }
        self.loop.scratch.pointee.moveWriterIndex(to: start)
        return false
    }

    /// Writes the bytes that wait.
    ///
    /// With `isLast` the output is closed next, and the bytes leave with the FIN.
    ///
    /// - Returns: bytes of this connection that the kernel has not taken.
    @discardableResult
    package func flush(isLast: Bool = false) -> Int {
        guard let context = self.context, self.end == nil, !self.hasSaidGoodbye else {
            self.loop.scratch.pointee.clear()
            return 0
        }
        let count = self.loop.scratch.pointee.readableBytes
        guard count > 0 else { return self.unsent }
        self.bytesHanded += UInt64(count)
        self.session.pointee.sent(now: self.loop.now)
        if self.isCareful, self.session.pointee.options.showsPackets {
            self.loop.scratch.pointee.withUnsafeReadableBytes { self.observer.sends(self.client, $0) }
        }
        if self.sendAtOnce(count, isLast: isLast) { return 0 }
        self.pendingBytes += self.loop.scratch.pointee.readableBytes
        let out = self.loop.scratch.pointee
        self.loop.scratch.pointee = ByteBuffer()
        self.isFlushing = true
        self.socket.channelMayHold = true
        context.writeAndFlush(self.wrapOutboundOut(out), promise: nil)
        self.isFlushing = false
        // If the kernel took all bytes, the buffer is no longer shared and `clear` keeps its memory.
        self.loop.scratch.pointee = consume out
        self.loop.scratch.pointee.clear()
        let unsent = self.countTaken()
        self.isBlocked = unsent > 0
        return unsent
    }

    /// Writes to the socket directly, if that is possible.
    ///
    /// - Returns: whether the kernel took all bytes. The scratch buffer keeps the rest.
    private func sendAtOnce(_ count: Int, isLast: Bool) -> Bool {
        guard self.isBare, let channel = self.channel else { return false }
        // Before CONNACK it does not pay to look up the socket.
        guard self.socket.isKnown || self.isFinishing || self.session.pointee.state == .connected else { return false }
        let taken = self.socket.write(&self.loop.scratch.pointee, past: channel, isLast: isLast)
        if taken > 0 { self.observer.wrote(self.client, bytes: taken) }
        return taken == count
    }

    /// Reports to the owner the bytes that the kernel has taken since the last report.
    ///
    /// - Returns: bytes that the kernel has not taken.
    @discardableResult
    func countTaken() -> Int {
        let unsent = self.unsent
        if self.pendingBytes > unsent { self.observer.wrote(self.client, bytes: self.pendingBytes - unsent) }
        self.pendingBytes = unsent
        return unsent
    }

    /// Bytes passed to the channel that the kernel has not taken.
    package var unsent: Int { self.channel?.unsent(of: self.pendingBytes, isBare: self.isBare) ?? 0 }

    /// Answers that no server can leave unread: PUBACK, or PUBREC and PUBCOMP, for each packet identifier (§2.2.1).
    private static var mostAnswers: Int { 2 * 4 * 65_535 }

    /// Counts answers that join those that the kernel does not take; too many end the connection.
    func holdAnswers(_ bytes: Int) {
        guard self.isBlocked, self.end == nil else {
            self.extras?.heldAnswers = 0
            return
        }
        // A slow reader takes the older ones.
        self.needsExtras.heldAnswers = min(self.needsExtras.heldAnswers + bytes, self.unsent)
        guard self.needsExtras.heldAnswers > Self.mostAnswers else { return }
        self.refuse(.receiveMaximumExceeded, "over 65,535 messages unacknowledged: the server reads no answer (§4.9)")
    }

    func flushUnlessReading() {
        if !self.isReading { self.flush() }
    }

    /// The four bytes of a successful acknowledgement.
    func acknowledge(_ type: PacketType, _ id: UInt16) {
        self.loop.scratch.pointee.writeWithUnsafeMutableBytes(minimumWritableBytes: 4) { bytes in
            guard let base = bytes.baseAddress else { return 0 }
            AcknowledgementBytes.write(type, id: id, to: base)
            return 4
        }
    }
}
