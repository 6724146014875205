import FaultInjection
import LoopContext
import NIOCore
import Transport

/// One client's connection and the one to the server that belongs to it: passes on bytes, FIN and RST, each way.
///
/// Confined to the proxy's event loop. It ends, and its two legs with it, when both channels are closed.
final class ProxyLink {
    typealias Side = ProxyLeg.Side

    /// How long a cut connection may take to answer with its FIN, or a reset one to take what was written.
    private static let patience = TimeAmount.milliseconds(500)
    private static let poll = TimeAmount.milliseconds(1)
    /// Fragments written before others get their turn.
    private static let fragmentsPerTurn = 256
    /// Bytes that wait in a channel at most.
    private static let handedOver = 65_536

    let number: Int
    private unowned let loop: ProxyLoop
    private(set) var client: ProxyLeg?
    private var server: ProxyLeg?
    /// The bytes from each side, by ``ProxyLeg/Side``.
    private var lanes: [ProxyLane]
    private var delay: DelaySchedule?
    /// The server has been reached.
    private(set) var isOpen = false
    private var isConnecting = false
    /// Nothing is passed on any more.
    private(set) var isEnding = false
    private var end: ProxyEnd?
    /// To be reset when the kernel of its peer has all bytes, or at ``deadline``.
    private var resetting: ProxyLeg?
    private var deadline: NIODeadline?
    private var timer: TimerID?
    private var timerDue: NIODeadline?

    init(number: Int, loop: ProxyLoop, now: NIODeadline) {
        self.number = number
        self.loop = loop
        let faults = loop.configuration.faults
        let gate = faults.rate.map { RateGate(rate: $0, now: now) }
        self.lanes = [ProxyLane(gate: gate), ProxyLane(gate: gate)]
        self.delay = faults.delay.map { DelaySchedule($0, every: faults.delayEvery) }
        self.client = ProxyLeg(.client, of: self)
    }

    // MARK: What the legs tell

    func isUp(_ leg: ProxyLeg) {
        guard leg.side == .server else { return self.connect() }
        self.isOpen = true
        if self.loop.configuration.faults.rate != nil { leg.limitReceiveBuffer() }
        if !self.lanes[Side.client.rawValue].isPaused { self.client?.setReading(true) }
        self.pump(.client, now: self.loop.context.refresh())
    }

    private func connect() {
        let leg = ProxyLeg(.server, of: self)
        self.server = leg
        self.isConnecting = true
        let deadline = self.loop.context.refresh() + self.loop.configuration.connectTimeout
        self.loop.connector.connect(client: self.number, deadline: deadline, handler: { leg }) { [weak self] result in
            guard let self else { return }
            self.isConnecting = false
            if case .failure(let error) = result {
                self.turnAway(error)
            } else if self.client == nil, self.server == nil {
                // The client was gone, and the server's channel was closed as soon as it was up.
                self.remove()
            }
        }
    }

    private func turnAway(_ error: ConnectError) {
        self.server = nil
        self.isEnding = true
        self.loop.turnedAway(error)
        self.discard()
        // A server that refuses resets too.
        if let client = self.client { client.reset() } else { self.remove() }
    }

    /// Takes what a leg has read; what cannot go on at once is copied.
    func read(_ buffer: ByteBuffer, from leg: ProxyLeg) {
        let now = self.loop.context.refresh()
        let isAllWritten = buffer.withUnsafeReadableBytes { self.take($0, from: leg.side, now: now) }
        self.loop.context.receive.give(back: buffer)
        if !isAllWritten { self.pump(leg.side, now: now) }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, from side: Side, now: NIODeadline) -> Bool {
        self.loop.counters[side].read &+= UInt64(bytes.count)
        let lane = side.rawValue
        guard !self.isEnding, !self.lanes[lane].isDone else {
            self.loop.counters[side].discarded &+= UInt64(bytes.count)
            return true
        }
        let hold = side == .server ? self.delay?.hold() : nil
        var written = 0
        if hold == nil, self.loop.writesDirectly, self.lanes[lane].held.isEmpty, !self.lanes[lane].isBlocked,
            let receiver = self.receiver(of: side), receiver.isUp
        {
            written = receiver.write(bytes)
            self.wrote(written, from: side, now: now)
        }
        guard written < bytes.count else { return true }
        self.lanes[lane].held.append(UnsafeRawBufferPointer(rebasing: bytes[written...]), now: now, hold: hold)
        return false
    }

