import Coordination
import LoadEngine
import Measurement
import NIOCore
import Testing

/// A coordinator and the time, as a test moves it.
private struct Stage {
    var coordinator: Coordinator
    var seconds: Int64 = 100

    static let plan = "2:abc"

    init(
        _ segments: Int,
        run: String = "nightly",
        continues: Bool = false,
        least: Int? = nil,
        longest: Int64? = nil,
        watches: Int = 0
    ) {
        var terms = Coordinator.Terms(
            version: "1.0",
            run: run,
            plan: Self.plan,
            segments: segments,
            welcome: SegmentWelcome(run: "nightly-1", seed: 7, clock: "c"),
            joinBy: .uptimeNanoseconds(220 * 1_000_000_000),
            continuesWithoutLost: continues
        )
        terms.leastClients = least
        terms.watches = watches
        terms.longest = longest.map { .seconds($0) }
        self.coordinator = Coordinator(terms)
    }

    var now: Coordinator.Now {
        Coordinator.Now(uptime: .uptimeNanoseconds(UInt64(self.seconds) * 1_000_000_000), realtime: self.seconds)
    }

    func address(_ index: Int, _ instance: String = "a", run: String = "nightly") -> Coordinator.Address {
        Coordinator.Address(run: run, index: index, instance: instance)
    }

    mutating func take(_ report: SegmentReport, of index: Int, _ instance: String = "a") -> [Coordinator.Action] {
        self.coordinator.receive(report, from: self.address(index, instance), at: self.now)
    }

    mutating func join(_ index: Int, of count: Int, _ instance: String = "a") -> [Coordinator.Action] {
        self.take(.hello(Self.hello(index, of: count)), of: index, instance)
    }

    static func hello(_ index: Int, of count: Int) -> SegmentHello {
        SegmentHello(
            version: "1.0",
            run: "nightly",
            plan: Self.plan,
            segment: index + 1,
            segments: count,
            host: "host\(index + 1)"
        )
    }

    /// The first segment ends, and its files are fetched.
    mutating func endSegment() -> [Coordinator.Action] {
        let files = [ResultFile(name: "run.json", length: 1, sha256: "")]
        _ = self.take(.ended(SegmentEnding(status: 0, files: files)), of: 0)
        return self.coordinator.collected(0, words: nil, at: self.now)
    }

    /// All segments have joined and are ready.
    mutating func begin(_ count: Int) -> [Coordinator.Action] {
        var last: [Coordinator.Action] = []
        for index in 0..<count { _ = self.join(index, of: count) }
        for index in 0..<count { last = self.take(.ready, of: index) }
        return last
    }
}

extension [Coordinator.Action] {
    /// The orders, by the segment that they go to.
    fileprivate var orders: [Int: [SegmentOrder]] {
        self.reduce(into: [:]) { orders, action in
            if case .tell(let order, let address) = action { orders[address.index, default: []].append(order) }
        }
    }

    fileprivate var warnings: [String] {
        self.compactMap { if case .warn(let line) = $0 { line } else { nil } }
    }

    fileprivate var isOver: Bool { self.contains(.over) }
}

@Suite("The server watches of a run over many machines")
struct WatchingTests {
    private static let watch = (1 << 20) + 5

    private static func join(_ stage: inout Stage, _ instance: String = "w") -> [Coordinator.Action] {
        var hello = Stage.hello(Self.watch, of: 0)
        (hello.plan, hello.host, hello.watched) = ("", "db1", ["mosquitto: process 312"])
        return stage.take(.hello(hello), of: Self.watch, instance)
    }

    @Test("the begin waits for as many as were asked for, and all begin at one moment")
    func begins() {
        var stage = Stage(1, watches: 1)
        #expect(stage.begin(1).isEmpty)
        #expect(!stage.coordinator.hasBegun)
        let joined = Self.join(&stage)
        #expect(joined.first == .say("a server watch (db1) has joined: mosquitto: process 312"))
        let start = SegmentOrder.start(at: stage.seconds + 1_000_000_000)
        #expect(stage.take(.ready, of: Self.watch, "w").orders == [0: [start], Self.watch: [start]])
    }

