import HostFit
import Testing

@Suite("How many hosts a plan needs")
struct HostShareTests {
    typealias Flow = GroupWork.Flow

    /// One of `hosts` equal hosts with 20,000 descriptors a process, 28,232 ports, 4 cores and 8 GiB.
    static func share(
        _ hosts: Int,
        clients: Int,
        processes: Int = 1,
        sources: Int = 1,
        _ change: (inout HostShare, inout GroupWork) -> Void = { _, _ in }
    ) -> HostShare {
        var limits = HostLimits()
        limits.descriptorsSoft = 20_000
        limits.ports = PortSpace(range: 32_768...60_999)
        limits.memoryAvailable = 8 << 30
        limits.cores = 4
        let own = (clients + hosts - 1) / hosts
        let routes = (1...sources).map {
            Route(source: IPAddress("10.0.0.\($0)"), name: "10.0.1.1", port: 1883)
        }
        let fit = LoadFit(clients: own, limits: limits) { _ in RouteCycle(routes) }
        var group = GroupWork(clients: own)
        var share = HostShare(
            hosts: hosts,
            processes: processes,
            loops: max(1, 4 / processes),
            clientsOfProcess: (own + processes - 1) / processes,
            groups: [],
            fits: [fit]
        )
        change(&share, &group)
        share.groups = [group]
        return share
    }

    // MARK: - Memory

    @Test("each process and each client has its bytes, and the kernel has a socket of each")
    func memory() {
        let plain = Self.share(1, clients: 10_000, processes: 2)
        #expect(plain.processBytes == 2 * 51 << 20 + 10_000 * 3_072)
        #expect(plain.kernelBytes == 10_000 * 4_096)
        let encrypted = Self.share(1, clients: 10_000) { $1.hasTLS = true }
        #expect(encrypted.processBytes == 51 << 20 + 10_000 * (3_072 + 24_576))
        let sessions = Self.share(1, clients: 100) {
            $1.speech = .xmpp
            $1.ownBytes = 500
            $1.flows = [Flow(peak: 1)]
        }
        #expect(sessions.processBytes == 60 << 20 + 100 * (3_072 + 768 + 500))
        let here = Self.share(1, clients: 10) { share, _ in share.fits[0].server = .onLoopback }
        #expect(here.kernelBytes == 10 * 2 * 4_096)
    }

    // MARK: - CPU

    @Test("connects cost what their protocol and their layers do")
    func connects() {
        #expect(Self.share(1, clients: 1_000).connectSeconds == 0.15)
        #expect(Self.share(1, clients: 1_000) { $1.hasTLS = true }.connectSeconds == 0.765)
        #expect(Self.share(1, clients: 1_000) { $1.speech = .xmpp }.connectSeconds == 0.39)
        #expect(Self.share(1, clients: 1_000).connectCores == nil)
    }

    @Test("slow connects wake a loop that sleeps", arguments: [100.0, 1_000, 5_000, 20_000])
    func slowConnects(_ rate: Double) throws {
        let share = Self.share(1, clients: 1_000) { share, group in
            share.loops = 1
            group.connectRate = rate
        }
        // 150 µs, and 4 wake-ups of 50 µs for each event that finds the loop asleep.
        let cores = try #require(share.connectCores)
        #expect(abs(cores - (rate * 150e-6 + rate * 200e-6) / (1 + rate * 200e-6)) < 1e-9)
        #expect(abs(share.connectSeconds - cores / rate * 1_000) < 1e-9)
    }

    /// Cores of one loop under `flow`, without any client.
    private static func cores(_ flow: Flow, tls: Bool = false) -> Double {
        self.share(1, clients: 0) { share, group in
            share.loops = 1
            group.flows = [flow]
            group.hasTLS = tls
        }.loadCores
    }

    @Test(
        "a message costs its write and the wake-up for it, an acknowledgement and a delivery theirs",
        arguments: [
            // Busy µs and wake-ups a message.
            (Flow(peak: 1_000), 10, 1), (Flow(peak: 1_000, qos: 1), 15, 2), (Flow(peak: 1_000, qos: 2), 30, 2),
            (Flow(peak: 1_000, deliveries: 1), 20, 2), (Flow(peak: 1_000, qos: 1, deliveries: 1), 33, 3),
            (Flow(peak: 100, deliveries: 500), 5_010, 2),
        ] as [(Flow, Double, Double)]
    )
    func messages(_ flow: Flow, _ micros: Double, _ wakes: Double) {
        let (busy, woken) = (flow.peak * micros / 1e6, flow.peak * wakes * 50 / 1e6)
        #expect(abs(Self.cores(flow) - (busy + woken) / (1 + woken)) < 1e-9)
        #expect(Self.cores(flow, tls: true) > Self.cores(flow))
    }

    @Test("the busier a loop, the fewer wake-ups: at most, messages cost what their writes do")
    func batches() {
        func each(_ rate: Double) -> Double { Self.cores(Flow(peak: rate)) / rate * 1e6 }
        #expect(abs(each(1) - 60) < 0.1)
        #expect(each(10_000) < 45)
        // 1.0 exactly, where nothing is left to sleep.
        #expect(abs(Self.cores(Flow(peak: 100_000)) - 1) < 1e-9)
        #expect(Self.cores(Flow(peak: 200_000)) > 1)
    }

