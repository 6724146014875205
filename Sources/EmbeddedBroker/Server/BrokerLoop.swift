import DequeModule
import FaultInjection
import LoopContext
import NIOCore
import Transport

/// Runs a ``Broker`` on one event loop: performs its actions and passes bytes and time to it.
///
/// There is one write per client and turn. Clients with output are collected and written after everything that the
/// selector had for this turn was read.
final class BrokerLoop {
    let configuration: BrokerConfiguration
    let context: LoopContext
    private(set) var fragments: FragmentSizes?
    var broker: Broker
    private var links: [BrokerLink?] = []
    /// Clients whose output is written at the end of the turn.
    private var dirty: [ConnectionID] = []
    /// Clients whose output is being written; otherwise an empty array that keeps its memory.
    private var flushing: [ConnectionID] = []
    /// The deadline that the timers were last set to.
    private var due = NIODeadline.distantPast
    private var fragmenting: [BrokerLink] = []
    private var isFlushScheduled = false
    /// Links that are ending, until their channel has closed.
    private var ending: [BrokerLink] = []
    var gate: RateGate?
    var waitingForRate = Deque<BrokerLink>()
    /// Since when links have waited without a pause.
    var behindSince: NIODeadline?
    /// The earliest time of the next tick, where retained messages wait for it: sockets have their turn before.
    private var socketsUntil = NIODeadline.distantPast
    private var isStopped = false
    private let isWanted: ServingFlag

    /// How long an ended connection may take to send its FIN, or a reset one to take its output.
    private static let endPatience = TimeAmount.milliseconds(500)
    private static let endPoll = TimeAmount.milliseconds(1)

    init(_ configuration: BrokerConfiguration, eventLoop: any EventLoop, isWanted: ServingFlag) {
        self.configuration = configuration
        self.isWanted = isWanted
        self.context = LoopContext(eventLoop: eventLoop, tick: .exact)
        self.fragments = configuration.faults.fragment.map(FragmentSizes.init)
        let now = self.context.refresh()
        self.broker = Broker(configuration, now: now)
        if let rate = configuration.faults.maximumRate { self.gate = RateGate(rate: rate, now: now) }
        self.context.timers.setPacing { [unowned self] now in self.tick(now) }
        self.due = self.broker.nextDeadline
        self.context.timers.setDue(self.due)
    }

    var counters: BrokerCounters { self.broker.counters }

    // MARK: Channel events

    func opened(_ link: BrokerLink) -> ConnectionID {
        let isCounted = self.configuration.access.refusalDelay != nil
        let peer = isCounted ? link.context?.remoteAddress?.ipAddress : nil
        let id = self.broker.connected(from: peer, now: self.context.refresh())
        if id == self.links.count { self.links.append(link) } else { self.links[id] = link }
        return id
    }

    func closed(_ link: BrokerLink) {
        guard link.id >= 0 else { return }
        self.links[link.id] = nil
        self.broker.closed(link.id, now: self.context.refresh())
        self.act()
    }

    func read(_ buffer: ByteBuffer, from link: BrokerLink) {
        let now = self.context.refresh()
        if link.ending != nil {
            self.context.receive.give(back: buffer)
        } else if self.gate != nil {
            link.backlog.writeImmutableBuffer(buffer)
            self.context.receive.give(back: buffer)
            self.readGated(link, now: now)
        } else {
            buffer.withUnsafeReadableBytes {
                self.broker.received($0, from: link.id, decoder: &link.decoder, now: now)
            }
            self.context.receive.give(back: buffer)
        }
        self.act()
        // A failing write reads its socket empty within the flush; input from that waits for the next flush.
        if self.broker.wantsFlush, self.flushing.isEmpty { self.flushDirty() }
    }

    func becameWritable(_ link: BrokerLink) {
        link.writeFragments()
        guard link.canWrite else { return }
        self.broker.setWritable(link.id, true)
        self.act()
        self.finish(link)
    }

    // MARK: Actions

    private func act() {
        while let action = self.broker.nextAction() {
            switch action {
            case .flush(let id):
                self.dirty.append(id)
                self.scheduleFlush()
            case .flushNow(let id): self.flush(id)
            case .pauseReading(let id): self.links[id]?.block(.slowConsumer)
            case .resumeReading(let id):
                self.broker.heard(id, now: self.context.now)
                self.links[id]?.unblock(.slowConsumer)
            case .close(let id): self.end(id, by: .close)
            case .reset(let id): self.end(id, by: .reset)
            case .stall(let end): self.stall(until: end)
            }
        }
        let due = self.nextDeadline
        guard due != self.due else { return }
        self.due = due
        self.context.timers.setDue(due)
    }

    private func scheduleFlush() {
        guard !self.isFlushScheduled else { return }
        self.isFlushScheduled = true
        self.context.eventLoop.assumeIsolated().execute { self.flushAll() }
    }

    private func flushAll() {
        self.isFlushScheduled = false
        let fragmenting = self.fragmenting
        self.fragmenting.removeAll(keepingCapacity: true)
        for link in fragmenting where !link.writeFragments() { self.becameWritable(link) }
        self.flushDirty()
    }