    @Test("one that comes late begins at the moment of the run, and takes no part in its load and drain")
    func late() {
        var stage = Stage(1)
        _ = stage.begin(1)
        let start = SegmentOrder.start(at: stage.seconds + 1_000_000_000)
        stage.seconds += 3
        _ = Self.join(&stage)
        #expect(stage.take(.ready, of: Self.watch, "w").orders == [Self.watch: [start]])
        #expect(stage.take(.settled, of: 0).orders.keys.sorted() == [0])
        let balance = DeliveryBalance(expected: 1, received: 1)
        #expect(stage.take(.balance(balance, group: 0), of: 0).orders.keys.sorted() == [0])
        #expect(stage.coordinator.end(.ordered).orders.keys.sorted() == [0])
    }

    @Test("the run is over when the segments are done and each watch has looked once more")
    func leaves() {
        var stage = Stage(1)
        _ = stage.begin(1)
        _ = Self.join(&stage)
        _ = stage.take(.ready, of: Self.watch, "w")
        let leaving = stage.endSegment()
        #expect(leaving.orders == [0: [.done], Self.watch: [.stop(.over)]])
        // Another one that comes now is not waited for.
        var late = Stage.hello(Self.watch + 1, of: 0)
        late.watched = []
        #expect(stage.take(.hello(late), of: Self.watch + 1).warnings[0].contains("the run is being ended"))
        #expect(!leaving.isOver)
        let last = stage.take(.ended(SegmentEnding(status: 0)), of: Self.watch, "w")
        #expect(last.orders == [Self.watch: [.done]] && last.isOver && last.warnings.isEmpty)
        #expect(stage.coordinator.lost.isEmpty)
    }

    struct Loss: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let report: SegmentReport
        let words: String
    }

    private static let losses = [
        Loss(
            testDescription: "its connection was lost",
            report: .lost,
            words: "the server watch (db1): its connection was lost; nothing watches its servers"
        ),
        Loss(
            testDescription: "it was ended",
            report: .ended(SegmentEnding(status: 105)),
            words: "the server watch (db1) has left; nothing watches its servers"
        ),
    ]

    @Test("one that is lost is named, and the run goes on and is whole", arguments: losses)
    func isLost(_ loss: Loss) {
        var stage = Stage(1)
        _ = stage.begin(1)
        _ = Self.join(&stage)
        _ = stage.take(.ready, of: Self.watch, "w")
        let actions = stage.take(loss.report, of: Self.watch, "w")
        #expect(actions.warnings == [loss.words])
        #expect(actions.orders[0] == nil)
        #expect(stage.endSegment().isOver)
        #expect(stage.coordinator.lost.isEmpty)
    }

    @Test("one that does not leave is given up after ten seconds of silence")
    func isStuck() {
        var stage = Stage(1)
        _ = stage.begin(1)
        _ = Self.join(&stage)
        _ = stage.take(.ready, of: Self.watch, "w")
        #expect(!stage.endSegment().isOver)
        stage.seconds += 9
        #expect(!stage.coordinator.tick(stage.now).isOver)
        stage.seconds += 1
        #expect(stage.coordinator.tick(stage.now).isOver)
    }

    @Test("one that lives and does not leave is given up as well")
    func isDeaf() {
        var stage = Stage(1)
        _ = stage.begin(1)
        _ = Self.join(&stage)
        _ = stage.take(.ready, of: Self.watch, "w")
        #expect(!stage.endSegment().isOver)
        stage.seconds += 10
        _ = stage.take(.echo(sent: 1), of: Self.watch, "w")
        #expect(stage.coordinator.tick(stage.now).isOver)
    }

    @Test("one that was lost before the begin, and is back after it, begins at the moment of the run")
    func isBack() {
        var stage = Stage(1)
        _ = Self.join(&stage)
        _ = stage.take(.ready, of: Self.watch, "w")
        _ = stage.take(.lost, of: Self.watch, "w")
        _ = stage.begin(1)
        let start = SegmentOrder.start(at: stage.seconds + 1_000_000_000)
        stage.seconds += 2
        #expect(stage.take(.echo(sent: 1), of: Self.watch, "w").orders[Self.watch]?.first == start)
    }

    @Test("one that has left before the begin does not count")
    func hasLeft() {
        var stage = Stage(1, watches: 1)
        _ = Self.join(&stage)
        _ = stage.take(.ready, of: Self.watch, "w")
        _ = stage.take(.ended(SegmentEnding(status: 105)), of: Self.watch, "w")
        #expect(stage.begin(1).isEmpty && !stage.coordinator.hasBegun)
    }

    @Test("one that did not come within the time to join is named, and the segments give up")
    func isMissing() {
        var stage = Stage(1, watches: 1)
        _ = stage.begin(1)
        stage.seconds = 219
        _ = stage.take(.echo(sent: 1), of: 0)
        stage.seconds = 220
        let actions = stage.coordinator.tick(stage.now)
        #expect(actions.warnings == ["of 1 server watches 0 joined within the time to join"])
        #expect(actions.orders == [0: [.stop(.ordered)]])
    }
}

