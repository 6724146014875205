import LoadEngine
import NIOCore
import Testing

@Suite("The load of a shard whose operators have several streams")
struct StreamLoadTests {
    private func plan(
        _ paces: [OperationSchedule.Pace],
        operators: Int = 1,
        limit: UInt64? = nil,
        measure: TimeAmount? = .milliseconds(120)
    ) -> LoadPlan {
        LoadPlan(
            operators: operators,
            connect: .pending(1_000),
            pace: .streams(paces),
            limit: limit,
            measure: measure
        )
    }

    /// Every operation of a client as due time in milliseconds, stream and number.
    private func sent(_ rig: ShardRig, _ place: Int = 0) -> [[Int64]] {
        rig.work.sent.filter { $0.place == place }.flatMap(\.operations).map {
            [($0.due - rig.shard.loadBegan).nanoseconds / 1_000_000, Int64($0.stream), Int64($0.number)]
        }
    }

    @Test("a client's operations have one order: by due time, ties by stream; each stream numbers its own")
    func merged() {
        let rig = ShardRig(self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(25))]), window: 1_000)
        rig.begin()
        rig.advance(.milliseconds(50))
        #expect(
            self.sent(rig) == [
                [0, 0, 0], [0, 1, 0], [10, 0, 1], [20, 0, 2], [25, 1, 1], [30, 0, 3], [40, 0, 4], [50, 0, 5],
                [50, 1, 2],
            ]
        )
        for sent in rig.work.sent { #expect(sent.dues.allSatisfy { $0 == sent.at }) }
        // What is due at one time shares a write.
        #expect(rig.work.sent.map(\.batch.count) == [2, 1, 1, 1, 1, 1, 2])
        #expect(rig.work.sent.map(\.batch.first) == [0, 2, 3, 4, 5, 6, 7])
    }

    @Test("every operator has every stream: the counts are those of the rates and intervals")
    func counts() {
        let rig = ShardRig(
            self.plan(
                [.interval(.milliseconds(60)), .interval(.milliseconds(10)), .rate(perSecond: 50)],
                operators: 3
            ),
            window: 1_000
        )
        rig.begin()
        rig.advance(.milliseconds(200))
        // 120 ms: 2 periods of 60 ms and 12 of 10 ms for each client; 6 operations at 50/s for the three of them.
        for client in rig.work.clients {
            #expect(client.offeredOf == [0: 2, 1: 12, 2: 2])
            #expect(client.sent == 16)
            #expect(client.notSent == 0)
        }
        #expect(rig.shard.offered == 48)
        #expect(rig.shard.late == 0)
        // Starts of a stream are spread over its interval: 0, 20 and 40 ms; 0, 3 and 6 ms.
        #expect((0..<3).map { self.sent(rig, $0).first { $0[1] == 0 }?[0] } == [0, 20, 40])
        #expect((0..<3).map { self.sent(rig, $0).first { $0[1] == 1 }?[0] } == [0, 3, 6])
        #expect((0..<3).map { self.sent(rig, $0).first { $0[1] == 2 }?[0] } == [0, 20, 40])
    }

    @Test("what a blocked client owes leaves in the merged order, and a batch knows each operation")
    func blocked() {
        let rig = ShardRig(self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(15))]), window: 1_000)
        rig.begin()
        let start = rig.now
        rig.work.blocks(0)
        rig.advance(.milliseconds(40))
        #expect(rig.work.sent.count == 1)
        rig.work.unblocks(0)
        rig.advance(.zero)
        #expect(rig.work.sent.count == 2)
        guard let batch = rig.work.sent.last?.batch else { return }
        #expect(
            self.sent(rig).dropFirst(2) == [
                [10, 0, 1], [15, 1, 1], [20, 0, 2], [30, 0, 3], [30, 1, 2], [40, 0, 4],
            ]
        )
        let dues = [10, 15, 20, 30, 30, 40].map { start + .milliseconds($0) }
        var listed: [NIODeadline] = []
        batch.forEach { index, due in
            #expect(batch.due(index) == due)
            listed.append(due)
        }
        #expect(listed == dues)
        #expect(batch.firstDue == dues[0])
        #expect(!batch.isDueWhenAble)
        #expect(batch.ableSince == start + .milliseconds(40))
        // The client could not send any of them before.
        #expect(batch.count(ableBefore: start + .milliseconds(40)) == 0)
        #expect(batch.count(ableBefore: start + .milliseconds(41)) == 6)
    }

    @Test("how much of a batch its client could have sent before a time", arguments: [0, 1, 10, 11, 30, 31, 40, 99])
    func ableBefore(_ time: Int64) {
        let rig = ShardRig(self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(15))]), window: 1_000)
        rig.begin()
        let start = rig.now
        _ = rig.shard.pace(start + .milliseconds(40))
        rig.advance(.zero)
        let batch = rig.work.sent.last?.batch
        #expect(batch?.ableSince == start)
        let dues = [10, 15, 20, 30, 30, 40] as [Int64]
        #expect(batch?.count(ableBefore: start + .milliseconds(time)) == dues.count { $0 < time })
    }

    @Test("a full window divides the merged order, and what is left continues it")
    func fullWindow() {
        let rig = ShardRig(self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(15))]), window: 3)
        rig.begin()
        rig.advance(.milliseconds(40))
        #expect(self.sent(rig) == [[0, 0, 0], [0, 1, 0], [10, 0, 1]])
        rig.work.answers(0, 2, inTurn: true)
        #expect(self.sent(rig).suffix(2) == [[15, 1, 1], [20, 0, 2]])
        rig.work.answers(0, 3, inTurn: true)
        #expect(self.sent(rig).suffix(3) == [[30, 0, 3], [30, 1, 2], [40, 0, 4]])
    }

    @Test(
        "without streams all operations are of stream 0, and their numbers are their client's",
        arguments: [true, false]
    )
    func withoutStreams(_ isOpen: Bool) {
        let plan = LoadPlan(
            operators: 2,
            connect: .pending(9),
            pace: isOpen ? .open(.rate(perSecond: 1_000)) : .closed,
            measure: .seconds(1)
        )
        let rig = ShardRig(plan, window: 3)
        rig.begin()
        rig.advance(.milliseconds(20))
        rig.work.answers(1, 3)
        rig.advance(.zero)
        let operations = rig.work.sent.filter { $0.place == 1 }.flatMap(\.operations)
        #expect(operations.map(\.number) == [0, 1, 2, 3, 4, 5])
        #expect(operations.allSatisfy { $0.stream == 0 })
        #expect(operations.map(\.due) == rig.work.dues(of: 1))
        #expect(Set(rig.work.clients.flatMap(\.offeredOf.keys)) == [0])
    }

    @Test(
        "a client does the same at the same times, whatever the loops and segments",
        arguments: StreamScheduleTests.mixes.indices,
        [[1], [2], [3], [1, 1], [2, 2], [3, 1, 2]]
    )
    func divided(_ mix: Int, loops: [Int]) {
        for row in [nil, 4] as [Int?] {
            var plan = self.plan(StreamScheduleTests.mixes[mix], operators: 12)
            plan.row = row
            let list = StreamList(plan)
            let all = StreamRigs(plan, loops: loops, window: 1_000)
            for rig in all.rigs {
                rig.work.answersAtOnce = true
                rig.begin()
                rig.advance(.milliseconds(200))
            }
            #expect(all.sent == list.byClient)
            #expect(all.counts(\.offeredOf) == list.byClient.mapValues(\.byStream))
            #expect(all.counts(\.notSentOf).isEmpty)
        }
    }

    @Test("a loop that stood still catches up: every operation once, in its client's order", arguments: [1, 2, 3])
    func catchUp(_ loops: Int) {
        let plan = self.plan(
            [.rate(perSecond: 30_000), .rate(perSecond: 100_000), .interval(.milliseconds(50))],
            operators: 3,
            measure: .milliseconds(300)
        )
        let all = StreamRigs(plan, loops: [loops], window: 1_000_000)
        for rig in all.rigs {
            rig.begin()
            _ = rig.shard.pace(rig.now + .milliseconds(250))
            rig.advance(.zero)
            // The start, and one write for what came to be due since.
            #expect(rig.work.sent.count <= 2 * rig.work.clients.count)
        }
        for rig in all.rigs { _ = rig.shard.pace(rig.now + .milliseconds(300)) }
        for rig in all.rigs { rig.advance(.zero) }
        let list = StreamList(plan)
        #expect(list.operations.count == 9_000 + 30_000 + 3 * 6)
        #expect(all.sent == list.byClient)
        #expect(all.counts(\.offeredOf) == list.byClient.mapValues(\.byStream))
    }

    @Test("what is given up is counted by stream, and what could have been sent for over a second is late")
    func givenUp() {
        let rig = ShardRig(
            self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(30))], measure: .milliseconds(60)),
            window: 100
        )
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.milliseconds(70))
        // Writable again, but the shard has not been notified.
        rig.work.clients[0].isBlocked = false
        rig.advance(.milliseconds(960))
        rig.shard.endDrain()
        // Due 10, 20, 30, 40 and 50 ms after the start, and 30 ms after it; a second ago it was 30 ms after it.
        #expect(rig.work.clients[0].offeredOf == [0: 6, 1: 2])
        #expect(rig.work.clients[0].sent == 2)
        #expect(rig.work.clients[0].notSentOf == [0: 5, 1: 1])
        #expect(rig.work.late == 2)
        #expect(rig.shard.late == 2)
        #expect(rig.count(.finished(shard: 0)) == 1)
    }

    @Test("operations of absent clients are skipped and keep their numbers", arguments: [1, 2, 3])
    func absent(_ loops: Int) {
        var plan = self.plan(
            [.interval(.milliseconds(10)), .rate(perSecond: 500)],
            operators: 5,
            measure: .milliseconds(400)
        )
        let attendances = [(at: 0, present: 2), (at: 100, present: 5), (at: 200, present: 1), (at: 300, present: 4)]
        plan.departures = DeparturePlan(
            attendances: attendances.map { .init(at: .milliseconds(Int64($0.at)), present: $0.present) },
            seed: 7
        )
        let all = StreamRigs(plan, loops: [loops], window: 1_000)
        for rig in all.rigs {
            rig.work.answersAtOnce = true
            rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
            rig.begin()
            rig.advance(.milliseconds(500))
        }
        let offered = StreamList(plan).operations.filter { operation in
            let attendance = attendances.last { .milliseconds(Int64($0.at)) <= operation.due } ?? (0, 0)
            return plan.departures.present(attendance.present, operators: 5, listeners: 0).contains(operation.client)
        }
        #expect(all.sent == Dictionary(grouping: offered, by: \.client))
        // Each has 10 operations of each stream in 100 ms.
        #expect(offered.byStream == [0: 120, 1: 120])
        #expect(all.counts(\.notSentOf).isEmpty)
    }

    @Test("a limit counts over all streams, and is reported once it has become due")
    func limit() {
        let rig = ShardRig(
            self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(25))], limit: 6, measure: nil),
            window: 1_000
        )
        rig.begin()
        rig.advance(.milliseconds(29))
        #expect(rig.count(.spent(shard: 0)) == 0)
        rig.advance(.seconds(5))
        #expect(rig.count(.spent(shard: 0)) == 1)
        #expect(self.sent(rig) == [[0, 0, 0], [0, 1, 0], [10, 0, 1], [20, 0, 2], [25, 1, 1], [30, 0, 3]])
        #expect(rig.shard.offered == 6)
    }

    @Test("a stage begins with the operations of all streams counted that were due before it")
    func stages() {
        var plan = self.plan([.interval(.milliseconds(10)), .interval(.milliseconds(25))])
        plan.stages = [(0, 50), (50, 120)].map { .init(start: .milliseconds($0), end: .milliseconds($1)) }
        let rig = ShardRig(plan, window: 1_000)
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.milliseconds(60))
        rig.work.unblocks(0)
        rig.advance(.milliseconds(100))
        // In 50 ms: 5 and 2; in 120 ms: 12 and 5.
        #expect(rig.work.stages.map(\.stage) == [0, 1, nil])
        #expect(rig.work.stages.map(\.offered) == [0, 7, 17])
        let lanes = rig.work.sent.flatMap { sent in sent.operations.map { sent.batch.lane($0.due) } }
        #expect(lanes == Array(repeating: 2, count: 7) + Array(repeating: 3, count: 10))
    }
}
