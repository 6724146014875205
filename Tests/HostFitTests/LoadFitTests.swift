import HostFit
import Testing

@Suite("Whether a load fits this host")
struct LoadFitTests {
    /// From the kernel's choice of addresses to one server.
    static func fit(_ clients: Int?, _ limits: HostLimits) -> LoadFit {
        LoadFit(clients: clients, limits: limits) { _ in
            RouteCycle([Route(source: nil, name: "broker.example", port: 1883)])
        }
    }

    static func limits(_ change: (inout HostLimits) -> Void) -> HostLimits {
        var limits = HostLimits()
        change(&limits)
        return limits
    }

    static func check(_ fit: LoadFit, _ name: String) -> HostCheck? { fit.checks.first { $0.name == name } }

    @Test("of what nothing is known there is no check, and no problem")
    func unknown() {
        let fit = Self.fit(10_000_000, HostLimits())
        #expect(fit.checks.isEmpty)
        #expect(fit.problems.isEmpty)
        #expect(fit.largest == nil)
    }

    @Test("descriptors: one per client and those beside", arguments: [(19_986, true), (19_987, false)])
    func descriptors(_ clients: Int, _ fits: Bool) {
        var fit = Self.fit(clients, Self.limits { $0.descriptorsSoft = 20_000 })
        fit.descriptorsBeside = 14
        #expect(fit.problems.isEmpty == fits)
        #expect(fit.largest?.clients == 19_986)
        #expect(fit.largest?.check == "descriptors")
    }

    @Test("ports: the range, times source addresses, times targets")
    func ports() {
        let limits = Self.limits { $0.ports = PortSpace(range: 32_768...60_999) }
        func largest(_ sources: Int, _ targets: Int) -> Int? {
            let routes = (0..<sources).flatMap { source in
                (0..<targets).map {
                    Route(source: IPAddress("10.0.0.\(source + 1)"), name: "10.0.1.\($0 + 1)", port: 1883)
                }
            }
            return LoadFit(clients: 1, limits: limits) { _ in RouteCycle(routes) }.largest?.clients
        }
        // 60,999 − 32,768 + 1 = 28,232.
        #expect(largest(1, 1) == 28_232)
        #expect(largest(2, 1) == 56_464)
        #expect(largest(1, 3) == 84_696)
        #expect(largest(2, 3) == 169_392)
    }

    /// 127.0.0.1 and more, 400 clients each, three at most.
    static func spread(_ clients: Int, _ ports: PortSpace) -> LoadFit {
        let limits = Self.limits { $0.ports = ports }
        var fit = LoadFit(clients: clients, limits: limits) { clients in
            let sources = min(3, (clients + 399) / 400)
            return RouteCycle(
                (1...sources).map { Route(source: IPAddress("127.0.0.\($0)"), name: "127.0.0.1", port: 1883) }
            )
        }
        fit.clientsPerSource = 400
        fit.server = .onLoopback
        return fit
    }

    @Test("beside spread addresses a target has a source of its own, and the search ends all the same")
    func spreadBesideAnother() {
        let limits = Self.limits { $0.ports = PortSpace(range: 20_000...20_999) }
        var fit = LoadFit(clients: 2, limits: limits) { clients in
            let sources = min(3, (clients + 799) / 800)
            return RouteCycle(
                (1...sources).flatMap { source in
                    [
                        Route(source: IPAddress("127.0.0.\(source)"), name: "127.0.0.1", port: 1883),
                        Route(source: IPAddress("::1"), name: "::1", port: 1883),
                    ]
                }
            )
        }
        fit.clientsPerSource = 800
        fit.server = .onLoopback
        // Every second client goes to ::1, whose 1,000 ports the last of these has.
        #expect(fit.largest?.clients == 2_001)
    }

