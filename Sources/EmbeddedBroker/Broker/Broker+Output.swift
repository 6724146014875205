import MQTTCodec
package import NIOCore

// Output to a client: `out`, and after it a range of the shared frames.
extension Broker {
    /// Reports whether the kernel accepts bytes for this connection.
    package mutating func setWritable(_ connection: ConnectionID, _ isWritable: Bool) {
        self.connections[connection].isWritable = isWritable
        if isWritable {
            self.markDirty(connection)
        } else {
            self.unshare(connection)
            self.connections[connection].isDirty = false
        }
    }

    package mutating func hasOutput(_ connection: ConnectionID) -> Bool {
        self.connections[connection].outputBytes > 0
    }

    /// Whether clients with output should be written before more is read.
    package var wantsFlush: Bool { mutating get { self.frames.count > SharedFrames.wantedBytes } }

    /// Passes the output to `write`, which returns how many bytes it took.
    ///
    /// Bytes taken count as delivered.
    ///
    /// - Returns: whether all bytes were taken; if not, the caller must take the rest with ``takeOutput(_:)`` now.
    package mutating func writeOutput(_ connection: ConnectionID, by write: (UnsafeRawBufferPointer) -> Int) -> Bool {
        guard self.connections[connection].outputBytes > 0 else { return true }
        let taken: Int
        if self.connections[connection].out.readableBytes == 0 {
            let range = Int(self.connections[connection].sharedStart)..<Int(self.connections[connection].sharedEnd)
            taken = write(self.frames.bytes(range))
            self.connections[connection].sharedStart += Int32(truncatingIfNeeded: taken)
            if taken == range.count { self.frames.letGo() }
        } else {
            self.unshare(connection)
            taken = self.connections[connection].out.readWithUnsafeReadableBytes(write)
        }
        self.tally.sentBytes &+= UInt64(taken)
        guard self.connections[connection].outputBytes == 0 else { return false }
        if self.connections[connection].out.capacity > 0 {
            var empty = ByteBuffer()
            swap(&empty, &self.connections[connection].out)
            self.recycle(empty)
        }
        self.outputTaken(connection)
        return true
    }

    /// The whole output to write now; it counts as delivered.
    package mutating func takeOutput(_ connection: ConnectionID) -> ByteBuffer {
        self.unshare(connection)
        var output = ByteBuffer()
        swap(&output, &self.connections[connection].out)
        self.tally.sentBytes &+= UInt64(output.readableBytes)
        self.outputTaken(connection)
        return output
    }

    private mutating func outputTaken(_ connection: ConnectionID) {
        self.connections[connection].isDirty = false
        self.connections[connection].isUrgent = false
        self.connections[connection].unwritten = CountPerQoS()
        self.connections[connection].unwrittenExtra = CountPerQoS()
        if let journal = self.connections[connection].deliveries.journal { journal.noteOutputTaken() }
        if self.connections[connection].isCongested { self.easeCongestion(connection) }
        if self.connections[connection].isChoked { self.unchoke(connection) }
    }

    /// Discards output that was never handed out, and so did not reach the client.
    mutating func dropOutput(_ connection: ConnectionID) {
        self.tally.delivered -= self.connections[connection].unwritten
        self.tally.delivered -= self.connections[connection].unwrittenExtra
        self.tally.duplicated -= self.connections[connection].unwrittenExtra
        self.tally.undelivered += self.connections[connection].unwritten
        self.connections[connection].unwritten = CountPerQoS()
        self.connections[connection].unwrittenExtra = CountPerQoS()
        self.connections[connection].out = ByteBuffer()
        self.dropShared(connection)
    }

    /// Returns a written buffer for the next output, even if the channel still uses it.
    package mutating func recycle(_ buffer: ByteBuffer) {
        guard self.spare.count < 64, buffer.storageCapacity <= 1 << 20 else { return }
        self.spare.append(buffer)
    }

