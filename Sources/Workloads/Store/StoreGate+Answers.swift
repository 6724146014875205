import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// Events of the workload's connections. The sequences here are those of the store, which begin with the earlier run's.
extension StoreGate {
    /// CONNACK came.
    ///
    /// - Returns: `false` if the store has failed for this client, whose connection is aborted.
    func accepted(_ place: Int, resumed: Bool, now: NIODeadline) -> Bool {
        if self.clients[place].hasFailed {
            self.work.clients[place].connection?.abort()
            return false
        }
        if !resumed { self.clients[place].flows.sessionBegan() }
        self.begin(place, now: now)
        return true
    }

    /// The workload has handled CONNACK.
    func connected(_ place: Int) {
        self.settleFirsts()
        self.takeQueued(place)
    }

    func readEnded(_ place: Int, now: NIODeadline) {
        while self.begin(place, now: now) { self.work.clients[place].connection?.sendHeldBack(now: now) }
        self.settleFirsts()
        // Messages of the earlier run are sent first.
        self.takeQueued(place)
    }

    func received(_ place: Int, _ view: PublishView) {
        guard self.work.sessions[place].options.acknowledgesMessages == .byOwner,
            let id = PacketID(rawValue: view.packetID)
        else { return }
        if view.qos == .atLeastOnce {
            self.work.clients[place].connection?.acknowledge(.atLeastOnce, id: id.rawValue)
        } else {
            self.clients[place].flows.received(id)
            self.gather(place)
        }
    }

    func released(_ place: Int, _ id: UInt16) {
        guard let id = PacketID(rawValue: id) else { return }
        self.clients[place].flows.released(id)
        self.gather(place)
    }

    func connectionEnded(_ place: Int) {
        self.clients[place].flows.connectionEnded()
        self.settleFirsts()
    }

    /// An acknowledgement came.
    ///
    /// Afterwards `publish` has the workload's own sequence.
    ///
    /// - Returns: `false` if the message is of an earlier run, or is counted already.
    func acknowledged(
        _ place: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: inout InFlightPublish,
        finished: Bool
    ) -> Bool {
        let sequence = publish.sequence
        var isGivenUp = false
        if finished {
            isGivenUp = self.clients[place].flows.finish(sequence)?.isGivenUp ?? false
        } else {
            self.clients[place].flows.recorded(sequence, keepsPayload: false)
        }
        self.gather(place)
        if isGivenUp { return false }
        let base = self.clients[place].base
        if sequence >= base {
            publish.sequence -= base
            return true
        }
        if finished { self.endRestored(type, reason: reason, publish.qos) }
        return false
    }

    /// Counts the answer to a message of an earlier run.
    private func endRestored(_ type: PacketType, reason: UInt8, _ qos: QoS) {
        if reason < 0x80 { return self.work.meter.add(self.counter(self.metrics.delivered, qos)) }
        self.work.meter.add(self.counter(self.metrics.refused, qos))
        self.work.error(
            "\(type.name) 0x\(String(reason, radix: 16))",
            "the server refused a publish of an earlier run: \(ReasonCode(rawValue: reason)?.name ?? "unknown reason")"
        )
    }

    // MARK: - Flows without an answer