    @Test("on loopback more clients use more addresses, and the largest number that fits is found")
    func spread() {
        #expect(Self.spread(1, PortSpace(range: 20_000...20_999)).largest?.clients == 3_000)
        #expect(Self.spread(3_000, PortSpace(range: 20_000...20_999)).problems.isEmpty)
        #expect(Self.spread(3_001, PortSpace(range: 20_000...20_999)).problems.count == 1)
        // Too few ports for what each address is to carry: two addresses have 600, and are taken from 401 clients on.
        #expect(Self.spread(600, PortSpace(range: 20_000...20_299)).problems.isEmpty)
        #expect(Self.spread(601, PortSpace(range: 20_000...20_299)).problems.count == 1)
        #expect(Self.spread(900, PortSpace(range: 20_000...20_299)).problems.isEmpty)
        #expect(Self.spread(301, PortSpace(range: 20_000...20_299)).problems.count == 1)
        #expect(Self.spread(1, PortSpace(range: 20_000...20_299)).largest?.clients == 900)
        // Three are taken from 801 on, and have 300.
        #expect(Self.spread(1, PortSpace(range: 20_000...20_099)).largest?.clients == 100)
    }

    @Test("the limit is the least of all, and of ports and another the one that is less")
    func least() {
        var fit = Self.fit(
            nil,
            Self.limits {
                $0.descriptorsSoft = 20_000
                $0.ports = PortSpace(range: 20_000...20_999)
                $0.memoryAvailable = 1 << 30
            }
        )
        #expect(fit.largest?.clients == 1_000)
        #expect(fit.largest?.check == "ports")
        fit.limits.descriptorsSoft = 500
        #expect(fit.largest?.clients == 500)
        #expect(fit.largest?.check == "descriptors")
        fit.limits.memoryAvailable = 7_168 * 7
        #expect(fit.largest?.clients == 7)
        #expect(fit.largest?.check == "memory")
        fit.descriptorsBeside = 501
        #expect(fit.largest?.clients == 0)
    }