    private func flushDirty() {
        // Writing may add further clients, which wait for the next round.
        swap(&self.dirty, &self.flushing)
        for id in self.flushing { self.flush(id) }
        self.flushing.removeAll(keepingCapacity: true)
    }

    private func flush(_ id: ConnectionID) {
        guard let link = self.links[id], self.broker.hasOutput(id) else { return }
        if link.canWrite || link.ending != nil { self.write(link) }
        let canWriteMore = link.canWrite
        if !canWriteMore { self.broker.setWritable(id, false) }
        self.act()
        if canWriteMore { self.finish(link) }
    }

    private func write(_ link: BrokerLink) {
        if link.canWriteDirectly, self.broker.writeOutput(link.id, by: { link.writeDirectly($0) }) { return }
        let output = self.broker.takeOutput(link.id)
        link.write(output)
        self.broker.recycle(output)
    }

    /// Continues with the fragments after other connections had their turn.
    func continueLater(_ link: BrokerLink) {
        self.fragmenting.append(link)
        self.scheduleFlush()
    }

    func nextFragmentSize() -> Int { self.fragments?.next() ?? .max }

    private func stall(until end: NIODeadline) {
        let begin = StallClock.now()
        // The loop's own thread sleeps, so nothing at all is read or written.
        StallClock.sleep(until: end) { self.isWanted.isSet }
        self.broker.stalled(from: begin, to: StallClock.now(), now: self.context.refresh())
    }

    // MARK: Ends

    private func end(_ id: ConnectionID, by ending: BrokerLink.Ending) {
        guard let link = self.links[id], link.ending == nil else { return }
        link.ending = ending
        link.backlog = ByteBuffer()
        let patience = ending == .reset ? Self.endPatience : self.configuration.connectDeadline
        link.endDeadline = self.context.now + patience
        self.ending.append(link)
        if ending == .reset { link.block(.ending) } else { link.unblock([.rate, .slowConsumer]) }
        self.flush(id)
        self.finish(link)
    }

    /// Continues with the end of a link whose output is all written.
    private func finish(_ link: BrokerLink) {
        guard link.ending == .close, !link.hasShut, link.canWrite, !self.broker.hasOutput(link.id) else { return }
        // Shuts the write side first and waits for the peer's FIN: an immediate close could reset the connection, and
        // with it bytes that the peer has not read yet.
        link.hasShut = true
        link.endDeadline = self.context.now + Self.endPatience
        link.context?.channel.close(mode: link.inputEnded ? .all : .output, promise: nil)
    }

    /// The client has sent FIN.
    ///
    /// It is answered after everything before it was served, since the client takes the answer as a receipt.
    func inputEnded(_ link: BrokerLink) {
        guard link.ending == nil else { return self.finish(link) }
        // Answers to packets of the same read, which is possible when a WebSocket ends.
        if link.id >= 0 { self.flush(link.id) }
        if link.backlog.readableBytes == 0 { link.context?.close(promise: nil) }
    }

    /// The layer below MQTT has failed: bytes already written still go out, and nothing more is read.
    func isBroken(_ link: BrokerLink) {
        guard link.id >= 0 else { return }
        self.broker.broken(link.id, now: self.context.refresh())
        self.act()
    }

    private func pollEnding(now: NIODeadline) {
        // Closing a channel may call back at once, so the list is copied first.
        let links = self.ending
        self.ending.removeAll(keepingCapacity: true)
        for link in links where !self.hasEnded(link, now: now) { self.ending.append(link) }
    }

    private func hasEnded(_ link: BrokerLink, now: NIODeadline) -> Bool {
        guard let context = link.context, let deadline = link.endDeadline else { return true }
        if link.ending == .reset {
            let hasArrived = link.canWrite && SocketEnd.unsentBytes(context.channel) == 0
            guard hasArrived || deadline <= now else { return false }
            link.reset()
            return true
        }
        guard deadline <= now else { return false }
        // A client that does not take its output would hold the memory for ever.
        if link.hasShut { context.close(promise: nil) } else { link.reset() }
        return true
    }

    // MARK: Time

    private var nextDeadline: NIODeadline {
        var next = max(self.broker.nextDeadline, self.socketsUntil)
        if !self.ending.isEmpty {
            // Resets wait for milliseconds, FINs for longer.
            let step = self.ending.contains { $0.ending == .reset } ? Self.endPoll : Self.endPatience
            next = min(next, self.context.now + step)
        }
        if !self.waitingForRate.isEmpty, let gate = self.gate { next = min(next, gate.nextDue(now: self.context.now)) }
        return next
    }

    private func tick(_ now: NIODeadline) -> NIODeadline? {
        guard !self.isStopped else { return nil }
        self.broker.advance(to: now)
        if self.broker.owesRetained { self.socketsUntil = self.context.refresh() + Self.endPoll }
        self.pollEnding(now: now)
        self.serveWaiting(now: now)
        self.act()
        self.due = self.nextDeadline
        return self.due
    }

    /// Ends every connection, within `endPatience` at most.
    func shutDown() {
        self.isStopped = true
        self.broker.shutDown(now: self.context.refresh())
        self.act()
        self.flushAll()
        self.context.timers.stop()
        for case let link? in self.links { link.context?.close(promise: nil) }
    }
}