    mutating func markDirty(_ connection: ConnectionID) {
        guard !self.connections[connection].isDirty, self.connections[connection].isWritable,
            self.connections[connection].outputBytes > 0
        else { return }
        self.connections[connection].isDirty = true
        self.actions.append(.flush(connection))
    }

    // MARK: Bytes of a single client

    /// Prepares `out` as the end of the output, with a writable buffer.
    @inline(__always)
    mutating func prepareOutput(_ connection: ConnectionID) {
        if self.connections[connection].sharedBytes > 0 { self.unshare(connection) }
        if self.connections[connection].out.readableBytes == 0 { self.giveBuffer(connection) }
    }

    private mutating func giveBuffer(_ connection: ConnectionID) {
        guard var buffer = self.spare.popLast() else { return }
        // The channel still uses it: clear() then allocates a new small buffer.
        buffer.clear(minimumCapacity: 256)
        self.connections[connection].out = buffer
    }

    mutating func send(_ packet: Packet, to connection: ConnectionID) {
        self.prepareOutput(connection)
        packet.encode(as: self.connections[connection].version, into: &self.connections[connection].out)
        self.markDirty(connection)
    }

    mutating func acknowledge(_ type: PacketType, _ id: UInt16, to connection: ConnectionID) {
        self.prepareOutput(connection)
        self.connections[connection].out.writeWithUnsafeMutableBytes(minimumWritableBytes: 4) { memory in
            if let base = memory.baseAddress { AcknowledgementBytes.write(type, id: id, to: base) }
            return 4
        }
        self.markDirty(connection)
        self.tally.acknowledgementsSent.count(type)
    }

    /// Writes one copy to a client's output, or into its queue if its window is full.
    mutating func send(
        _ message: MessageView,
        to connection: ConnectionID,
        qos: UInt8,
        retain: Bool,
        identifiers: UnsafeRawBufferPointer,
        tally: Tally
    ) {
        let writer = PublishWriter(
            message,
            version5: self.connections[connection].isVersion5,
            qos: qos,
            retain: retain,
            identifiers: identifiers
        )
        let count = writer.count
        guard self.admits(count, tally, to: connection) else { return }
        var packetID: UInt16 = 0
        if qos > 0 {
            packetID = self.connections[connection].deliveries.take(qos: qos)
            if packetID == 0 {
                if tally.kind == .copy { self.tally.waiting[tally.qos] &+= 1 }
                self.connections[connection].deliveries.enqueue(writer, tally: tally, now: self.clock)
                return
            }
            if self.connections[connection].deliveries.journal != nil {
                self.connections[connection].deliveries.remember(packetID, writer, tally: tally, now: self.clock)
            }
        }
        self.prepareOutput(connection)
        self.write(writer, packetID: packetID, to: connection)
        self.count(tally, on: connection, qos: qos)
        self.markDirty(connection)
        if self.connections[connection].out.readableBytes > Self.urgentBytes { self.hurry(connection) }
    }