@Suite("The coordinator of a run over many machines")
struct CoordinatorTests {
    @Test("all segments begin at one moment, when the last one is ready")
    func begins() {
        var stage = Stage(3)
        for index in 0..<3 {
            #expect(
                stage.join(index, of: 3).orders == [
                    index: [.welcome(SegmentWelcome(run: "nightly-1", seed: 7, clock: "c"))]
                ]
            )
        }
        #expect(stage.take(.ready, of: 0).isEmpty)
        #expect(stage.take(.ready, of: 2).isEmpty)
        let actions = stage.take(.ready, of: 1)
        let start = SegmentOrder.start(at: stage.seconds + 1_000_000_000)
        #expect(actions.orders == [0: [start], 1: [start], 2: [start]])
        #expect(stage.coordinator.hasBegun)
    }

    @Test("loads begin together, and the drain ends when everything has arrived in all segments")
    func conducts() {
        var stage = Stage(2)
        _ = stage.begin(2)
        #expect(stage.take(.settled, of: 0).isEmpty)
        let load = SegmentOrder.load(at: stage.seconds + 1_000_000_000)
        #expect(stage.take(.settled, of: 1).orders == [0: [load], 1: [load]])
        #expect(stage.take(.balance(DeliveryBalance(expected: 10, received: 4), group: 1), of: 0).isEmpty)
        #expect(stage.take(.balance(DeliveryBalance(expected: 0, received: 5), group: 1), of: 1).isEmpty)
        let done = stage.take(.balance(DeliveryBalance(expected: 0, received: 6), group: 1), of: 1)
        #expect(done.orders == [0: [.complete(group: 1)], 1: [.complete(group: 1)]])
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout SegmentHello) -> Void
        let words: String
    }

    private static let refusals = [
        Refusal(testDescription: "another run", change: { $0.run = "other" }, words: "set CLAMOR_RUN alike"),
        Refusal(testDescription: "another version", change: { $0.version = "2.0" }, words: "install one version"),
        Refusal(testDescription: "another plan", change: { $0.plan = "2:def" }, words: "another plan"),
        Refusal(testDescription: "another number", change: { $0.segments = 4 }, words: "one of 4 segments"),
        Refusal(testDescription: "no such index", change: { $0.segment = 9 }, words: "no segment 9 of 2"),
    ]

    @Test("a segment that is not of the run is refused by name, and the others go on", arguments: refusals)
    func refuses(_ refusal: Refusal) throws {
        var stage = Stage(2)
        var hello = Stage.hello(0, of: 2)
        refusal.change(&hello)
        let actions = stage.take(.hello(hello), of: 0, "stranger")
        let reason = try #require(actions.orders[0]?.first)
        guard case .refused(let words) = reason else { return #expect(Bool(false), "\(reason)") }
        #expect(words.contains(refusal.words))
        try #require(actions.warnings.count == 1)
        #expect(actions.warnings[0].contains("host1"))
        #expect(stage.begin(2).orders.count == 2)
    }

    @Test("an index that is there twice is refused, and one whose process was lost before the begin is replaced")
    func doubles() {
        var stage = Stage(2)
        _ = stage.join(0, of: 2)
        let second = stage.join(0, of: 2, "b")
        #expect(second.warnings.count == 1 && second.warnings[0].contains("there already, on host1"))
        // It may take the place of a process that is not missed yet.
        guard case .taken? = second.orders[0]?.first else { return #expect(Bool(false), "\(second)") }
        // QoS 1 may deliver the greeting twice.
        #expect(stage.join(0, of: 2).orders[0]?.count == 1)
        _ = stage.take(.ready, of: 0)
        _ = stage.take(.lost, of: 0)
        #expect(stage.join(0, of: 2, "b").warnings.isEmpty)
        _ = stage.join(1, of: 2)
        // The one that was lost is no longer ready.
        #expect(stage.take(.ready, of: 1).isEmpty)
        #expect(stage.take(.ready, of: 0, "b").orders.count == 2)
        #expect(stage.join(1, of: 2, "c").warnings[0].contains("the run has begun"))
    }

    @Test("after the time to join the missing and the unready segments are named, and the rest gives up")
    func timesOut() {
        var stage = Stage(9)
        for index in [1, 2, 5] { _ = stage.join(index, of: 9) }
        _ = stage.take(.ready, of: 1)
        stage.seconds = 219
        for index in [1, 2, 5] { _ = stage.take(.echo(sent: 1), of: index) }
        #expect(stage.coordinator.tick(stage.now).isEmpty)
        stage.seconds = 220
        let actions = stage.coordinator.tick(stage.now)
        #expect(
            actions.warnings == [
                "of 9 segments 1, 4-5, 7-9 did not join; segments 3, 6 joined, and did not get ready within the time to join"
            ]
        )
        #expect(actions.orders == [1: [.stop(.ordered)], 2: [.stop(.ordered)], 5: [.stop(.ordered)]])
        #expect(stage.coordinator.failure?.status == 69)
    }

    @Test("ten seconds of silence are a stall, and a segment that comes back is named")
    func stalls() {
        var stage = Stage(2)
        _ = stage.begin(2)
        stage.seconds += 9
        _ = stage.take(.echo(sent: 1), of: 1)
        #expect(stage.coordinator.tick(stage.now).isEmpty)
        stage.seconds += 1
        #expect(stage.coordinator.tick(stage.now).warnings == ["segment 1 (host1) has been silent for 10 s"])
        #expect(stage.coordinator.tick(stage.now).isEmpty)
        stage.seconds += 2
        #expect(stage.take(.echo(sent: 1), of: 0).warnings == ["segment 1 (host1) is back after 12 s"])
    }

    @Test("a short silence is named when it is over")
    func shortSilence() {
        var stage = Stage(1)
        _ = stage.begin(1)
        stage.seconds += 5
        #expect(stage.take(.echo(sent: 1), of: 0).warnings == ["segment 1 (host1) is back after 5 s"])
        stage.seconds += 2
        #expect(stage.take(.echo(sent: 1), of: 0).warnings.isEmpty)
    }

    @Test("with abort a lost segment ends the run; with continue the others go on", arguments: [false, true])
    func loses(continues: Bool) {
        var stage = Stage(3, continues: continues)
        _ = stage.begin(3)
        stage.seconds += 12
        let actions = stage.take(.lost, of: 1)
        #expect(actions.warnings.first == "segment 2 (host2): its connection was lost 12 s after the begin")
        // The lost one may come back, and then ends too.
        let stop = [SegmentOrder.stop(.lost)]
        #expect(actions.orders == (continues ? [:] : [0: stop, 1: stop, 2: stop]))
        #expect(stage.coordinator.lost == [1: "host2: its connection was lost 12 s after the begin"])
        let file = ResultFile(name: "run.json", length: 1, sha256: "")
        for index in [0, 2] {
            _ = stage.take(.ended(SegmentEnding(status: 0, files: [file])), of: index)
            let last = stage.coordinator.collected(index, words: nil, at: stage.now)
            #expect(last.isOver == (index == 2))
        }
    }

    @Test("a segment that was lost and comes back has had all orders, and its results count")
    func comesBack() {
        var stage = Stage(2, continues: true)
        _ = stage.begin(2)
        _ = stage.take(.lost, of: 1)
        let load = SegmentOrder.load(at: stage.seconds + 1_000_000_000)
        // The order waits for it at the broker.
        #expect(stage.take(.settled, of: 0).orders == [0: [load], 1: [load]])
        stage.seconds += 9
        #expect(stage.take(.settled, of: 1).warnings == ["segment 2 (host2) is back after 9 s"])
        #expect(stage.coordinator.lost.isEmpty)
        let file = ResultFile(name: "run.json", length: 1, sha256: "")
        for index in 0..<2 { _ = stage.take(.ended(SegmentEnding(status: 0, files: [file])), of: index) }
        // The connection is lost again while its files are fetched.
        _ = stage.take(.lost, of: 1)
        #expect(!stage.coordinator.collected(1, words: nil, at: stage.now).isOver)
        #expect(stage.coordinator.lost.isEmpty)
        #expect(stage.coordinator.collected(0, words: nil, at: stage.now).isOver)
    }

    @Test("a segment that is silent beyond the longest run is lost, and one that still speaks is waited for")
    func silent() {
        var stage = Stage(2, continues: true, longest: 60)
        _ = stage.begin(2)
        // Clients connect for as long as they need.
        stage.seconds += 100
        for index in 0..<2 { _ = stage.take(.settled, of: index) }
        stage.seconds += 59
        _ = stage.take(.echo(sent: 1), of: 0)
        #expect(stage.coordinator.tick(stage.now).warnings == ["segment 2 (host2) has been silent for 10 s"])
        #expect(!stage.coordinator.isStill)
        stage.seconds += 1
        #expect(
            stage.coordinator.tick(stage.now).warnings == ["segment 2 (host2): it did not end 160 s after the begin"]
        )
        #expect(stage.coordinator.lost == [1: "host2: it did not end 160 s after the begin"])
        #expect(!stage.coordinator.tick(stage.now).isOver)
        // The other one falls silent as well, and nothing moves any more.
        stage.seconds += 10
        let last = stage.coordinator.tick(stage.now)
        #expect(stage.coordinator.isStill && last.isOver)
    }

    @Test("a ready segment that was away before the begin is still ready")
    func readyAgain() {
        var stage = Stage(2)
        _ = stage.join(0, of: 2)
        _ = stage.take(.ready, of: 0)
        _ = stage.take(.lost, of: 0)
        _ = stage.join(1, of: 2)
        #expect(stage.take(.ready, of: 1).orders.isEmpty)
        let start = SegmentOrder.start(at: stage.seconds + 1_000_000_000)
        #expect(stage.take(.echo(sent: 1), of: 0).orders[1] == [start])
    }

    @Test("a segment that cannot run ends the others before the begin, with its status")
    func refusesItself() {
        var stage = Stage(2)
        _ = stage.join(0, of: 2)
        _ = stage.join(1, of: 2)
        let actions = stage.take(.ended(SegmentEnding(status: 64, words: "-c 90000 needs 90000 descriptors")), of: 0)
        #expect(actions.warnings == ["segment 1 (host1): -c 90000 needs 90000 descriptors"])
        #expect(actions.orders == [0: [.done], 1: [.stop(.ordered)]])
        #expect(stage.coordinator.failure?.status == 64)
        #expect(stage.take(.ended(SegmentEnding(status: 105, words: "given up")), of: 1).isOver)
    }

    @Test("a broken threshold and a signal end all segments")
    func ends() {
        var stage = Stage(2)
        _ = stage.begin(2)
        let stop = SegmentOrder.stop(.threshold("publish_ack_duration p99 < 5ms abort"))
        #expect(
            stage.coordinator.end(.threshold("publish_ack_duration p99 < 5ms abort")).orders == [0: [stop], 1: [stop]]
        )
        #expect(stage.coordinator.broken == "publish_ack_duration p99 < 5ms abort")
        #expect(stage.coordinator.end(.ordered).orders == [0: [.stop(.ordered)], 1: [.stop(.ordered)]])
        #expect(stage.coordinator.broken == "publish_ack_duration p99 < 5ms abort")
    }

    enum Standstill: CaseIterable {
        case nobodyThere, oneSilent, allSilent
    }

    @Test("a signal ends a coordinator at once when nothing moves", arguments: Standstill.allCases)
    func standstill(_ standstill: Standstill) {
        var stage = Stage(2)
        switch standstill {
        case .nobodyThere: break
        case .oneSilent: _ = stage.join(0, of: 2)
        case .allSilent: _ = stage.begin(2)
        }
        stage.seconds += 10
        _ = stage.coordinator.tick(stage.now)
        #expect(stage.coordinator.end(.ordered).isOver)
        #expect(stage.coordinator.hasBegun || stage.coordinator.failure?.status == 105)
    }

    @Test("a signal waits for a segment that speaks until that falls silent; a threshold waits for silent ones")
    func waits() {
        var stage = Stage(2)
        _ = stage.begin(2)
        stage.seconds += 9
        _ = stage.take(.echo(sent: 1), of: 0)
        stage.seconds += 1
        _ = stage.coordinator.tick(stage.now)
        #expect(!stage.coordinator.end(.ordered).isOver)
        stage.seconds += 8
        #expect(!stage.coordinator.tick(stage.now).isOver)
        stage.seconds += 1
        #expect(stage.coordinator.tick(stage.now).isOver)
        #expect(stage.coordinator.lost.count == 2)

        var broken = Stage(1)
        _ = broken.begin(1)
        broken.seconds += 10
        _ = broken.coordinator.tick(broken.now)
        #expect(!broken.coordinator.end(.threshold("a < 5ms abort")).isOver)
        #expect(!broken.coordinator.tick(broken.now).isOver)
    }

    @Test("with min_clients the load begins when so many are up in all segments together, once")
    func leastClients() {
        var stage = Stage(2, least: 15)
        _ = stage.begin(2)
        func interval(_ up: Double) -> SegmentReport {
            let metrics = ["connected": up, "idle": 99].map { state, count in
                Metric(
                    name: "clients",
                    labels: ["state": state],
                    unit: "clients",
                    reading: .gauge(GaugeReading(value: count))
                )
            }
            return .interval(TimelineInterval(second: 0, phase: "connect", seconds: 1, metrics: metrics, lanes: []))
        }
        #expect(stage.take(interval(10), of: 0).orders.isEmpty)
        #expect(stage.take(interval(4), of: 1).orders.isEmpty)
        let load = SegmentOrder.load(at: stage.seconds + 1_000_000_000)
        #expect(stage.take(interval(5), of: 1).orders == [0: [load], 1: [load]])
        #expect(stage.take(interval(9), of: 1).orders.isEmpty)
        #expect(stage.take(.settled, of: 0).isEmpty && stage.take(.settled, of: 1).isEmpty)
    }

    @Test("the coordinator answers an exchange of times with its own clock")
    func echoes() {
        var stage = Stage(1)
        _ = stage.join(0, of: 1)
        let actions = stage.take(.echo(sent: 5), of: 0)
        #expect(actions.orders == [0: [.echo(sent: 5, received: stage.seconds, answered: stage.seconds)]])
    }
}