    @Test("silent clients ping, and those that publish more often do not")
    func pings() {
        func cores(_ rate: Double?, _ keepAlive: Double?) -> Double {
            Self.share(1, clients: 3_000) { _, group in
                group.keepAlive = keepAlive
                group.flows = rate.map { [Flow(peak: $0)] } ?? []
            }.loadCores
        }
        // 2 µs a client and second, and 14 for each of 10 pings.
        #expect(abs(cores(nil, nil) - 0.006) < 1e-9)
        #expect(abs(cores(nil, 300) - 0.00614) < 1e-9)
        #expect(cores(11, 300) == cores(11, nil))
    }

    @Test("a run costs its processes, its connects and the mean of its load; what is not known is absent")
    func wholeRun() throws {
        let run = Self.share(1, clients: 1_000, processes: 2) { share, group in
            share.seconds = 100
            group.flows = [Flow(peak: 1_000, mean: 0)]
        }
        #expect(abs(try #require(run.cpuSeconds) - (0.17 + 0.15 + 0.2)) < 1e-9)
        let two = Self.share(2, clients: 2) { share, _ in share.seconds = 0 }
        #expect(abs(try #require(two.cpuSeconds) - (0.085 + 0.2 + 0.00015)) < 1e-9)
        #expect(Self.share(1, clients: 1).cpuSeconds == nil)
        let closed = Self.share(1, clients: 1) { share, group in
            share.seconds = 1
            group.isClosedLoop = true
        }
        #expect(closed.cpuSeconds == nil)
        #expect(closed.hasClosedLoop)
        #expect(closed.checks.first { $0.name == "cores" }?.needs == nil)
    }

    // MARK: - Ports

    @Test("of several groups only the fits of targets have ports, and the whole host has none")
    func targets() {
        let share = Self.share(1, clients: 30_000, processes: 2) { share, _ in
            let whole = share.fits[0]
            share.fits[0].limits.ports = nil
            share.fits += [20_000, 10_000].map { clients in
                var fit = whole
                fit.clients = clients
                return fit
            }
        }
        #expect(share.ports == 20_000)
        #expect(share.sourcesNeeded == 1)
    }

    @Test("ports of each source and target, and the source addresses that they make necessary")
    func ports() {
        let one = Self.share(1, clients: 60_000)
        #expect(one.ports == 60_000)
        #expect(one.sources == 1)
        #expect(one.sourcesNeeded == 3)
        #expect(one.problems.map(\.name) == ["descriptors", "ports"])
        let three = Self.share(1, clients: 60_000, processes: 4, sources: 3)
        #expect(three.ports == 20_000)
        #expect(three.problems.isEmpty)
        #expect(three.descriptorsOfProcess == 15_000)
    }

    // MARK: - How many

    @Test("the smallest number is found, and the check that rules out one host fewer")
    func smallest() throws {
        let ports = try #require(HostShare.smallest { Self.share($0, clients: 1_000_000, processes: 4) })
        // 28,232 ports each.
        #expect(ports.share.hosts == 36)
        #expect(ports.limit?.name == "ports")
        let memory = try #require(
            HostShare.smallest { hosts in
                Self.share(hosts, clients: 1_000_000, processes: 64, sources: 100) { $1.hasTLS = true }
            }
        )
        // 31,744 bytes each, and 64 processes of 51 MiB on every host.
        #expect(memory.share.hosts == 7)
        #expect(memory.limit?.name == "memory")
        let alone = try #require(HostShare.smallest { Self.share($0, clients: 10) })
        #expect(alone.share.hosts == 1)
        #expect(alone.limit == nil)
    }

    @Test("70 % of the cores may be busy, under load and while clients connect")
    func busiest() throws {
        func hosts(_ change: @escaping (Int, inout GroupWork) -> Void) throws -> HostShare {
            try #require(
                HostShare.smallest { hosts in Self.share(hosts, clients: 64) { change(hosts, &$1) } }
            ).share
        }
        // At 0.7 a loop has 28,000 messages/s: 0.28 for the writes, and 1.4 × 0.3 for wake-ups.
        let loads = try hosts { $1.flows = [Flow(peak: 1_000_000 / Double($0))] }
        #expect(loads.hosts == 9)
        #expect(loads.loadCores < 2.8)
        let connects = try hosts { $1.connectRate = 40_000 / Double($0) }
        // And 3,333 connects/s: 0.5 for the sockets, and 0.67 × 0.3 for wake-ups.
        #expect(connects.hosts == 4)
        #expect(Self.share(3, clients: 64) { $1.connectRate = 40_000 / 3 + 1 }.problems.map(\.name) == ["connects"])
    }

    @Test("what no number of hosts carries is said after the last, and what cannot be divided at once")
    func none() {
        let found = HostShare.smallest(upTo: 8) { hosts in
            Self.share(hosts, clients: 64) { share, _ in share.fits[0].descriptorsBeside = 20_000 }
        }
        #expect(found == nil)
        let whole = Self.share(4, clients: 64, processes: 2) { share, _ in share.isDivisible = false }
        #expect(whole.problems.map(\.found) == ["the groups cannot be divided into 8 parts"])
    }
}
