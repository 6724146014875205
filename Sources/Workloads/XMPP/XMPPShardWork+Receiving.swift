import Ledger
import LoadEngine
import Measurement
package import NIOCore
import XMPP
package import XMPPCodec

extension XMPPShardWork {
    package func read(_ place: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        self.countRead(place, bytes, room: self.room(place))
        // Only after the login: negotiation is parsed in a different way, and a new header begins a new reader.
        if self.slab.probe.place == place, self.clients[place].stage == .up {
            self.slab.probe.copy(bytes, atBoundary: atBoundary)
        }
        self.slab.roomBeforeRead = self.room(place)
    }

    package func readEnded(_ place: Int, now: NIODeadline) {
        let madeRoom = self.load.work != .login && self.clients[place].stage == .up
        self.sendAfterRead(place, madeRoom: madeRoom, now: now)
    }

    func countStanza(_ place: Int) {
        self.tallies[place].packets += 1
        self.meter.add(self.metrics.traffic.decodePackets)
    }

    package func received(_ place: Int, _ element: borrowing ElementView, now: NIODeadline) {
        self.countStanza(place)
        if let groups = self.groups { return self.received(place, groups, element, now: now) }
        switch element.kind {
        case .message: self.message(place, element, now: now)
        case .presence: self.meter.add(self.metrics.presences)
        case .iq: self.meter.add(self.metrics.iqs)
        case .other: break
        }
    }

    private func message(_ place: Int, _ element: borrowing ElementView, now: NIODeadline) {
        let isError = element.withAttribute("type") { $0.elementsEqual("error".utf8) } ?? false
        if isError { return self.refused(place, element) }
        self.tallies[place].received += 1
        guard let ids = self.metrics.message else { return self.meter.add(self.metrics.otherMessages) }
        var size = 0
        let table = self.base64
        let header = element.withText(ofChild: "body") { body -> PayloadHeader? in
            size = body.count
            return XMPPBody.header(of: body, table: table)
        }
        self.meter.add(self.metrics.traffic.payloadReceived, UInt64(size))
        // The server marks stanzas that it stored for an offline client; they do not measure its speed.
        guard !(element.firstChild("delay", "urn:xmpp:delay") != nil) else { return self.meter.add(ids.delayed) }
        self.meter.add(ids.fresh)
        guard self.load.hasLedger else {
            self.received.received += 1
            return self.addCredit(place)
        }
        // Messages left over from another run are not losses of this run.
        guard case .some(.some(let header)) = header, header.run == self.load.run else { return }
        let arrival = self.ledger.pointee.arrived(
            subscription: place,
            publisher: header.publisher,
            qos: 0,
            sequence: header.sequence
        )
        guard let arrival else { return }
        // A duplicate gives no credit: a server that duplicates messages would otherwise widen the window without end.
        if case .duplicate = arrival { return }
        self.received.received += 1
        self.addCredit(place)
        self.recordDelivery(place, Int(header.publisher), header, ids, now: now)
    }

    /// In closed loop each arrival allows one send.
    private func addCredit(_ place: Int) {
        if !self.load.isOpenLoop { self.clients[place].own.credit += 1 }
    }

    /// `sender`: the number of the client that sent it.
    func recordDelivery(
        _ place: Int,
        _ sender: Int,
        _ header: PayloadHeader,
        _ ids: XMPPMetrics.Message,
        now: NIODeadline
    ) {
        let due = header.due &- self.load.realtimeOffset
        let duration = Int64(now.uptimeNanoseconds) &- due
        let lane = self.slab.times.lane(.uptimeNanoseconds(UInt64(clamping: due)))
        self.deliveryEnd.lastArrival = Int64(now.uptimeNanoseconds)
        self.meter.record(ids.delivery, duration, lane: lane)
        if let end = self.shard.drainEnded, now > end {
            self.meter.count(.deliveryLate, ["stanza": self.load.stanza ?? "message"])
        }
        let waited = Int64(XMPPBody.delay(of: header)) * 1_000
        self.meter.record(ids.duration, max(0, duration - waited), lane: lane)
        guard self.meter.isSlow(.arrival, duration) else { return }
        self.deliveryEnd.longest = max(self.deliveryEnd.longest, duration)
        let entry = SlowEntry(
            .arrival,
            ids.delivery,
            duration: duration,
            due: due,
            sender: UInt32(truncatingIfNeeded: sender),
            sequence: header.sequence,
            written: due &+ waited,
            receiver: self.number(place)
        )
        self.keepSlow(entry, lane: lane)
    }

    /// A message of this client was returned as an error.
    ///
    /// Its peer no longer expects it, unless it arrived all the same.
    func refused(_ place: Int, _ element: borrowing ElementView) {
        self.countError(element)
        guard let operation = self.metrics.operation, self.load.stanza != nil else { return }
        self.meter.add(operation.refused)
        if self.groups == nil { self.addCredit(place) }
        guard let sequence = self.sequence(place, of: element) else { return }
        guard !self.clients[place].unknown.contains(sequence) else { return }
        self.clients[place].unknown.insert(sequence)
        if let groups = self.groups { return self.refused(place, groups, sequence) }
        self.received.expected -= 1
    }

    /// The sequence number of a stanza that came back, of which the id holds the lower half; `nil` for any other id.
    func sequence(_ place: Int, of element: borrowing ElementView) -> UInt64? {
        let number = element.withAttribute("id") { XMPPMessageWriter.number(ofID: $0) }
        guard case .some(.some(let number)) = number else { return nil }
        let last = self.clients[place].sequence &- 1
        let sequence = last &- UInt64(UInt32(truncatingIfNeeded: last) &- number)
        return sequence <= last && last != .max ? sequence : nil
    }

    /// Counts an error by its condition (RFC 6120 §8.3.3).
    func countError(_ element: borrowing ElementView) {
        let error = StanzaError(element.element())
        let condition = error?.condition.rawValue ?? "undefined-condition"
        self.error(
            "stanza \(condition)",
            "the server answered a stanza with \(condition)" + (error?.text.map { " (\($0))" } ?? "")
        )
    }
}
