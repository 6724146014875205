import Ledger
import MQTTCodec
import Measurement
import NIOCore
import RunResult
import TestSupport
import Testing
import VirtualServers

/// A server that leaves out answers and deliveries by odds of its own, and keeps the truth of it.
private final class Liar {
    private var dice: SeededDice
    private let qos: QoS
    private let answers: Double
    private let deliveries: Double
    /// From then on it says nothing at all.
    var isHung = false
    /// The packets that it let pass.
    private(set) var answered: UInt64 = 0
    private(set) var delivered: UInt64 = 0

    init(_ seed: UInt64, _ qos: QoS) {
        self.dice = SeededDice(seed: seed)
        self.qos = qos
        // Half of them are honest on one side, and a quarter on both.
        self.answers = self.dice.hits(0.5) ? 1 : Double.random(in: 0.5..<1, using: &self.dice)
        self.deliveries = self.dice.hits(0.5) ? 1 : Double.random(in: 0.5..<1, using: &self.dice)
    }

    /// The packets that arrive, of those that were sent.
    func pass(_ bytes: [UInt8]) -> [UInt8] {
        UnansweredTests.replacing(bytes) { packet in
            guard !self.isHung else { return [] }
            let last: UInt8 = self.qos == .atLeastOnce ? 0x40 : 0x70
            switch packet[0] {
            case 0x40, 0x50, 0x70:
                guard self.dice.hits(self.answers) else { return [] }
                if packet[0] == last { self.answered += 1 }
            case 0x30...0x3F:
                guard self.dice.hits(self.deliveries) else { return [] }
                self.delivered += 1
            default: break
            }
            return packet
        }
    }
}

@Suite("Servers that leave out answers and deliveries at random")
struct RandomLiarTests {
    /// 340 seeds at each QoS are over a thousand liars.
    @Test(
        "each end of the books is what the server did, and no objective hides it",
        arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce]
    )
    func ends(_ qos: QoS) throws {
        for seed: UInt64 in 1...340 {
            let liar = Liar(seed, qos)
            var dice = SeededDice(seed: ~seed)
            let run = try MQTTVirtualRun(
                .init(
                    publishers: 2,
                    subscribers: 2,
                    qualities: [qos],
                    rate: 40,
                    duration: .seconds(1),
                    latency: .milliseconds(1),
                    ackTimeout: .seconds(600),
                    seed: seed
                )
            )
            run.network.rewrite = { liar.pass($0) }
            if seed.isMultiple(of: 4) {
                run.at(.milliseconds(Int64.random(in: 100..<1_000, using: &dice))) { liar.isHung = true }
            }
            run.perform()
            self.check(run, liar, qos, seed)
        }
    }

    private func check(_ run: MQTTVirtualRun, _ liar: Liar, _ qos: QoS, _ seed: UInt64) {
        guard let books = run.record.books.first, let offered = books.offered else {
            Issue.record("no books, seed \(seed)")
            return
        }
        let row = run.row(qos)
        let outstanding = run.outstanding(qos)
        #expect(books.imbalances == [] && run.reconciliation.problems.isEmpty, "seed \(seed)")
        if qos != .atMostOnce {
            #expect(books.acked == liar.answered, "seed \(seed)")
            #expect(books.outstanding == offered - liar.answered, "seed \(seed)")
        }
        // One delivery was due for each publish.
        #expect(UInt64(row.received) == liar.delivered, "seed \(seed)")
        #expect(UInt64(row.received + row.lost) + outstanding == offered, "seed \(seed)")
        let isAnswered = books.outstanding == 0
        if isAnswered, !liar.isHung { #expect(outstanding == 0, "seed \(seed)") }
        let errors = try? run.judge("error_rate == 0").state
        #expect((errors == .met) == isAnswered, "seed \(seed)")
        let losses = try? run.judge("delivery_lost == 0").state
        #expect((losses == .met) == (liar.delivered == offered), "seed \(seed)")
        let isHonest = isAnswered && liar.delivered == offered
        let ending = try? run.record.ending()
        #expect(ending?.status == (isHonest ? .success : .thresholdFailed), "seed \(seed)")
        #expect(ending?.headline.hasPrefix("nothing broke") == isHonest, "seed \(seed): \(ending?.headline ?? "")")
    }
}
