import MQTT
import MQTTCodec
import NIOCore
import Testing

@Suite("Since when a publish waits that goes out again before MQTT 5 (3.1.1 §4.4)")
struct RepeatTimeTests {
    private static let options = SessionOptions(
        version: .v311,
        cleanStart: false,
        keepAlive: 0,
        window: 1,
        dupTimeout: .seconds(20)
    )

    /// Publishes that the connection wanted to go out again so far.
    private func resends(_ rig: ConnectionRig) -> [RecordingObserver.Call] {
        rig.observer.calls.filter { if case .resend = $0 { true } else { false } }
    }

    /// Lets so many seconds pass, with the timer once each.
    private func wait(_ seconds: Int, _ rig: ConnectionRig) {
        for _ in 0..<seconds {
            rig.advance(.seconds(1))
            rig.connection.timerFired(now: rig.now)
        }
    }

    @Test("what has its identifier before its write is repeated in its time from the write on", arguments: [0, 19, 59])
    func written(_ delay: Int) throws {
        let rig = try ConnectionRig(Self.options)
        try rig.connect()
        let id = rig.begin(1, qos: .atLeastOnce)
        self.wait(delay, rig)
        let before = self.resends(rig).count
        let isWritten = rig.session.pointee.beginWrite(id, sequence: 1, now: rig.now)
        #expect(isWritten)
        for count in 0..<3 {
            self.wait(19, rig)
            #expect(self.resends(rig).count == before + count)
            self.wait(1, rig)
            #expect(self.resends(rig).count == before + count + 1)
        }
    }

    @Test("what a resumed session sends is not repeated at once, however old it is", arguments: [0, 1, 19, 20, 21, 59])
    func resumed(_ age: Int) throws {
        let rig = try ConnectionRig(Self.options)
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        rig.advance(.seconds(Int64(age)))
        rig.connection.abort()
        let next = try rig.again()
        try next.connect(ConnAck(sessionPresent: true))
        #expect(self.resends(next) == [.resend(id: 1, 1)])
        self.wait(19, next)
        #expect(self.resends(next).count == 1)
        self.wait(20, next)
        #expect(self.resends(next) == [.resend(id: 1, 1), .resend(id: 1, 1)])
    }

    @Test("nor is what a resumed session has held back", arguments: [0, 19, 59])
    func heldBack(_ age: Int) throws {
        let rig = try ConnectionRig(Self.options)
        let publishes = (1...2 as ClosedRange<UInt64>).map {
            InFlightPublish(due: rig.now, written: rig.now, sequence: $0, qos: .atLeastOnce)
        }
        rig.session.pointee.restore(outbound: [(1, publishes[0], false), (2, publishes[1], false)], inbound: [])
        try rig.connect(ConnAck(sessionPresent: true))
        self.wait(age, rig)
        #expect(!self.resends(rig).contains(.resend(id: 2, 2)))
        try rig.receive(.pubAck(PubAck(1)))
        #expect(self.resends(rig).last == .resend(id: 2, 2))
        let before = self.resends(rig).count
        self.wait(19, rig)
        #expect(self.resends(rig).count == before)
        self.wait(20, rig)
        #expect(self.resends(rig).count == before + 1)
    }
}
