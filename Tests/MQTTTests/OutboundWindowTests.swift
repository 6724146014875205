import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("Publishes in flight")
struct OutboundWindowTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func publish(_ sequence: UInt64, _ qos: QoS = .atLeastOnce, written: Int64 = 0) -> InFlightPublish {
        let time = self.start + .milliseconds(written)
        return InFlightPublish(due: time, written: time, sequence: sequence, qos: qos)
    }

    @Test("[MQTT-4.3.2-3] a QoS 1 flow is PUBLISH and PUBACK")
    func qos1() {
        var window = OutboundWindow(limit: 2)
        let first = self.publish(7)
        #expect(window.begin(first) == 1)
        #expect(window.room == 1)
        #expect(window.received(.pubAck, id: 1, failed: false) == .completed(first, timedOut: false))
        #expect(window.received(.pubAck, id: 1, failed: false) == .unknown)
        #expect(window.room == 2)
    }

    @Test("[MQTT-4.3.3-4] a QoS 2 flow is PUBLISH, PUBREC, PUBREL, PUBCOMP, and holds its place until the last")
    func qos2() {
        var window = OutboundWindow(limit: 1)
        let first = self.publish(7, .exactlyOnce)
        #expect(window.begin(first) == 1)
        #expect(window.received(.pubRec, id: 1, failed: false) == .release(first, timedOut: false))
        #expect(window.room == 0)
        #expect(window.received(.pubRec, id: 1, failed: false) == .releaseAgain)
        #expect(window.received(.pubComp, id: 1, failed: false) == .completed(first, timedOut: false))
        #expect(window.room == 1)
    }

    @Test("PUBREC with an error ends the flow, and gives its place back (§4.9)")
    func refusedPubRec() {
        var window = OutboundWindow(limit: 1)
        let first = self.publish(0, .exactlyOnce)
        let id = window.begin(first)
        #expect(window.received(.pubRec, id: id, failed: true) == .completed(first, timedOut: false))
        #expect(window.room == 1)
        #expect(window.received(.pubRec, id: id, failed: false) == .unknown)
    }

    @Test(
        "an acknowledgement of the other QoS, or out of its turn, is of the wrong flow",
        arguments: [
            (.atLeastOnce, .pubRec), (.atLeastOnce, .pubComp), (.exactlyOnce, .pubAck), (.exactlyOnce, .pubComp),
        ] as [(QoS, PacketType)]
    )
    func wrongFlow(_ qos: QoS, _ type: PacketType) {
        var window = OutboundWindow(limit: 4)
        let id = window.begin(self.publish(0, qos))
        #expect(window.received(type, id: id, failed: false) == .wrongFlow)
        #expect(window.inFlight == 1)
    }

    @Test(
        "[MQTT-2.2.1-3] identifiers count up, wrap after 65,535, are never 0, and skip the one in use",
        arguments: [1, 3, 16, 17]
    )
    func nextIdentifier(_ limit: Int) {
        var window = OutboundWindow(limit: limit)
        let stuck = window.begin(self.publish(0))
        var last = stuck
        var wraps = 0
        for sequence in 1...140_000 as ClosedRange<UInt64> {
            guard window.room > 0 else {
                // In a window of one, the identifier must be released first.
                _ = window.received(.pubAck, id: last, failed: false)
                continue
            }
            let id = window.begin(self.publish(sequence))
            #expect(id != 0)
            if limit > 1 { #expect(id != stuck) }
            // One identifier is in use, so at most one is skipped.
            let step = Int(id) - Int(last) + (id < last ? 65_535 : 0)
            #expect(step == 1 || limit > 1 && step == 2, "\(id) after \(last)")
            if id < last { wraps += 1 }
            last = id
            _ = window.received(.pubAck, id: id, failed: false)
        }
        #expect(wraps == 2)
    }

    @Test("[MQTT-2.2.1-3] all 65,535 identifiers can be in use, and no more")
    func allIdentifiers() {
        var window = OutboundWindow(limit: 65_535)
        var seen: Set<UInt16> = []
        for sequence in 0..<65_535 as Range<UInt64> { seen.insert(window.begin(self.publish(sequence))) }
        #expect(seen.count == 65_535 && !seen.contains(0))
        #expect(window.room == 0)
        #expect(window.begin(.subscribe(1)) == nil)
        for id in 1...65_535 as ClosedRange<UInt16> {
            guard case .completed = window.received(.pubAck, id: id, failed: false) else {
                Issue.record("\(id) was lost")
                return
            }
        }
        #expect(window.inFlight == 0 && window.room == 65_535)
    }

    @Test("[MQTT-3.3.4-8] requests take identifiers, but no place in the window")
    func requests() {
        var window = OutboundWindow(limit: 1)
        #expect(window.begin(.subscribe(2)) == 1)
        #expect(window.begin(.unsubscribe(1)) == 2)
        #expect(window.room == 1)
        #expect(window.begin(self.publish(0)) == 3)
        #expect(window.received(.pubAck, id: 1, failed: false) == .wrongFlow)
        #expect(window.end(.subscribe(2), id: 3) == .mismatch)
        #expect(window.end(.subscribe(1), id: 1) == .mismatch)
        #expect(window.end(.unsubscribe(2), id: 1) == .mismatch)
        #expect(window.end(.subscribe(2), id: 1) == .answered)
        #expect(window.end(.subscribe(2), id: 1) == .unknown)
        // Before 5.0 an UNSUBACK has no codes.
        #expect(window.end(.unsubscribe(nil), id: 2) == .answered)
        #expect(window.inFlight == 1)
    }

    @Test("a publish is reported as timed out once, keeps its identifier, and may still be acknowledged")
    func timeout() {
        var window = OutboundWindow(limit: 4)
        let early = self.publish(0)
        let late = self.publish(1, .exactlyOnce, written: 10)
        _ = window.begin(early)
        _ = window.begin(late)
        var expired: [InFlightPublish] = []
        #expect(window.expire(writtenBefore: self.start - .nanoseconds(1)) { expired.append($0) } == self.start)
        #expect(expired.isEmpty)
        #expect(
            window.expire(writtenBefore: self.start) { expired.append($0) } == self.start + .milliseconds(10)
        )
        #expect(expired == [early])
        #expect(window.inFlight == 2 && window.awaited == 1)
        #expect(window.expire(writtenBefore: .distantFuture) { expired.append($0) } == nil)
        #expect(window.expire(writtenBefore: .distantFuture) { expired.append($0) } == nil)
        #expect(expired == [early, late])
        #expect(window.awaited == 0 && window.room == 4)
        #expect(window.received(.pubAck, id: 1, failed: false) == .completed(early, timedOut: true))
        #expect(window.received(.pubRec, id: 2, failed: false) == .release(late, timedOut: true))
        #expect(window.received(.pubComp, id: 2, failed: false) == .completed(late, timedOut: true))
        #expect(window.room == 4 && window.awaited == 0)
    }

    @Test("a timed out publish gives its place back, not its send quota (§4.9), and 1,024 of them stop the client")
    func timedOutPlaces() {
        var window = OutboundWindow(limit: 1)
        for sequence in 0..<1_024 as Range<UInt64> {
            #expect(window.room == 1)
            _ = window.begin(self.publish(sequence))
            #expect(window.room == 0)
            _ = window.expire(writtenBefore: .distantFuture) { _ in }
        }
        #expect(window.room == 0 && window.inFlight == 1_024)
        _ = window.received(.pubAck, id: 7, failed: false)
        #expect(window.room == 1)
        window.setReceiveMaximum(1_023)
        #expect(window.room == 0)
    }

    @Test("[MQTT-4.6.0-1] a resumed session sends again in the order of the first time, over the identifiers' wrap")
    func resume() {
        var window = OutboundWindow(limit: 8)
        // Up to just before the wrap.
        for sequence in 0..<65_532 as Range<UInt64> {
            _ = window.received(.pubAck, id: window.begin(self.publish(sequence)), failed: false)
        }
        let request = window.begin(.subscribe(1))
        let ids = (0..<6).map { window.begin(self.publish(70_000 + $0, $0 % 2 == 0 ? .exactlyOnce : .atLeastOnce)) }
        #expect(ids == [65_534, 65_535, 1, 2, 3, 4])
        _ = window.received(.pubRec, id: 1, failed: false)
        _ = window.received(.pubAck, id: 2, failed: false)
        var again: [(UInt16, UInt64, Bool)] = []
        window.resume { again.append(($0, $1.sequence, $2)) }
        #expect(again.map(\.0) == [65_534, 65_535, 1, 3, 4])
        #expect(again.map(\.1) == [70_000, 70_001, 70_002, 70_004, 70_005])
        #expect(again.map(\.2) == [false, false, true, false, false])
        // The request ended with its connection.
        #expect(window.end(.subscribe(1), id: request ?? 0) == .unknown)
        #expect(window.inFlight == 5 && window.room == 3)
    }

    @Test("a limit below what is in flight lets no new one start, and takes nothing away")
    func smallerLimit() {
        var window = OutboundWindow(limit: 8)
        for sequence in 0..<8 as Range<UInt64> { _ = window.begin(self.publish(sequence)) }
        window.setReceiveMaximum(3)
        #expect(window.room == 0 && window.inFlight == 8)
        for id in 1...6 as ClosedRange<UInt16> { _ = window.received(.pubAck, id: id, failed: false) }
        #expect(window.room == 1)
    }

    // MARK: Against a model

    private struct Model {
        enum State { case pubAck, pubRec, pubComp, subscribe }
        struct Flow {
            var state: State
            var publish: InFlightPublish?
            var timedOut = false
        }
        var flows: [UInt16: Flow] = [:]

        var publishes: Int { self.flows.values.count { $0.publish != nil } }
        var awaited: Int { self.flows.values.count { $0.publish != nil && !$0.timedOut } }
    }

    @Test("behaves as a dictionary would, whatever happens in which order", arguments: 0..<40)
    func model(_ seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let limit = Int.random(in: 1...100, using: &generator)
        var receiveMaximum = 65_535
        var window = OutboundWindow(limit: limit)
        var model = Model()
        for step in 0..<3_000 {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<45 where window.room > 0:
                let qos: QoS = Bool.random(using: &generator) ? .atLeastOnce : .exactlyOnce
                let publish = self.publish(UInt64(step), qos, written: Int64(step))
                let id = window.begin(publish)
                #expect(id != 0 && model.flows[id] == nil)
                model.flows[id] = .init(state: qos == .atLeastOnce ? .pubAck : .pubRec, publish: publish)
            case 45..<47:
                guard let id = window.begin(.subscribe(1)) else { break }
                #expect(id != 0 && model.flows[id] == nil)
                model.flows[id] = .init(state: .subscribe)
            case 47..<93:
                let id = model.flows.keys.sorted().randomElement(using: &generator) ?? 9
                self.acknowledge(id, &window, &model, failed: Int.random(in: 0..<10, using: &generator) == 0)
            case 93..<95:
                let id = UInt16.random(in: 1...65_535, using: &generator)
                if model.flows[id] == nil { #expect(window.received(.pubAck, id: id, failed: false) == .unknown) }
            case 95:
                receiveMaximum = Int.random(in: 1...100, using: &generator)
                window.setReceiveMaximum(receiveMaximum)
            case 96: self.expire(before: step - 200, &window, &model)
            case 97: self.resume(&window, &model)
            case 98 where Int.random(in: 0..<10, using: &generator) == 0:
                var told: [UInt64] = []
                window.abandon { publish, _ in told.append(publish.sequence) }
                #expect(told.sorted() == model.flows.values.compactMap { $0.publish?.sequence }.sorted())
                model.flows = [:]
            default: break
            }
            #expect(window.inFlight == model.publishes)
            #expect(window.awaited == model.awaited)
            #expect(window.room == max(0, min(limit - model.awaited, receiveMaximum - model.publishes)))
        }
    }

    private func acknowledge(_ id: UInt16, _ window: inout OutboundWindow, _ model: inout Model, failed: Bool) {
        guard let flow = model.flows[id] else {
            #expect(window.received(.pubAck, id: id, failed: false) == .unknown)
            return
        }
        switch (flow.state, flow.publish) {
        case (.pubAck, let publish?):
            #expect(window.received(.pubAck, id: id, failed: failed) == .completed(publish, timedOut: flow.timedOut))
            model.flows[id] = nil
        case (.pubRec, let publish?):
            let action = window.received(.pubRec, id: id, failed: failed)
            #expect(
                action
                    == (failed
                        ? .completed(publish, timedOut: flow.timedOut) : .release(publish, timedOut: flow.timedOut))
            )
            if failed { model.flows[id] = nil } else { model.flows[id]?.state = .pubComp }
        case (.pubComp, let publish?):
            #expect(window.received(.pubComp, id: id, failed: failed) == .completed(publish, timedOut: flow.timedOut))
            model.flows[id] = nil
        default:
            #expect(window.end(.subscribe(1), id: id) == .answered)
            model.flows[id] = nil
        }
    }

    private func expire(before step: Int, _ window: inout OutboundWindow, _ model: inout Model) {
        let limit = self.start + .milliseconds(Int64(step))
        var told: Set<UInt64> = []
        let next = window.expire(writtenBefore: limit) { told.insert($0.sequence) }
        var expected: Set<UInt64> = []
        var earliest: NIODeadline?
        for (id, flow) in model.flows {
            guard let publish = flow.publish, !flow.timedOut else { continue }
            if publish.written <= limit {
                expected.insert(publish.sequence)
                model.flows[id]?.timedOut = true
            } else {
                earliest = min(earliest ?? publish.written, publish.written)
            }
        }
        #expect(told == expected)
        #expect(next == earliest)
    }

    private func resume(_ window: inout OutboundWindow, _ model: inout Model) {
        for (id, flow) in model.flows where flow.publish == nil { model.flows[id] = nil }
        var told: [UInt64] = []
        window.resume { id, publish, released in
            told.append(publish.sequence)
            #expect(model.flows[id]?.publish == publish)
            #expect(released == (model.flows[id]?.state == .pubComp))
        }
        // Publishes only as far as the limit reaches; what was released is not counted (§4.9).
        let flows = model.flows.values.sorted { ($0.publish?.sequence ?? 0) < ($1.publish?.sequence ?? 0) }
        let open = flows.filter { $0.state != .pubComp }.compactMap { $0.publish?.sequence }
        let released = flows.filter { $0.state == .pubComp }.compactMap { $0.publish?.sequence }
        #expect(told == (open.prefix(window.mostAgain) + released).sorted())
        #expect(Int(window.heldBack) == max(0, open.count - window.mostAgain))
    }
}
