import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing

/// One event of a client; messages and identifiers are numbers.
private enum Event {
    case publish(UInt64, PacketID)
    /// A commit begins with all that is gathered, and returns or fails.
    case commit, returns, fails, refuses(MQTTStoreError)
    case pubRec(UInt64), done(UInt64)
    case message(PacketID), pubRel(PacketID)
    case lost, newSession, retry
    /// The session is resumed, or the receive maximum has room: the message is written if it may be.
    case resend(UInt64)
    /// CONNACK does not allow the message.
    case disallow(UInt64)
}

/// A client with a store and a server under the test's control.
private struct Rig: ~Copyable {
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    var flows = StoredFlows()
    var session: MQTTSession
    var now = Self.start
    var underWay: [MQTTStoreChange]?
    /// The client's messages in the store.
    var outbound: [UInt64: MQTTStoredMessage] = [:]
    var inbound: Set<PacketID> = []
    /// Packets that were sent.
    var sent: [String] = []

    init(window: Int = 16) {
        let options = SessionOptions(version: .v5, cleanStart: false, window: window, defersReleases: true)
        self.session = MQTTSession(options)
        self.connect(resumes: false)
    }

    mutating func connect(resumes: Bool) {
        _ = self.session.connect(clientID: "c", username: nil, password: nil, now: self.now)
        _ = self.session.received(ConnAck(sessionPresent: resumes), now: self.now)
    }

    static func message(_ sequence: UInt64, _ qos: QoS = .exactlyOnce) -> MQTTMessage {
        MQTTMessage(topic: "t", payload: [UInt8(truncatingIfNeeded: sequence)], qos: qos)
    }

    mutating func begin() {
        if self.underWay == nil, self.flows.mayCommit { self.underWay = self.flows.takeChanges(self.flows.commitLimit) }
    }

    mutating func apply(_ change: MQTTStoreChange) {
        switch change {
        case .insert(let stored):
            if case .received(let id) = stored.stage {
                self.inbound.insert(id)
            } else {
                self.outbound[stored.sequence] = stored
            }
        case .advance(let sequence, let stage): self.outbound[sequence]?.stage = stage
        case .remove(let sequence): self.outbound[sequence] = nil
        case .forget(let id): self.inbound.remove(id)
        case .removeAll: (self.outbound, self.inbound) = ([:], [])
        }
    }

    mutating func returned() {
        guard let changes = self.underWay else { return }
        self.underWay = nil
        self.flows.commitEnded()
        for change in changes { self.apply(change) }
        self.perform(changes)
    }

    mutating func perform(_ changes: [MQTTStoreChange]) {
        for change in changes {
            switch self.flows.committed(change) {
            case nil: break
            case .send(let sequence): self.write(sequence)
            case .release(let id): self.sent.append("PUBREL \(id.rawValue)")
            case .record(let id): self.sent.append("PUBREC \(id.rawValue)")
            case .complete(let id): self.sent.append("PUBCOMP \(id.rawValue)")
            }
        }
    }

    mutating func failed(_ refusal: MQTTStoreError?) {
        guard let changes = self.underWay else { return }
        self.underWay = nil
        switch self.flows.failed(changes, refusal, &self.session, now: self.now) {
        case .known: self.perform(changes)
        case .ended(let sequence): self.flows.finish(sequence, forgets: false)
        case .retried, .split, .delayed, .dropped: break
        }
    }

    mutating func write(_ sequence: UInt64) {
        guard let packet = self.flows.packet(sequence, now: self.now), let id = packet.packetID else { return }
        self.sent.append("PUBLISH \(id.rawValue)\(packet.dup ? " DUP" : "")")
        self.flows.wrote(sequence)
    }

