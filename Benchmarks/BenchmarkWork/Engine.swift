import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore

extension Work {
    static let engine = timers + schedules + histograms + meters + headers + ledgers

    private static let timers = [
        Work(.engine, "timing wheel of 1,000 timers, schedule and fire", operations: 1_000) {
            let wheel = Place(TimingWheel())
            let timers = (0..<1_000).map { wheel.pointer.pointee.register(tag: $0) }
            let now = Place<Int64>(0)
            return {
                // Spread over a second, in no order, but always in the same.
                for (number, timer) in timers.enumerated() {
                    let wait = Int64(number &* 7_919 % 1_000) &* 1_000_000
                    wheel.pointer.pointee.schedule(timer, at: .uptimeNanoseconds(UInt64(now.pointer.pointee &+ wait)))
                }
                // A whole number of revolutions, so that each round meets the wheel as the one before did.
                now.pointer.pointee &+= 1 << 30
                var fired = 0
                wheel.pointer.pointee.advance(to: .uptimeNanoseconds(UInt64(now.pointer.pointee))) { _ in fired &+= 1 }
                precondition(fired == 1_000)
            }
        },
        Work(.engine, "timing wheel of 1,000 timers, move one", operations: 1_000) {
            let wheel = Place(TimingWheel())
            let timers = (0..<1_000).map { wheel.pointer.pointee.register(tag: $0) }
            return {
                for (number, timer) in timers.enumerated() {
                    wheel.pointer.pointee.schedule(timer, at: .uptimeNanoseconds(UInt64(number &* 1_000_003)))
                }
            }
        },
    ]

    private static let schedules = [
        ("at a rate", OperationSchedule.Pace.rate(perSecond: 50_000)), ("by interval", .interval(.milliseconds(100))),
    ].map { name, pace in
        Work(.engine, "operation schedule \(name), next operation of a shard", operations: 1_000) {
            let schedule = OperationSchedule(pace: pace, clients: 1_000)
            return {
                var shard = ShardSchedule(schedule, shard: 1, of: 2)
                var sum: Int64 = 0
                for _ in 0..<1_000 {
                    guard let next = shard.next else { fatalError("a schedule without a limit does not end") }
                    sum &+= next.due.nanoseconds &+ Int64(next.position)
                    shard.advance()
                }
                keep(sum)
            }
        }
    }

