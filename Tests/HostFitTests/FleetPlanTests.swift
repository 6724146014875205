import HostFit
import Testing

/// A server whose costs are known, as designed runs would see it.
private struct KnownServer {
    /// CPU-seconds, in the order of ``ServerItem``.
    let costs: [Double]
    var width = 1.0

    static let broker = KnownServer(costs: [
        120e-6, 0.4e-6, 15e-6, 18e-6, 9e-6, 14e-6, 22e-6, 11e-6, 7e-6, 12e-6, 20e-6, 0.4e-9, 0.002, 20e-6,
    ])

    /// The share of each loop that works and wakes: a fixed point.
    func share(_ demand: ServerDemand) -> Double {
        let single: [ServerItem] = [.ping, .iq, .in0, .in1, .out1]
        let events =
            3 * demand[.connect] + single.reduce(0) { $0 + demand[$1] } + 2 * (demand[.in2] + demand[.out2])
        var share = 0.5
        for _ in 0..<200 {
            let asleep = max(0, 1 - share) * max(0, 1 - share)
            let work = zip(ServerItem.allCases, self.costs).reduce(0) { sum, pair in
                switch pair.0 {
                case .wakeup: sum + events * asleep * pair.1
                case .passed: sum + demand[.passed] * asleep * pair.1
                default: sum + demand[pair.0] * pair.1
                }
            }
            share = (share + work / self.width) / 2
        }
        return share
    }

    func sample(_ rates: [ServerItem: Double], sessions: Double = 200) -> CostSample {
        var demand = ServerDemand()
        demand.sessions = sessions
        demand[.session] = sessions
        for (item, rate) in rates { demand[item] = rate * self.width }
        let cores = self.share(demand) * self.width
        // Seconds differ, and their mean is exact.
        return CostSample(demand, cores: [0.97, 1.03, 0.99, 1.01, 1].map { $0 * cores })
    }

    var samples: [CostSample] {
        var all = [
            CostSample(ServerDemand(), cores: [self.share(ServerDemand()) * self.width]),
            self.sample([.connect: 4_000, .session: 1_000], sessions: 2_000),
            self.sample([:], sessions: 2_000), self.sample([.ping: 1_000], sessions: 1_000),
            self.sample([.iq: 8_000]),
            self.sample([.in1: 2_000, .passed: 2_000, .out1: 2_000, .byte: 256_000]),
            self.sample([.in0: 1_000, .passed: 1_000, .out0: 1_000, .byte: 32_768_000]),
        ]
        let items: [(ServerItem, ServerItem)] = [(.in0, .out0), (.in1, .out1), (.in2, .out2)]
        for (incoming, outgoing) in items {
            all.append(self.sample([incoming: 8_000, .byte: 512_000]))
            all.append(self.sample([incoming: 8_000, .passed: 8_000, outgoing: 8_000, .byte: 1_024_000]))
            all.append(self.sample([incoming: 1_600, .passed: 1_600, outgoing: 16_000, .byte: 1_126_400]))
        }
        return all
    }

    /// Runs by so many turns, in each of which the server is dearer by a factor.
    func measured(cores: Double = 1, turns: [Double] = [1]) -> ServerCosts {
        ServerCosts(
            turns.flatMap { turn in self.samples.map { CostSample($0.demand, cores: $0.cores.map { $0 * turn }) } },
            isXMPP: false,
            hasTLS: false,
            measuredAt: "2026-01-01T00:00:00Z",
            width: self.width,
            cores: cores,
            baseBytes: 4e6,
            sessionBytes: Estimate(value: 4_000, low: 3_900, high: 4_100)
        )
    }
}

@Suite("The costs of a server, from runs of known work")
struct ServerCostsTests {
    private static let costs = KnownServer.broker.measured()

    @Test(
        "each cost is found within 3 %, and lies in its interval",
        arguments: zip(ServerItem.allCases, KnownServer.broker.costs)
    )
    func found(_ item: ServerItem, _ known: Double) {
        let estimate = Self.costs[item]
        #expect(abs(estimate.value - known) <= 0.03 * known, "\(estimate.value) for \(known)")
        #expect(estimate.low <= known && known <= estimate.high)
        #expect(Self.costs.isSound)
    }

    @Test("runs that differ from turn to turn make the intervals wider", arguments: [0.1, 0.2])
    func noise(_ part: Double) {
        #expect(Self.costs.noise == 0.05)
        let costs = KnownServer.broker.measured(turns: [1 - part, 1 + part])
        #expect((part...1.6 * part).contains(costs.noise), "\(costs.noise)")
        let estimate = costs[.in1]
        #expect(estimate.low < estimate.value * (1 - 1.5 * part) && estimate.high > estimate.value * (1 + 1.5 * part))
    }