    /// A FIN, or a RST that a write reported first and the read sees as an end of input.
    func inputEnded(of leg: ProxyLeg, byReset isReset: Bool) {
        guard !self.isEnding else { return }
        self.ended(leg.side, by: isReset ? .reset : .finish)
        if isReset { leg.close() }
    }

    func closed(_ leg: ProxyLeg, byReset isReset: Bool) {
        if leg.side == .client { self.client = nil } else { self.server = nil }
        if self.resetting === leg { self.resetting = nil }
        // Bytes in flight to this side can no longer be delivered.
        let back = leg.side.other
        self.discard(back)
        self.lanes[back.rawValue].isDone = true
        if !self.isEnding { self.ended(leg.side, by: isReset ? .reset : .finish) }
        if self.client == nil, self.server == nil, !self.isConnecting { self.remove() }
    }

    /// One side has ended; the end is passed on after the last byte.
    private func ended(_ side: Side, by ending: ProxyLane.Ending) {
        if self.lanes[side.rawValue].ending != .reset { self.lanes[side.rawValue].ending = ending }
        switch (side, ending) {
        case (.client, .finish): self.note(.client)
        case (.client, .reset): self.note(.clientReset)
        case (.server, .finish): self.note(.server)
        case (.server, .reset): self.note(.serverReset)
        }
        if ending == .reset {
            // Bytes from the other side can no longer be delivered.
            self.discard(side.other)
            self.lanes[side.other.rawValue].isDone = true
            // An ordinary end that was passed on already is followed by the reset.
            self.lanes[side.rawValue].isDone = false
        }
        self.pump(side, now: self.loop.context.refresh())
    }

    // MARK: Writing

    private func receiver(of side: Side) -> ProxyLeg? { side == .client ? self.server : self.client }

    private func wrote(_ count: Int, from side: Side, now: NIODeadline) {
        guard count > 0 else { return }
        self.loop.counters[side].written &+= UInt64(count)
    }

    /// Writes the bytes that are due, and then the end.
    func pump(_ side: Side, now: NIODeadline) {
        let lane = side.rawValue
        guard !self.isEnding, !self.lanes[lane].isDone, !self.lanes[lane].isPumping,
            let receiver = self.receiver(of: side), receiver.isUp
        else { return }
        self.lanes[lane].isPumping = true
        let loop = self.loop
        self.lanes[lane].held.advance(to: now) { loop.released(held: $0, late: $1) }
        self.write(from: side, to: receiver, now: now)
        self.lanes[lane].isPumping = false
        guard !self.isEnding else { return }
        self.passOnEnd(of: side, to: receiver)
        self.setReading(side)
        self.schedule(now: now)
    }

    private func write(from side: Side, to receiver: ProxyLeg, now: NIODeadline) {
        let lane = side.rawValue
        var fragmentsLeft = Self.fragmentsPerTurn
        while self.lanes[lane].held.free > 0, !self.lanes[lane].isBlocked, receiver.isUp {
            var limit = self.lanes[lane].held.free
            if let available = self.lanes[lane].gate?.available(now: now) {
                guard available > 0 else { return }
                limit = min(limit, available)
            }
            if let size = self.loop.nextFragmentSize() {
                guard fragmentsLeft > 0 else { return self.loop.continueLater(self) }
                fragmentsLeft -= 1
                limit = min(limit, size)
            }
            let taken = self.lanes[lane].held.take(limit) { receiver.write($0) }
            self.lanes[lane].gate?.take(taken)
            self.wrote(taken, from: side, now: now)
            if taken < limit { self.handOver(min(limit - taken, Self.handedOver), from: side, to: receiver) }
        }
    }

    private func handOver(_ count: Int, from side: Side, to receiver: ProxyLeg) {
        let lane = side.rawValue
        let bytes = self.lanes[lane].held.copy(count)
        self.lanes[lane].gate?.take(count)
        self.lanes[lane].isBlocked = true
        receiver.handOver(bytes) { isWritten in
            let now = self.loop.context.refresh()
            self.lanes[lane].isBlocked = false
            if isWritten {
                self.wrote(count, from: side, now: now)
                self.pump(side, now: now)
            } else {
                self.loop.counters[side].discarded &+= UInt64(count)
            }
        }
    }