    mutating func take(_ event: Event) {
        switch event {
        case .publish(let sequence, let id):
            self.flows.add(Self.message(sequence), sequence: sequence, id, due: self.now, now: self.now)
        case .commit: self.begin()
        case .returns: self.returned()
        case .fails: self.failed(nil)
        case .refuses(let error): self.failed(error)
        case .pubRec(let sequence): self.flows.recorded(sequence, keepsPayload: false)
        case .done(let sequence): self.flows.finish(sequence)
        case .message(let id): self.flows.received(id)
        case .pubRel(let id): self.flows.released(id)
        case .lost: self.flows.connectionEnded()
        case .newSession:
            let unsent = self.flows.flows.filter(\.value.isUnsent).map(\.key).sorted()
            for sequence in self.flows.flows.keys where !unsent.contains(sequence) { self.flows.finish(sequence) }
            self.flows.requeue(unsent)
            self.flows.sessionBegan()
        case .retry:
            self.now = self.now + .seconds(1)
            _ = self.flows.timePassed(now: self.now)
        case .resend(let sequence): self.write(sequence)
        case .disallow(let sequence):
            self.flows.refused(sequence, .qosNotSupported)
            for (sequence, _) in self.flows.takeUntakeable() { _ = self.flows.giveUp(sequence, &self.session) }
        }
    }
}