    @Test("a mixture that was not measured is predicted within 2 %", arguments: [0.2, 0.5, 0.9])
    func predicts(_ part: Double) throws {
        var demand = ServerDemand()
        demand.sessions = 1_500
        demand[.session] = 1_500
        demand[.ping] = 50
        (demand[.in0], demand[.in1], demand[.out1], demand[.byte]) = (9_000, 6_000, 12_000, 10e6)
        for item in [ServerItem.in0, .in1, .out1, .byte] { demand[item] *= part }
        let node = FleetPlan.Node(cores: 1, memoryBytes: 8e9)
        let plan = try FleetPlan(demand, Self.costs, on: node, headroom: 0, losses: 0)
        let known = KnownServer.broker.share(demand)
        #expect(abs(plan.share.value - known) < 0.02 * known)
    }

    @Test("a file with figures that no measurement has is not sound")
    func sound() {
        var costs = Self.costs
        costs.width = 0
        #expect(!costs.isSound)
        costs = Self.costs
        costs.schema = "other"
        #expect(!costs.isSound)
        costs = Self.costs
        costs.baseBytes = .nan
        #expect(!costs.isSound)
    }
}

@Suite("The nodes of a fleet")
struct FleetPlanTests {
    private static let costs = KnownServer.broker.measured(cores: 2)

    private static func fleet(sessions: Double = 4_000, rate: Double = 8_000) -> ServerDemand {
        var fleet = ServerDemand()
        fleet.sessions = sessions
        fleet[.session] = sessions
        (fleet[.in1], fleet[.out1], fleet[.byte]) = (rate, rate, 2 * rate * 64)
        return fleet
    }

    private static func plan(
        _ fleet: ServerDemand = Self.fleet(),
        _ costs: ServerCosts = Self.costs,
        cores: Double = 4,
        memory: Double = 8e9,
        headroom: Double = 0.3,
        losses: Int = 0
    ) throws -> FleetPlan {
        let node = FleetPlan.Node(cores: cores, memoryBytes: memory)
        return try FleetPlan(fleet, costs, on: node, headroom: headroom, losses: losses)
    }

    @Test("a server of one thread needs as many nodes whatever their cores, and that thread is the limit")
    func thread() throws {
        let plan = try Self.plan(Self.fleet(rate: 40_000))
        // 40,000 × 26 µs of work is 1.04 cores.
        #expect(plan.nodes.value == 2)
        #expect(plan.bound == .thread)
        #expect(try Self.plan(Self.fleet(rate: 40_000), cores: 64).nodes.value == 2)
    }

    @Test("a server that used all cores uses those of the node")
    func cores() throws {
        let costs = KnownServer(costs: KnownServer.broker.costs, width: 2).measured(cores: 2)
        let plan = try Self.plan(Self.fleet(rate: 40_000), costs)
        #expect(plan.nodes.value == 1)
        #expect(try Self.plan(Self.fleet(rate: 40_000), costs, cores: 1).bound == .cpu)
        #expect(try Self.plan(Self.fleet(rate: 60_000), costs, cores: 2).bound == .cpu)
    }

    @Test("memory is a limit, and the sockets in the kernel count")
    func memory() throws {
        // 4,000 sessions of 4,000 and 4,096 bytes, and 4 MB of a process: 36.4 MB.
        #expect(try Self.plan(Self.fleet(rate: 100), memory: 53e6).nodes.value == 1)
        let plan = try Self.plan(Self.fleet(rate: 100), memory: 51e6)
        #expect(plan.nodes.value == 2 && plan.bound == .memory)
        #expect(plan.memoryBytes.value == 4e6 + 2_000 * 4_000)
    }

    @Test("nodes that may be away are added, and the others carry the fleet")
    func losses() throws {
        let plan = try Self.plan(Self.fleet(rate: 40_000), losses: 2)
        #expect(plan.nodes.value == 4)
        #expect(plan.share.value == (try Self.plan(Self.fleet(rate: 40_000)).share.value))
    }

    @Test("all clients are back after the connects of a node's share at full speed")
    func recovery() throws {
        let plan = try Self.plan()
        // 4,000 connects of 120 µs.
        #expect(abs(plan.recoverySeconds.value - 0.48) < 0.02)
        #expect(plan.recoverySeconds.low < plan.recoverySeconds.value)
        #expect(plan.recoverySeconds.high > plan.recoverySeconds.value)
    }

    @Test("the highest rate of a node uses all of its loop")
    func top() throws {
        let top = try #require(try Self.plan().topRate)
        // 26 µs of a pair, and 64 bytes twice.
        #expect(abs(top.value - (1 - 0.002 - 4_000 * 0.4e-6) / 26.05e-6) < 0.02 * top.value)
    }

    @Test("beyond three times what was measured nothing is planned")
    func refused() throws {
        #expect(throws: Never.self) { try Self.plan(Self.fleet(sessions: 6_000)) }
        let refusal = #expect(throws: FleetPlan.Refusal.self) { try Self.plan(Self.fleet(sessions: 6_100)) }
        #expect(refusal?.words.contains("sessions, more than three times the") == true)
        #expect(throws: FleetPlan.Refusal.self) { try Self.plan(Self.fleet(), memory: 1e6) }
    }
}