    private func passOnEnd(of side: Side, to receiver: ProxyLeg) {
        let lane = side.rawValue
        guard let ending = self.lanes[lane].ending else { return }
        // A receiver that does not read would keep its RST waiting for ever.
        if ending == .reset, self.lanes[lane].isBlocked { self.discard(side) }
        guard self.lanes[lane].held.isEmpty, ending == .reset || !self.lanes[lane].isBlocked else { return }
        self.lanes[lane].isDone = true
        switch ending {
        case .finish: receiver.endOutput()
        case .reset where self.lanes[lane].isBlocked || receiver.hasArrived: receiver.reset()
        case .reset:
            self.resetting = receiver
            self.deadline = self.loop.context.now + Self.patience
        }
    }

    /// Reads a sender as long as its receiver keeps up.
    private func setReading(_ side: Side) {
        let lane = side.rawValue
        let limit = self.loop.heldLimit
        let count = self.lanes[lane].held.memory
        let isBlocked = self.lanes[lane].isBlocked
        let leg = side == .client ? self.client : self.server
        if !self.lanes[lane].isPaused, isBlocked || count >= limit {
            self.lanes[lane].isPaused = true
            self.loop.counters[side].pauses &+= 1
            leg?.setReading(false)
        } else if self.lanes[lane].isPaused, !isBlocked, count <= limit / 2 {
            self.lanes[lane].isPaused = false
            leg?.setReading(true)
        }
    }

    private func discard(_ side: Side) {
        self.loop.counters[side].discarded &+= UInt64(self.lanes[side.rawValue].held.removeAll())
    }

    private func discard() {
        self.discard(.client)
        self.discard(.server)
    }

    // MARK: Ends of our own

    /// Ends both connections by FIN, whatever is under way.
    func cut() {
        self.beginEnd(.cut)
        self.deadline = self.loop.context.now + Self.patience
        for leg in [self.client, self.server] {
            // Read to the peer's FIN: closing with bytes unread would reset the connection.
            leg?.setReading(true)
            leg?.endOutput()
        }
        if self.client != nil || self.server != nil { self.schedule(now: self.loop.context.now) }
    }

    /// Ends both connections by RST.
    func reset() {
        self.beginEnd(.reset)
        for leg in [self.client, self.server] { leg?.reset() }
    }

    func shutDown() {
        self.beginEnd(.shutdown)
        for leg in [self.client, self.server] { leg?.close() }
    }

    private func beginEnd(_ end: ProxyEnd) {
        self.note(end)
        self.isEnding = true
        self.resetting = nil
        self.discard()
    }

    /// Records the first end only: it is the cause.
    private func note(_ end: ProxyEnd) { if self.end == nil { self.end = end } }

    private func remove() {
        self.isEnding = true
        self.discard()
        if let timer = self.timer.take() { self.loop.context.timers.unregister(timer) }
        self.loop.removed(self, end: self.isOpen ? self.end : nil)
    }

    // MARK: Time

    private func schedule(now: NIODeadline) {
        var due: NIODeadline?
        func add(_ time: NIODeadline?) { if let time { due = due.map { min($0, time) } ?? time } }
        if self.resetting != nil {
            add(now + Self.poll)
        } else if self.isEnding {
            add(self.deadline)
        } else {
            for lane in self.lanes.indices { add(self.lanes[lane].nextDue(now: now)) }
        }
        guard due != self.timerDue else { return }
        self.timerDue = due
        guard let due else {
            if let timer = self.timer { self.loop.context.timers.cancel(timer) }
            return
        }
        let timer = self.timer ?? self.loop.makeTimer(for: self)
        self.timer = timer
        self.loop.context.timers.schedule(timer, at: due)
    }

    func timerFired(now: NIODeadline) {
        self.timerDue = nil
        if let leg = self.resetting {
            guard !leg.hasArrived, now < self.deadline ?? now else {
                self.resetting = nil
                return leg.reset()
            }
            return self.schedule(now: now)
        }
        if self.isEnding {
            self.client?.close()
            self.server?.close()
            return
        }
        self.pump(.client, now: now)
        self.pump(.server, now: now)
        if !self.isEnding { self.schedule(now: now) }
    }
}

extension ProxyLeg.Side {
    var other: Self { self == .client ? .server : .client }
}

extension ProxyCounters {
    subscript(_ side: ProxyLeg.Side) -> Bytes {
        get { side == .client ? self.up : self.down }
        set { if side == .client { self.up = newValue } else { self.down = newValue } }
    }
}