@Suite("Messages are stored before they are sent")
struct StoredFlowsTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        fileprivate let events: [Event]
        let sent: [String]
        /// Messages of ours that the store has in the end.
        var stored: Set<UInt64> = []
    }

    static let rows = [
        Row(testDescription: "a publish waits for its commit", events: [.publish(0, 1), .commit], sent: []),
        Row(
            testDescription: "the commit returns",
            events: [.publish(0, 1), .commit, .returns],
            sent: ["PUBLISH 1"],
            stored: [0]
        ),
        Row(
            testDescription: "PUBREL waits for the commit of PUBREC",
            events: [.publish(0, 1), .commit, .returns, .pubRec(0), .commit],
            sent: ["PUBLISH 1"],
            stored: [0]
        ),
        Row(
            testDescription: "a QoS 2 flow from end to end leaves nothing",
            events: [
                .publish(0, 1), .commit, .returns, .pubRec(0), .commit, .returns, .done(0), .commit, .returns,
            ],
            sent: ["PUBLISH 1", "PUBREL 1"]
        ),
        Row(
            testDescription: "the commit returns behind the end of the connection: sent once, without DUP",
            events: [.publish(0, 1), .commit, .lost, .returns, .resend(0)],
            sent: ["PUBLISH 1"],
            stored: [0]
        ),
        Row(
            testDescription: "the commit returned before the connection ended: sent again, with DUP",
            events: [.publish(0, 1), .commit, .returns, .lost, .resend(0), .resend(0)],
            sent: ["PUBLISH 1", "PUBLISH 1 DUP"],
            stored: [0]
        ),
        Row(
            testDescription: "a resumed session does not send what is not stored",
            events: [.publish(0, 1), .commit, .lost, .resend(0), .returns],
            sent: ["PUBLISH 1"],
            stored: [0]
        ),
        Row(
            testDescription: "the server has no session: an unsent message is queued, and its commit sends nothing",
            events: [.publish(0, 1), .commit, .lost, .newSession, .returns, .commit, .returns],
            sent: [],
            stored: [0]
        ),
        Row(
            testDescription: "the server has no session: PUBREL of the old one does not go out",
            events: [.publish(0, 1), .commit, .returns, .pubRec(0), .commit, .lost, .newSession, .returns],
            sent: ["PUBLISH 1"],
            stored: [0]
        ),
        Row(
            testDescription: "the last answer comes before its PUBREL's commit returns",
            events: [.publish(0, 1), .commit, .returns, .pubRec(0), .commit, .done(0), .returns, .commit, .returns],
            sent: ["PUBLISH 1"]
        ),
        Row(
            testDescription: "PUBREC and PUBCOMP of a message that came wait for their commits",
            events: [.message(5), .commit, .returns, .pubRel(5), .commit, .returns],
            sent: ["PUBREC 5", "PUBCOMP 5"]
        ),
        Row(
            testDescription: "PUBREC of a message of the session before does not answer one of the new session",
            events: [.message(5), .commit, .lost, .newSession, .message(5), .returns],
            sent: []
        ),
        Row(
            testDescription: "PUBCOMP does not go out on another connection than PUBREL came on",
            events: [.message(5), .commit, .returns, .pubRel(5), .commit, .lost, .returns],
            sent: ["PUBREC 5"]
        ),
        Row(
            testDescription: "a store that failed has it again a second later",
            events: [.publish(0, 1), .commit, .fails, .commit, .returns, .retry, .commit, .returns],
            sent: ["PUBLISH 1"],
            stored: [0]
        ),
        Row(
            testDescription: "a refused message is over, and those beside it go out",
            events: [
                .publish(0, 1), .publish(1, 2), .commit, .refuses(.full(limit: 1)), .commit,
                .refuses(.full(limit: 1)), .commit, .returns,
            ],
            sent: ["PUBLISH 2"],
            stored: [1]
        ),
        Row(
            testDescription: "PUBREC of a message that the store has already goes out",
            events: [.message(5), .commit, .refuses(.duplicate(5))],
            sent: ["PUBREC 5"]
        ),
        Row(
            testDescription: "a refused PUBREL is tried again, and a removal takes its place",
            events: [
                .publish(0, 1), .commit, .returns, .pubRec(0), .commit, .refuses(.full(limit: 1)), .done(0), .commit,
                .returns,
            ],
            sent: ["PUBLISH 1"]
        ),
        Row(
            testDescription: "what CONNACK does not allow is removed without being sent",
            events: [.publish(0, 1), .commit, .returns, .lost, .disallow(0), .commit, .returns],
            sent: ["PUBLISH 1"]
        ),
    ]

    @Test("the order of events decides which packets are sent", arguments: Self.rows)
    func order(_ row: Row) {
        var rig = Rig()
        for event in row.events { rig.take(event) }
        let (sent, stored) = (rig.sent, Set(rig.outbound.keys))
        #expect(sent == row.sent)
        #expect(stored == row.stored)
    }

    @Test("a killed process sends again under the same identifiers, in order, and queued messages under new ones")
    func restore() {
        var rig = Rig()
        let stages: [MQTTStoredMessage.Stage] = [
            .published(4), .released(9), .queued, .published(4), .received(7), .queued,
        ]
        let stored = stages.enumerated().map { index, stage in
            MQTTStoredMessage(sequence: UInt64(index), stage: stage, message: Rig.message(UInt64(index)))
        }
        let restored = rig.flows.restore(stored.reversed(), now: rig.now)
        // The identifier of message 0 was given again, so that flow was over.
        #expect(restored.outbound.map { [UInt64($0.id), $0.publish.sequence] } == [[9, 1], [4, 3]])
        #expect(restored.outbound.map(\.released) == [true, false])
        #expect(restored.inbound == [7])
        let changes = rig.flows.takeChanges()
        #expect(changes == [.remove(sequence: 0)])
        rig.write(3)
        let first = rig.flows.firstQueued
        #expect(first == 2)
        rig.flows.assign(5, to: 2)
        rig.write(2)
        rig.begin()
        rig.returned()
        let sent = rig.sent
        #expect(sent == ["PUBLISH 4 DUP", "PUBLISH 5"])
        #expect(rig.flows.add(Rig.message(6), now: rig.now) == 6)
    }

    @Test("the bytes of messages are counted as long as they are kept")
    func bytes() {
        var rig = Rig()
        let sequence = rig.flows.add(Rig.message(1), now: rig.now)
        rig.flows.insert(sequence)
        rig.flows.insert(sequence)
        let changes = rig.flows.changes.count
        #expect(changes == 1)
        #expect(rig.flows.bytes == 2)
        rig.flows.assign(1, to: sequence)
        rig.flows.recorded(sequence, keepsPayload: false)
        #expect(rig.flows.bytes == 1)
        rig.flows.finish(sequence)
        #expect(rig.flows.bytes == 0)
        let end = rig.flows.changes.last
        #expect(end == .remove(sequence: sequence))
    }

    @Test(
        "in any order of events nothing is sent before it is stored, and a killed process knows all that was sent",
        arguments: 1...64 as ClosedRange<UInt64>
    )
    func anyOrder(seed: UInt64) {
        var dice = SeededGenerator(seed: seed)
        var rig = Rig(window: Int.random(in: 1...4, using: &dice))
        // Identifiers of messages that the server may have.
        var known: [UInt64: UInt16] = [:]
        var checked = 0
        var isUp = true
        func connect(_ rig: inout Rig, resumes: Bool) {
            rig.connect(resumes: resumes)
            if resumes {
                var again: [UInt64] = []
                rig.session.resume(now: rig.now) { _, publish, released in
                    if !released { again.append(publish.sequence) }
                }
                for sequence in again { rig.write(sequence) }
            } else {
                var gone: [UInt64] = []
                rig.session.discardState { publish, _ in gone.append(publish.sequence) }
                let unsent = gone.filter { rig.flows.flows[$0]?.isUnsent ?? false }
                for sequence in gone where !unsent.contains(sequence) { rig.flows.finish(sequence) }
                rig.flows.requeue(unsent)
                rig.flows.sessionBegan()
                known = [:]
            }
        }
        for _ in 0..<400 {
            switch Int.random(in: 0..<16, using: &dice) {
            case 0...2:
                let qos: QoS = Bool.random(using: &dice) ? .atLeastOnce : .exactlyOnce
                let sequence = rig.flows.add(Rig.message(0, qos), now: rig.now)
                if Bool.random(using: &dice) { rig.flows.insert(sequence) }
            case 3...5:
                guard isUp else { break }
                while rig.session.room > 0, let sequence = rig.flows.firstQueued,
                    let qos = rig.flows.flows[sequence]?.message.qos
                {
                    let publish = InFlightPublish(due: rig.now, written: rig.now, sequence: sequence, qos: qos)
                    if let id = PacketID(rawValue: rig.session.publish(publish)) { rig.flows.assign(id, to: sequence) }
                }
            case 6, 7: rig.begin()
            case 8, 9: if isUp { rig.returned() }
            case 10: rig.failed(Bool.random(using: &dice) ? nil : .full(limit: 1))
            case 11:
                rig.now = rig.now + .seconds(1)
                _ = rig.flows.timePassed(now: rig.now)
            case 12, 13:
                guard isUp, let (sequence, id) = known.randomElement(using: &dice),
                    let qos = rig.flows.flows[sequence]?.message.qos
                else { break }
                let type: PacketType = qos == .atLeastOnce ? .pubAck : .pubRec
                switch rig.session.received(type, id: id, reason: 0) {
                case .completed(let publish, _):
                    rig.flows.finish(publish.sequence)
                    known[publish.sequence] = nil
                case .releaseWhenTold(let publish, _): rig.flows.recorded(publish.sequence, keepsPayload: false)
                default:
                    guard case .completed(let publish, _) = rig.session.received(.pubComp, id: id, reason: 0) else {
                        break
                    }
                    rig.flows.finish(publish.sequence)
                    known[publish.sequence] = nil
                }
            case 14:
                guard isUp else {
                    connect(&rig, resumes: Bool.random(using: &dice))
                    isUp = true
                    break
                }
                rig.session.connectionLost { _, _ in }
                rig.flows.connectionEnded()
                isUp = false
            default:
                guard Int.random(in: 0..<4, using: &dice) == 0 else { break }
                // The process is killed, and another one takes up what the store has.
                var next = Rig(window: 4)
                (next.outbound, next.inbound, next.now) = (rig.outbound, rig.inbound, rig.now)
                let restored = next.flows.restore(Array(rig.outbound.values), now: rig.now)
                next.session.restore(outbound: restored.outbound, inbound: restored.inbound)
                rig = next
                checked = 0
                connect(&rig, resumes: true)
                isUp = true
            }
            // Each packet of this step is of a message that is stored under the same identifier.
            for words in rig.sent[checked...] {
                let parts = words.split(separator: " ")
                guard let id = UInt16(parts[1]) else { continue }
                if parts[0] == "PUBREL" {
                    #expect(rig.outbound.values.contains { $0.stage == .released(PacketID(integerLiteral: id)) })
                    _ = rig.session.release(id)
                } else {
                    let holder = rig.outbound.values.first { $0.stage == .published(PacketID(integerLiteral: id)) }
                    #expect(holder != nil, "\(words)")
                    if let holder {
                        // DUP says that the server may have it.
                        #expect((known[holder.sequence] != nil) <= (parts.count == 3))
                        known[holder.sequence] = id
                    }
                }
            }
            checked = rig.sent.count
            for (sequence, id) in known {
                let stage = rig.outbound[sequence]?.stage
                let isKept = stage == .published(PacketID(integerLiteral: id))
                #expect(isKept || stage == .released(PacketID(integerLiteral: id)), "message \(sequence)")
            }
        }
    }
}

private func <= (left: Bool, right: Bool) -> Bool { !left || right }