    @inline(__always)
    private mutating func write(_ writer: PublishWriter, packetID: UInt16, to connection: ConnectionID) {
        if self.connections[connection].extras != nil, self.writeAliased(writer, packetID, to: connection) { return }
        let count = writer.count
        self.connections[connection].out.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
            if let base = memory.baseAddress { writer.write(to: base, packetID: packetID) }
            return count
        }
    }

    /// Whether a copy of `count` bytes may go to a client now; if not, counts it.
    @inline(__always)
    private mutating func admits(_ count: Int, _ tally: Tally, to connection: ConnectionID) -> Bool {
        // [MQTT-3.1.2-24]
        if count > self.connections[connection].maximumPacketSize {
            if tally.kind == .copy { self.tally.tooLarge[tally.qos] += 1 }
            return false
        }
        let waitingBytes = self.connections[connection].waitingBytes
        if waitingBytes + count > self.configuration.queueLimit {
            if tally.kind == .copy { self.tally.queueFull[tally.qos] += 1 }
            return false
        }
        guard waitingBytes > self.configuration.highWaterMark else { return true }
        self.checkCongestion(connection)
        if waitingBytes + count <= self.configuration.queuesLimit / max(1, self.congested) { return true }
        if tally.kind == .copy { self.tally.queueFull[tally.qos] += 1 }
        return false
    }

    /// Requests an immediate write of a large output, which would only grow during the turn.
    private mutating func hurry(_ connection: ConnectionID) {
        guard self.connections[connection].isWritable, !self.connections[connection].isUrgent else { return }
        self.connections[connection].isUrgent = true
        self.actions.append(.flushNow(connection))
    }

    /// Counts a copy that has reached a client's output at `qos`.
    mutating func count(_ tally: Tally, on connection: ConnectionID, qos: UInt8) {
        // The journal knows which of its messages were not handed out.
        let isKept = qos > 0 && self.connections[connection].deliveries.journal != nil
        switch tally.kind {
        case .copy:
            self.tally.delivered[tally.qos] &+= 1
            if !isKept { self.connections[connection].unwritten[tally.qos] &+= 1 }
        case .duplicate:
            self.tally.delivered[tally.qos] &+= 1
            self.tally.duplicated[tally.qos] &+= 1
            if !isKept { self.connections[connection].unwrittenExtra[tally.qos] &+= 1 }
        case .retained: self.tally.deliveredRetained[tally.qos] &+= 1
        case .statistics: break
        }
    }

    // MARK: Shared bytes

    /// Writes one copy at QoS 0 to a client's output, as a frame that other clients may share.
    mutating func share(_ message: MessageView, to connection: ConnectionID, retain: Bool) {
        let version5 = self.connections[connection].isVersion5
        let tally = Tally(kind: .copy, qos: message.qos)
        guard let frame = self.frames.frame(of: message, version5: version5, retain: retain) else {
            // More than a gibibyte in one turn, or larger than a PUBLISH can be.
            let none = UnsafeRawBufferPointer(start: nil, count: 0)
            return self.send(message, to: connection, qos: 0, retain: retain, identifiers: none, tally: tally)
        }
        guard self.admits(frame.count, tally, to: connection) else { return }
        let start = Int32(truncatingIfNeeded: frame.lowerBound)
        if self.connections[connection].sharedBytes == 0 {
            if self.connections[connection].isWritable {
                self.frames.hold()
                self.connections[connection].sharedStart = start
                self.connections[connection].sharedEnd = Int32(truncatingIfNeeded: frame.upperBound)
            } else {
                self.prepareOutput(connection)
                self.connections[connection].out.writeBytes(self.frames.bytes(frame))
            }
        } else {
            if self.connections[connection].sharedEnd != start {
                self.copyShared(connection)
                self.connections[connection].sharedStart = start
                if self.connections[connection].out.readableBytes > Self.urgentBytes { self.hurry(connection) }
            }
            self.connections[connection].sharedEnd = Int32(truncatingIfNeeded: frame.upperBound)
        }
        self.tally.delivered[message.qos] &+= 1
        self.connections[connection].unwritten[message.qos] &+= 1
        if !self.connections[connection].isDirty { self.markDirty(connection) }
    }

    /// Copies a client's shared frames to the end of its own output.
    mutating func unshare(_ connection: ConnectionID) {
        guard self.connections[connection].sharedBytes > 0 else { return }
        self.copyShared(connection)
        self.dropShared(connection)
    }

    private mutating func copyShared(_ connection: ConnectionID) {
        if self.connections[connection].out.readableBytes == 0 { self.giveBuffer(connection) }
        let range = Int(self.connections[connection].sharedStart)..<Int(self.connections[connection].sharedEnd)
        self.connections[connection].out.writeBytes(self.frames.bytes(range))
    }

    /// Drops a client's shared frames.
    mutating func dropShared(_ connection: ConnectionID) {
        guard self.connections[connection].sharedBytes > 0 else { return }
        self.connections[connection].sharedStart = 0
        self.connections[connection].sharedEnd = 0
        self.frames.letGo()
    }
}
