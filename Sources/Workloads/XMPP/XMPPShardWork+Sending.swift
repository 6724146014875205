import Ledger
package import LoadEngine
import LoopContext
import Measurement
package import NIOCore
import Transport
import XMPP

/// What became of the stanzas of a loop, beside what the counters say.
package struct StanzaBook: Hashable, Sendable {
    package var timedOut: UInt64 = 0
    /// Answered with an error, or lost with their connection.
    package var failed: UInt64 = 0
    /// Still without an answer when the run ended.
    package var inFlight: UInt64 = 0
    /// Messages whose stream did not end in good order.
    package var unconfirmed: UInt64 = 0
}

extension XMPPShardWork {
    /// In open loop as many messages join one write.
    static var largestJoined: Int { 1_024 }

    /// Bytes of one write, or one message.
    static var largestWrite: Int { 1 << 20 }

    package func room(_ place: Int) -> Int {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection,
            connection.isWritable
        else { return 0 }
        switch self.load.work {
        case .login, .register, .unregister: return 0
        case .ping: return self.load.window - Int(self.clients[place].pings)
        case .message, .muc, .presence:
            // Nobody waits for what comes to nobody.
            if !self.load.isOpenLoop, let groups = self.groups, groups.isAlone(place, self.load.work) { return 0 }
            let most = self.load.isOpenLoop ? Self.largestJoined : Int(self.clients[place].credit)
            return min(max(0, most), self.largestBatch)
        }
    }

    package func offered(_ place: Int, count: UInt64) {
        if let operation = self.metrics.operation { self.meter.add(operation.offered, count) }
    }

    package func notSent(_ place: Int, count: UInt64, late: UInt64) {
        if let operation = self.metrics.operation { self.meter.add(operation.notSent, count) }
    }

    package func isIdle(_ place: Int) -> Bool {
        self.clients[place].unsent == 0 && self.clients[place].pings == 0 && !self.isAtAccount(place)
    }

    package var balance: DeliveryBalance { self.received }

    package func send(_ place: Int, _ batch: OperationBatch) {
        guard let connection = self.clients[place].connection, let operation = self.metrics.operation else { return }
        let began = self.context.refresh()
        self.recordLag(batch, operation, began: began)
        if self.load.work == .ping { return self.sendPings(place, connection, batch, began: began) }
        self.noteOwnStanzas(place)
        let first = self.clients[place].sequence
        let size = self.writer.pointee.begin(place, number: self.number(place), message: first, now: self.time(began))
        let isJoined = self.writer.pointee.isUniform && !self.load.layers.contains(.webSocket)
        let payload: Int
        if isJoined {
            self.appendUniform(place, connection, batch, size: size, began: began)
            payload = batch.count * self.writer.pointee.payloadSize
        } else {
            payload = self.appendEach(place, connection, batch, size: size, began: began)
        }
        self.clients[place].sequence = first + UInt64(batch.count)
        self.received.expected += self.groups.map { self.begins(place, $0, first, batch.count) } ?? Int64(batch.count)
        if !self.load.isOpenLoop { self.clients[place].credit -= Int32(batch.count) }
        self.noteWrite(place, count: batch.count, at: began)
        // All of it is unsent until the kernel took it: the write may find the connection dead and end it.
        self.clients[place].unsent = Int32(batch.count)
        self.clients[place].lastSize = Int32(size)
        self.meter.add(self.metrics.traffic.payloadSent, UInt64(payload))
        let unsent = connection.flush()
        guard self.clients[place].connection === connection else { return }
        let pending = self.wholeMessages(place, of: batch.count, in: unsent)
        if !isJoined { self.unsentSizes.end(place, isWhole: unsent == 0) }
        self.clients[place].unsent = Int32(pending)
        self.sent(place, batch.count - pending)
    }