    @Test("each problem has its numbers and its remedies")
    func problems() {
        var fit = LoadFit(
            clients: 60_000,
            limits: Self.limits {
                $0.descriptorsSoft = 20_000
                $0.descriptorsHard = 20_000
                $0.descriptorsMost = 60_063
                $0.filesLeft = 50_000
                $0.ports = PortSpace(range: 32_768...60_999)
                $0.trackedMost = 262_144
                $0.trackedConnections = 250_000
                $0.memoryAvailable = 256 << 20
            }
        ) { _ in
            RouteCycle(
                ["10.0.0.1", "10.0.0.2"].map { Route(source: IPAddress($0), name: "broker.example", port: 1883) }
            )
        }
        fit.descriptorsBeside = 64
        let problems = fit.problems
        #expect(
            problems.map { "needs \($0.needs ?? ""), \($0.found)" } == [
                "needs 60,064 descriptors, this process may have 20,000 (hard limit 20,000, fs.nr_open 60,063, "
                    + "64 are used for other things)",
                "needs 60,064 open files, the host has 50,000 left (fs.file-max)",
                "needs 60,000 local ports, 2 source addresses to 1 target have 56,464 "
                    + "(net.ipv4.ip_local_port_range 32768-60999)",
                "needs 60,000 followed connections, the packet filter can follow 12,144 more "
                    + "(net.netfilter.nf_conntrack_max 262,144, 250,000 followed)",
                "needs about 410.2 MiB of memory (3,072 bytes a client, 4,096 of the kernel's), 256 MiB are free",
            ]
        )
        #expect(
            problems.map(\.remedies) == [
                [.fewerClients, .raiseDescriptors(to: 60_064, most: true), .split(.processes(4))],
                [.fewerClients, .raiseOpenFiles],
                [.fewerClients, .moreSourceAddresses, .widenPortRange],
                [.fewerClients, .raiseTracking(to: 310_000)],
                [.fewerClients, .severalMachines],
            ]
        )
    }

    @Test("what cannot be divided is not told to be")
    func undivided() {
        var fit = Self.fit(100, Self.limits { $0.descriptorsSoft = 64 })
        fit.descriptorsBeside = 14
        let raise = HostRemedy.raiseDescriptors(to: 114, most: false)
        #expect(fit.problems.map(\.remedies) == [[.fewerClients, raise, .split(.processes(2))]])
        fit.split = { $0 == 50 ? .segments(3) : nil }
        #expect(fit.problems.map(\.remedies) == [[.fewerClients, raise, .split(.segments(3))]])
        fit.descriptorsBeside = 15
        #expect(fit.problems.map(\.remedies) == [[.fewerClients, .raiseDescriptors(to: 115, most: false)]])
    }

    @Test("on loopback no source addresses are suggested")
    func loopback() {
        let problems = Self.spread(10, PortSpace(range: 1_000...1_001)).problems
        #expect(
            problems.map(\.found) == [
                "1 source address to 1 target has 2 "
                    + "(net.ipv4.ip_local_port_range 1000-1001, 127.0.0.1, 127.0.0.2 and so on as they are needed)"
            ]
        )
        #expect(problems.map(\.remedies) == [[.fewerClients, .widenPortRange]])
    }

    @Test(
        "TIME_WAIT is counted, and how long to wait is said",
        arguments: [
            (2, "127.0.0.1", .waitForTimeWait(seconds: 1, reuse: nil)),
            (1, "10.0.0.1", .waitForTimeWait(seconds: 1, reuse: nil)),
            (2, "10.0.0.1", .waitForTimeWait(seconds: 60, reuse: 1)),
            (0, "127.0.0.1", .waitForTimeWait(seconds: 60, reuse: 1)),
        ] as [(Int, String, HostRemedy)]
    )
    func timeWait(_ reuse: Int, _ host: String, _ remedy: HostRemedy) throws {
        var ports = PortSpace(range: 20_000...20_009)
        ports.timeWait.reuse = reuse
        let address = try #require(IPAddress(host))
        ports.table.sockets = (0..<4).map {
            SocketTable.Socket(
                local: address,
                localPort: 20_000 + $0,
                remote: address,
                remotePort: 1883,
                timeWaitAge: 500
            )
        }
        var fit = LoadFit(clients: 7, limits: Self.limits { $0.ports = ports }) { _ in
            RouteCycle([Route(source: address, name: host, port: 1883)])
        }
        fit.server = address.isLoopback ? .onLoopback : .elsewhere
        let problems = fit.problems
        #expect(
            problems.map(\.found) == [
                "1 source address to 1 target has 6 (net.ipv4.ip_local_port_range 20000-20009, 4 in TIME_WAIT)"
            ]
        )
        #expect(problems.map(\.remedies) == [[.fewerClients, .moreSourceAddresses, remedy, .widenPortRange]])
    }

    @Test("a server on this host takes open files and the kernel's memory too, our broker its own")
    func server() {
        let limits = Self.limits {
            $0.filesLeft = 100_000
            $0.memoryAvailable = 14_336 * 1_000
        }
        var fit = Self.fit(nil, limits)
        #expect(fit.checks.map(\.largestClients) == [100_000, 2_000])
        fit.server = .onLoopback
        #expect(fit.checks.map(\.largestClients) == [50_000, 1_272])
        fit.server = .embedded
        #expect(fit.checks.map(\.largestClients) == [50_000, 1_000])
    }

    @Test("the control group's memory counts where less of it is left than of the host's")
    func memoryGroup() {
        var limits = Self.limits { $0.memoryAvailable = 64 << 20 }
        limits.group.memoryLimit = 32 << 20
        limits.group.memoryLeft = 8 << 20
        let problems = Self.fit(2_000, limits).problems
        #expect(problems.map(\.found) == ["8 MiB are left of the control group's 32 MiB (memory.max)"])
        #expect(problems.map(\.remedies) == [[.fewerClients, .severalMachines]])
        limits.group.memoryLeft = 65 << 20
        #expect(Self.fit(2_000, limits).problems.isEmpty)
        #expect(Self.check(Self.fit(nil, limits), "memory")?.largestClients == 9_362)
    }

    @Test("what may slow a load down is a warning, and no problem")
    func warnings() {
        var limits = Self.limits {
            $0.acceptBacklog = 32
            $0.synBacklog = 2_048
            $0.trackedMost = 100
            $0.trackedConnections = 0
            $0.bufferPages = 50
            $0.bufferPressure = 1_000
            $0.bufferMost = 2_000
            $0.cores = 2
            $0.clockSource = "hpet"
            $0.stealShare = 0.032
            $0.swapTotal = 1 << 30
            $0.swapUsed = 1 << 20
        }
        limits.group.cores = 0.5
        var fit = Self.fit(600, limits)
        fit.server = .onLoopback
        fit.rate = 100_000
        #expect(fit.problems.isEmpty)
        #expect(
            fit.checks.map { "\($0.name) \($0.state.rawValue): \($0.found)/\($0.needs ?? "")" } == [
                "backlog warn: a listener of this host lets 32 connects wait (net.core.somaxconn), 2,048 half-open "
                    + "(net.ipv4.tcp_max_syn_backlog)/64 at once for each target, without a connect rate",
                "conntrack warn: the packet filter can follow 100 more (net.netfilter.nf_conntrack_max 100, 0 followed)"
                    + "/600 followed connections",
                "TCP buffers warn: 950 pages are left before the kernel saves (net.ipv4.tcp_mem 1,000 and 2,000 pages)"
                    + "/1,200 with a page each at once",
                "cores warn: 1 event loop on 2 cores, of which cpu.max gives 0.5/1 for 100,000 messages/s at "
                    + "10 CPU-µs a message",
                "clock warn: the clock source is hpet, so that each look at the clock is a system call/",
                "steal warn: the hypervisor took 3.2 % of the CPU just now/",
                "swap warn: 1 MiB of 1 GiB are in use/",
            ]
        )
        #expect(
            fit.checks.map(\.remedies) == [
                [.raiseBacklog, .slowerConnects],
                [.fewerClients, .raiseTracking(to: 600)],
                [.raiseBuffers(low: 1_200, pressure: 1_250, most: 2_500)],
                [.lowerRate, .severalMachines],
                [.fastClock], [.quieterHost], [.noSwap],
            ]
        )
    }

    @Test("without a load each check says what there is")
    func unasked() {
        let limits = Self.limits {
            $0.descriptorsSoft = 20_000
            $0.filesLeft = 1_000
            $0.ports = PortSpace(range: 20_000...20_999)
            $0.trackedMost = 100
            $0.trackedConnections = 1
            $0.memoryAvailable = 1 << 30
            $0.bufferPages = 50
            $0.bufferPressure = 1_000
            $0.bufferMost = 2_000
            $0.cores = 2
            $0.clockSource = "tsc"
            $0.swapTotal = 0
            $0.swapUsed = 0
        }
        let fit = Self.fit(nil, limits)
        #expect(fit.checks.allSatisfy { $0.state == .ok && $0.needs == nil && $0.remedies.isEmpty })
        #expect(fit.checks.map(\.largestClients) == [20_000, 1_000, 1_000, 99, 149_796, nil, nil, nil, nil])
        #expect(fit.largest?.check == "conntrack")
        #expect(
            fit.checks.map(\.found).suffix(4) == [
                "950 pages are left before the kernel saves (net.ipv4.tcp_mem 1,000 and 2,000 pages)",
                "1 event loop on 2 cores, about 100,000 messages/s at 10 CPU-µs a message",
                "the clock source is tsc",
                "there is none",
            ]
        )
    }
}
