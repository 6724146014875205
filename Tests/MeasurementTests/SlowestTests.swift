import Measurement
import Testing

@Suite("The slowest messages are kept in fixed memory")
struct SlowestTests {
    /// The durations of a distribution, with ties.
    static let models =
        Distribution.all.map { $0.values(600) } + [
            (1...500).map { Int64($0) }, (1...500).reversed().map { Int64($0) }, Array(repeating: 7, count: 500), [],
            [Int64.max, 0, -1, 5],
        ]

    private static var catalog: (catalog: MetricCatalog, ack: DurationID, login: DurationID) {
        var catalog = MetricCatalog()
        let ack = catalog.duration("publish_ack_duration", ["qos": "1"])
        let login = catalog.duration("iq_duration", wholeRun: true)
        return (catalog, ack, login)
    }

    private static func entry(
        _ metric: DurationID,
        _ duration: Int64,
        number: Int = 0,
        _ kind: SlowKind = .answer
    ) -> SlowEntry {
        SlowEntry(kind, metric, duration: duration, due: Int64(number), sender: 1, sequence: UInt64(number))
    }

    @Test("a heap holds what sorting gives, and its floor is the least slow of a full one", arguments: models)
    func heap(_ durations: [Int64]) {
        let metric = Self.catalog.ack
        for limit in [1, 2, 3, 100] {
            var heap = SlowHeap(limit: limit)
            for (number, duration) in durations.enumerated() {
                heap.add(Self.entry(metric, duration, number: number))
                let best = durations[...number].sorted(by: >).prefix(limit)
                // The whole of it only now and then: sorting is what makes this slow.
                guard number % 97 == 0 || number == durations.count - 1 else { continue }
                #expect(heap.entries.map(\.duration).sorted(by: >) == Array(best))
                #expect(heap.floor == (best.count < limit ? .min : best.last))
            }
            // Each entry is a message of its own.
            #expect(Set(heap.entries.map(\.sequence)).count == heap.entries.count)
            #expect(heap.entries.count == min(limit, durations.count))
        }
    }

    @Test("no entry is allocated after the heap was made")
    func memory() {
        let metric = Self.catalog.ack
        var heap = SlowHeap()
        func address(_ heap: SlowHeap) -> UnsafeRawPointer? {
            heap.entries.withUnsafeBytes { $0.baseAddress }
        }
        heap.add(Self.entry(metric, 1))
        let first = address(heap)
        for duration in 2...5_000 { heap.add(Self.entry(metric, Int64(duration))) }
        #expect(first != nil && address(heap) == first)
    }

    @Test("a swap leaves the loop's heap where it is, and comes with the messages only if there are new ones")
    func swap() {
        let (catalog, ack, _) = Self.catalog
        let meter = LoopMeter(catalog: catalog, loop: 0)
        var accumulator = RunAccumulator(catalog: catalog)
        func second(_ durations: [Int64]) -> [Int64] {
            for duration in durations where meter.isSlow(.answer, duration) {
                meter.keepSlow(Self.entry(ack, duration), lane: MetricLane.measured)
            }
            _ = accumulator.add(second: 0, phase: "measure", samples: [meter.swap()])
            return accumulator.slowest().map(\.entry.duration).sorted(by: >)
        }
        #expect(second([5, 9, 7]) == [9, 7, 5])
        // Nothing new came, and nothing is forgotten.
        #expect(second([]) == [9, 7, 5])
        #expect(second((10..<200).map { $0 }) == (100..<200).reversed())
        #expect(!meter.isSlow(.answer, 100) && meter.isSlow(.answer, 101))
        #expect(meter.isSlow(.arrival, 1))
    }

    @Test(
        "lanes that are left out of the totals are left out here",
        arguments: [
            ([], [0], [0, 1]), ([MetricStage("warm", measured: false), MetricStage("load")], [0, 3], [0, 1, 2, 3]),
        ] as [([MetricStage], [Int64], [Int64])]
    )
    func lanes(_ stages: [MetricStage], _ measured: [Int64], _ whole: [Int64]) {
        var (catalog, ack, login) = Self.catalog
        catalog.stages = stages
        for (metric, kept) in [(ack, measured), (login, whole)] {
            let meter = LoopMeter(catalog: catalog, loop: 0)
            for lane in 0..<2 + stages.count { meter.keepSlow(Self.entry(metric, Int64(lane)), lane: lane) }
            var accumulator = RunAccumulator(catalog: catalog)
            _ = accumulator.add(second: 0, phase: "measure", samples: [meter.swap()])
            #expect(accumulator.slowest().map(\.entry.duration).sorted() == kept)
        }
    }

    @Test("each is found with the group that recorded it and the labels of its metric")
    func groups() {
        let groups = ["one", "two"].map { name in
            var catalog = MetricCatalog()
            if name == "two" { _ = catalog.counter("other") }
            let ack = catalog.duration("publish_ack_duration", ["qos": name == "one" ? "1" : "2"])
            let late = catalog.duration("delivery_duration", ["stream": "s"])
            return (catalog: GroupCatalog(name, catalog), ack: ack, late: late)
        }
        var accumulator = RunAccumulator(groups: groups.map(\.catalog))
        let samples = groups.enumerated().map { group, own in
            (0..<2).map { loop in
                let meter = LoopMeter(catalog: own.catalog.catalog, loop: loop)
                meter.keepSlow(Self.entry(own.ack, Int64(10 * group + loop)), lane: MetricLane.measured)
                meter.count(tlsVersion: "TLSv1.3")
                if loop == 1 { meter.count(tlsVersion: "TLSv1.2") }
                return meter.swap()
            }
        }
        #expect(accumulator.tlsVersions == nil)
        _ = accumulator.add(second: 0, phase: "measure", seconds: 1, groups: samples)
        let besides = Self.entry(groups[1].late, 99, .arrival)
        let found = accumulator.slowest(besides: [(group: 1, entry: besides)]).sorted {
            $0.entry.duration < $1.entry.duration
        }
        #expect(found.map(\.entry.duration) == [0, 1, 10, 11, 99])
        #expect(found.map(\.group) == [0, 0, 1, 1, 1])
        #expect(found.map(\.metric).suffix(2) == ["publish_ack_duration", "delivery_duration"])
        #expect(found[0].labels == ["qos": "1", "group": "one"])
        #expect(found[4].labels == ["stream": "s", "group": "two"])
        #expect(accumulator.tlsVersions == ["TLSv1.3": 4, "TLSv1.2": 2])
    }

    @Test("a list has the slowest first, equal ones by their due times, and no more than the limit")
    func list() {
        let messages = (0..<250).map { number in
            let duration = Double(number % 50)
            return SlowMessage(metric: "m", seconds: duration, due: Double(number), client: "c\(number)")
        }
        let slowest = messages.shuffled().slowest
        #expect(slowest.count == RunRecord.slowestLimit)
        #expect(slowest.map(\.seconds) == (30..<50).reversed().flatMap { Array(repeating: Double($0), count: 5) })
        #expect(slowest.prefix(5).map(\.due) == [49, 99, 149, 199, 249])
    }
}