    private func appendUniform(
        _ place: Int,
        _ connection: XMPPConnection,
        _ batch: OperationBatch,
        size: Int,
        began: NIODeadline
    ) {
        let first = self.clients[place].sequence
        connection.append(count: batch.count) { buffer in
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size * batch.count) { memory in
                guard let model = memory.baseAddress else { return 0 }
                batch.forEach { index, due in
                    let sequence = first + UInt64(index)
                    let delay = Self.microseconds(began - due)
                    if index == 0 {
                        self.writer.pointee.write(place, sequence: sequence, due: due, delay: delay, to: model)
                    } else {
                        let memory = model + index * size
                        self.writer.pointee.copy(model, sequence: sequence, due: due, delay: delay, to: memory)
                    }
                }
                return size * batch.count
            }
        }
    }

    /// Messages of different sizes, or over a WebSocket, which takes them one by one.
    ///
    /// - Returns: bytes of the bodies.
    private func appendEach(
        _ place: Int,
        _ connection: XMPPConnection,
        _ batch: OperationBatch,
        size firstSize: Int,
        began: NIODeadline
    ) -> Int {
        let first = self.clients[place].sequence
        var payload = 0
        self.unsentSizes.begin(place)
        batch.forEach { index, due in
            let sequence = first + UInt64(index)
            let size =
                index == 0
                ? firstSize : self.writer.pointee.render(place, message: sequence, now: self.time(began))
            self.unsentSizes.add(size)
            payload += self.writer.pointee.payloadSize
            connection.append { buffer in
                buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { memory in
                    guard let base = memory.baseAddress else { return 0 }
                    let delay = Self.microseconds(began - due)
                    self.writer.pointee.write(place, sequence: sequence, due: due, delay: delay, to: base)
                    return size
                }
            }
        }
        return payload
    }

    private func wholeMessages(_ place: Int, of count: Int, in bytes: Int) -> Int {
        self.unsentSizes.whole(place, of: count, in: bytes, each: self.clients[place].lastSize)
    }

    private static func microseconds(_ time: TimeAmount) -> UInt32 { UInt32(clamping: time.nanoseconds / 1_000) }

    private func sent(_ place: Int, _ count: Int) {
        guard count > 0, let operation = self.metrics.operation else { return }
        self.meter.add(operation.sent, UInt64(count))
        self.tallies[place].sent += UInt64(count)
    }

    /// What was due before the write began: the plan's view, and the generator's own part of the delay.
    private func recordLag(_ batch: OperationBatch, _ operation: XMPPMetrics.Operation, began: NIODeadline) {
        if batch.isDueWhenAble {
            self.meter.record(
                self.metrics.scheduleLag,
                (began - batch.ableSince).nanoseconds,
                count: UInt64(batch.count),
                lane: batch.lane(batch.ableSince)
            )
            return
        }
        batch.forEach { _, due in
            let able = max(due, batch.ableSince)
            let lane = batch.lane(due)
            self.meter.record(operation.blocked, (able - due).nanoseconds, lane: lane)
            self.meter.record(self.metrics.scheduleLag, (began - able).nanoseconds, lane: lane)
        }
    }

    // MARK: - The channel's own buffer

    package func wrote(_ place: Int, bytes: Int) { self.meter.add(self.metrics.traffic.bytesSent, UInt64(bytes)) }

    package func writable(_ place: Int, now: NIODeadline) {
        let count = Int(self.clients[place].unsent)
        if count > 0 {
            self.clients[place].unsent = 0
            self.unsentSizes.forget(place)
            self.sent(place, count)
        }
        guard self.clients[place].stage == .up else { return }
        if self.room(place) > 0 || self.shard.isDraining { self.shard.able(place, at: now) }
    }

    /// Decides what the kernel never took of the last write.
    func settleUnsent(_ place: Int, bytes: Int) {
        let count = Int(self.clients[place].unsent)
        guard count > 0 else { return }
        let lost = self.wholeMessages(place, of: count, in: bytes)
        self.unsentSizes.forget(place)
        self.sent(place, count - lost)
        if let operation = self.metrics.operation { self.meter.add(operation.notSent, UInt64(lost)) }
        self.clients[place].unsent = 0
        self.clients[place].lost = Int32(lost)
    }

    /// Settles the fate of what was sent on a connection: a closing tag is answered behind everything before it
    /// (RFC 6120 §4.4), and stream management knows up to where the server came.
    func connectionEnded(_ place: Int, isConfirmed: Bool) {
        guard self.load.stanza != nil, let operation = self.metrics.operation else { return }
        let first = self.clients[place].connectionFirst
        let last = self.clients[place].sequence
        self.clients[place].connectionFirst = last
        guard last > first else { return }
        let lost = UInt64(self.clients[place].lost)
        let known = isConfirmed ? last - first - lost : min(self.clients[place].acknowledged, last - first - lost)
        self.meter.add(operation.known, known)
        self.tallies[place].acked += known
        guard first + known < last else { return }
        self.books.unconfirmed += last - first - known - lost
        let range = first + known..<last
        if let groups = self.groups {
            self.loses(place, groups, range, neverSent: lost)
            return self.clients[place].unknown.insert(range)
        }
        let refused = self.clients[place].unknown.clamped(to: range).count
        self.received.expected -= Int64(last - first - known - refused)
        // Any of them may have arrived, and is then among those received.
        self.received.uncertain += Int64(last - first - known - refused - lost)
        self.clients[place].unknown.insert(range)
    }
}
