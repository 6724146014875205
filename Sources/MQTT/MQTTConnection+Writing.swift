import LoopContext
package import MQTTCodec
import NIOCore
import Transport

// The write side: collects the owner's packets and the answers, and passes them to the kernel.
extension MQTTConnection {
    /// Makes room for `capacity` bytes after the bytes that wait for ``flush()``; `body` returns how many it wrote.
    package func append(_ capacity: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
        self.wire.out.pointee.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity, body)
    }

    /// Appends a packet to the bytes that wait for the next ``flush()``.
    ///
    /// - Returns: `false`, with nothing appended, if the packet exceeds the server's maximum packet size. The reason
    ///   string and the user properties are left out first if that helps ([MQTT-3.2.2-15], [MQTT-3.4.2-2]).
    @discardableResult
    package func write(_ packet: Packet) -> Bool {
        let version = self.session.pointee.options.version
        let limit = Int(self.session.pointee.limits.maximumPacketSize ?? .max)
        let start = self.wire.out.pointee.writerIndex
        packet.encode(as: version, into: &self.wire.out.pointee)
        if self.wire.out.pointee.writerIndex - start <= limit { return true }
        self.wire.out.pointee.moveWriterIndex(to: start)
        guard let shorter = packet.withoutReasons else { return false }
        shorter.encode(as: version, into: &self.wire.out.pointee)
        if self.wire.out.pointee.writerIndex - start <= limit { return true }
        self.wire.out.pointee.moveWriterIndex(to: start)
        return false
    }

    /// Writes the bytes that wait.
    ///
    /// With `isLast` the output is closed next, and the bytes leave with the FIN.
    ///
    /// - Returns: bytes of this connection that the kernel has not taken.
    @discardableResult
    package func flush(isLast: Bool) -> Int {
        guard self.wire.isOpen, self.end == nil, !self.hasSaidGoodbye else {
            self.wire.dropUnwritten()
            return 0
        }
        guard self.wire.hasUnwritten else { return self.unsent }
        self.session.pointee.sent(now: self.loop.now)
        if self.isCareful, self.session.pointee.options.showsPackets {
            self.loop.scratch.pointee.withUnsafeReadableBytes { self.observer.sends(self.client, $0) }
        }
        return self.wire.flush(isLast: isLast)
    }

    @discardableResult
    package func flush() -> Int { self.flush(isLast: false) }

    /// Bytes passed on that the kernel has not taken.
    package var unsent: Int { self.wire.unsent }

    /// Answers that no server can leave unread: PUBACK, or PUBREC and PUBCOMP, for each packet identifier (§2.2.1).
    private static var mostAnswers: Int { 2 * 4 * 65_535 }

    /// Counts answers that join those that the kernel does not take; too many end the connection.
    func holdAnswers(_ bytes: Int) {
        guard self.wire.isBlocked, self.end == nil else {
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
        self.wire.out.pointee.writeWithUnsafeMutableBytes(minimumWritableBytes: 4) { bytes in
            guard let base = bytes.baseAddress else { return 0 }
            AcknowledgementBytes.write(type, id: id, to: base)
            return 4
        }
    }
}