    /// Durations as a run has them: from microseconds to a few milliseconds, the same ones each time.
    private static let durations: [Int64] = {
        var state: UInt64 = 42
        return (0..<1_000).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return 20_000 + Int64(state >> 33) % (1 << Int64(10 + state >> 60))
        }
    }()

    private static func filledHistogram() -> Histogram {
        var histogram = Histogram()
        for duration in durations { histogram.record(duration) }
        return histogram
    }

    private static let histograms = [
        Work(.engine, "histogram, record", operations: 1_000) {
            let histogram = Place(Histogram())
            let values = durations
            return {
                for duration in values { histogram.pointer.pointee.record(duration) }
            }
        },
        Work(.engine, "histogram, merge one of 1,000 values", operations: 1) {
            let total = Place(filledHistogram())
            let other = filledHistogram()
            return { total.pointer.pointee.merge(other) }
        },
        Work(.engine, "histogram of 1,000 values, six percentiles", operations: 1) {
            let histogram = filledHistogram()
            return { keep(histogram.percentiles([50, 90, 95, 99, 99.9, 99.99])) }
        },
    ]

    private static let meters: [Work] = {
        @Sendable func catalog() -> (MetricCatalog, [DurationID], CounterID) {
            var catalog = MetricCatalog()
            let durations = (0..<3).map { catalog.duration("publish_ack_duration", ["qos": "\($0)"]) }
            let counter = catalog.counter("publish_acked")
            return (catalog, durations, counter)
        }
        return [
            Work(.engine, "meter, record and count", operations: 1_000) {
                let (metrics, ids, counter) = catalog()
                let meter = LoopMeter(catalog: metrics, loop: 0)
                let values = durations
                return {
                    for duration in values {
                        meter.record(ids[0], duration)
                        meter.add(counter)
                    }
                }
            },
            Work(.engine, "meter of 3 durations, swap and clear", operations: 1) {
                let (metrics, ids, _) = catalog()
                let meter = LoopMeter(catalog: metrics, loop: 0)
                let sample = Place(meter.swap())
                return {
                    for id in ids {
                        meter.record(id, 20_000)
                        meter.record(id, 2_000_000)
                    }
                    // The two samples change places, so that no histogram is allocated after the first rounds.
                    let full = meter.swap(sample.pointer.move())
                    sample.pointer.initialize(to: full)
                    sample.pointer.pointee.clear()
                }
            },
        ]
    }()

    /// The cost of the ledger's header: of a message that copies another one, and of its arrival.
    private static let headers = [
        header("ledger header, 32 bytes, patch and read") { memory, number in
            PayloadHeader.patch(flags: 5, sequence: number, due: Int64(number) &* 1_000, at: memory)
            return PayloadHeader.read(UnsafeRawBufferPointer(start: memory, count: 32))
        },
        short("ledger header, 16 bytes, write and read", isAddressed: false),
        short("ledger header, 20 bytes, write and read", isAddressed: true),
        header("ledger header, 24 characters, write and find") { memory, number in
            write(number, isAddressed: false, asText: true, to: memory)
            var offset = 0
            return ShortHeader.find(in: UnsafeRawBufferPointer(start: memory, count: 32), at: &offset) {
                $0.header(run: 7, now: 0)
            }
        },
    ]

    private static func short(_ name: String, isAddressed: Bool) -> Work {
        header(name) { memory, number in
            write(number, isAddressed: isAddressed, to: memory)
            return ShortHeader(UnsafeRawBufferPointer(start: memory, count: 32))?.header(run: 7, now: 0)
        }
    }

    private static func write(
        _ number: UInt64,
        isAddressed: Bool,
        asText: Bool = false,
        to memory: UnsafeMutableRawPointer
    ) {
        ShortHeader.write(
            to: memory,
            run: 7,
            publisher: 3,
            flags: 5,
            sequence: number,
            due: Int64(number) &* 1_000,
            isAddressed: isAddressed,
            asText: asText
        )
    }

    private static func header(
        _ name: String,
        _ body: @escaping @Sendable (_ memory: UnsafeMutableRawPointer, _ number: UInt64) -> PayloadHeader?
    ) -> Work {
        Work(.engine, name, operations: 1_000) {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
            return {
                guard let base = memory.baseAddress else { return }
                PayloadHeader.write(to: base, run: 7, publisher: 3, flags: 5, sequence: 0, due: 0)
                for number: UInt64 in 0..<1_000 {
                    guard body(base, number) != nil else { fatalError("a header that was written is read") }
                }
            }
        }
    }

    private static let ledgers = [
        Work(.engine, "stream ledger, arrivals in order", operations: 1_000) {
            let ledger = Place(SubscriberLedger(publishers: 10))
            let subscription = ledger.pointer.pointee.addSubscription(0)
            let next = Place<UInt64>(0)
            return {
                for sequence in next.pointer.pointee..<next.pointer.pointee &+ 100 {
                    for publisher: UInt32 in 0..<10 {
                        let arrival = ledger.pointer.pointee.arrived(
                            subscription: subscription,
                            publisher: publisher,
                            qos: 1,
                            sequence: sequence
                        )
                        precondition(arrival == .new)
                    }
                }
                next.pointer.pointee &+= 100
            }
        },
        Work(.engine, "stream ledger, every second arrival late", operations: 1_000) {
            let ledger = Place(SubscriberLedger(publishers: 1))
            let subscription = ledger.pointer.pointee.addSubscription(0)
            let next = Place<UInt64>(0)
            return {
                var late = 0
                for pair in 0..<500 {
                    let sequence = next.pointer.pointee &+ UInt64(pair) &* 2
                    for swapped in [sequence &+ 1, sequence] {
                        let arrival = ledger.pointer.pointee.arrived(
                            subscription: subscription,
                            publisher: 0,
                            qos: 1,
                            sequence: swapped
                        )
                        if arrival == .newLate { late &+= 1 }
                    }
                }
                // The very first arrival has nothing to be late to.
                precondition(late >= 499)
                next.pointer.pointee &+= 1_000
            }
        },
        Work(.engine, "share group of 4 members, arrival and merge", operations: 1_000) {
            let members = Place(ShareMembers(publishers: 10))
            let places = (0..<4).map { _ in members.pointer.pointee.addMember(group: 0) }
            let ledger = Place(ShareGroupLedger())
            let batch = Place(ShareBatch())
            let next = Place<UInt64>(0)
            return {
                for number in 0..<1_000 {
                    members.pointer.pointee.arrived(
                        member: places[number & 3],
                        ShareBatch.Arrival(
                            publisher: UInt32(number % 10),
                            qos: 1,
                            sequence: next.pointer.pointee &+ UInt64(number / 10),
                            lane: 0,
                            due: 0,
                            at: Int64(number)
                        )
                    )
                }
                next.pointer.pointee &+= 100
                let full = members.pointer.pointee.swap(batch.pointer.move())
                ledger.pointer.pointee.merge([full])
                batch.pointer.initialize(to: full)
            }
        },
    ]
}