    func abandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        switch why {
        case .timedOut:
            // The acknowledgement timeout begins with the write, so it does not apply to a message that waits for its commit.
            let (base, written) = (self.clients[place].base, self.clients[place].written)
            guard (base..<max(base, written)).contains(publish.sequence),
                !(self.clients[place].flows.flows[publish.sequence]?.isGivenUp ?? false)
            else {
                self.work.shard.checkDrained(place)
                return
            }
            var own = publish
            own.sequence -= base
            self.work.noteAbandoned(place, own, .timedOut, now: now)
        case .connectionLost(let timedOutBefore):
            // The server has no session, so its flows end ([MQTT-3.2.2-5]).
            let isOfEarlierRun = self.end(place, publish, timedOut: timedOutBefore, forgets: true, now: now)
            if isOfEarlierRun { self.work.meter.add(self.counter(self.metrics.dropped, publish.qos)) }
        }
    }

    /// Counts a flow without an answer.
    ///
    /// A message that an earlier run never sent is queued again instead. At the end of the run the store `forgets`
    /// nothing: the message stays for the next run.
    ///
    /// - Returns: whether the flow has ended and is of an earlier run, so that this run's books do not have it.
    @discardableResult
    func end(
        _ place: Int,
        _ publish: InFlightPublish,
        timedOut: Bool,
        forgets: Bool,
        now: NIODeadline
    ) -> Bool {
        let sequence = publish.sequence
        let (base, written) = (self.clients[place].base, self.clients[place].written)
        defer { self.gather(place) }
        if sequence < base, self.clients[place].flows.flows[sequence]?.isUnsent ?? false {
            self.clients[place].flows.requeue([sequence])
            return false
        }
        let isGivenUp = self.clients[place].flows.finish(sequence, forgets: forgets)?.isGivenUp ?? false
        if isGivenUp || sequence < base { return !isGivenUp }
        var own = publish
        own.sequence -= base
        let wasWritten = sequence < written
        if !wasWritten { self.noteUnwritten(place, own) }
        self.work.noteAbandoned(place, own, .connectionLost(timedOutBefore: timedOut && wasWritten), now: now)
        return false
    }

    /// Counts a message of this run that was never written as not sent.
    private func noteUnwritten(_ place: Int, _ own: InFlightPublish) {
        self.work.clients[place].unknown.insert(own.sequence)
        self.work.exceptions[place, default: PublishExceptions()].unsent.insert(own.sequence)
        self.work.meter.add(self.work.ids(own.qos).pointee.operation.notSent)
    }

    // MARK: - Messages that CONNACK does not allow

    /// Ends the messages that CONNACK does not allow.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    func giveUpUntakeable(_ place: Int) -> Bool {
        guard self.clients[place].flows.hasUntakeable else { return false }
        for (sequence, reason) in self.clients[place].flows.takeUntakeable() { self.giveUp(place, sequence, reason) }
        return true
    }

    private func giveUp(_ place: Int, _ sequence: UInt64, _ reason: ReasonCode) {
        guard let flow = self.clients[place].flows.flows[sequence], flow.stage.isPublished else { return }
        self.account(place, sequence, flow, reason)
        let hadRoom = self.work.sessions[place].room > 0
        let isOver = self.clients[place].flows.giveUp(sequence, &self.work.sessions[place])
        self.gather(place)
        guard isOver else { return }
        self.takeQueued(place)
        guard self.work.clients[place].stage == .up, self.work.places.isOperator(place) else { return }
        if !hadRoom, self.work.room(place) > 0 {
            self.work.shard.markAble(place, at: self.context.now)
        } else {
            self.work.shard.checkDrained(place)
        }
    }

    private func account(_ place: Int, _ sequence: UInt64, _ flow: StoredFlows.Flow, _ reason: ReasonCode) {
        let (work, qos, now) = (self.work, flow.message.qos, self.context.now)
        let base = self.clients[place].base
        let own = InFlightPublish(due: flow.due, written: now, sequence: sequence &- base, qos: qos)
        let whose = sequence < base ? "a publish of an earlier run" : "a publish"
        work.error("not allowed", "CONNACK does not allow \(whose): \(reason.name)")
        if sequence < base {
            work.meter.add(self.counter(self.metrics.refused, qos))
        } else {
            let timedOut = flow.wasWritten && work.clients[place].unknown.contains(own.sequence)
            if !flow.wasWritten { self.noteUnwritten(place, own) }
            work.noteAbandoned(place, own, .connectionLost(timedOutBefore: timedOut), now: now)
        }
    }
}
