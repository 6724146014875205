import Foundation
import HostFit
import LoadEngine
import Report
import RunControl
import Scenario
import TestSupport
import Testing
import Transport
import clamor

@Suite("How many machines a scenario needs")
struct MachinesTests {
    // MARK: - From the scenario

    private static func work(_ groups: String, _ hosts: Int = 1, top: String = "duration: 10s") throws -> [GroupWork] {
        let file = try ScenarioFile("target: mqtt://broker.example\n\(top)\ngroups:\n\(groups)")
        return try file.scenario().work(of: PlanSegment(index: 0, of: hosts))
    }

    @Test("a host has every n-th client, and that share of the rates")
    func shares() throws {
        let group = """
              a: { clients: 1000, connect: { rate: 300/s, keep_alive: 1m }, publish: { qos: [0, 1], rate: 600/s } }
              b: { clients: 7 }
            """
        let work = try Self.work(group, 3)
        #expect(work.map(\.clients) == [334, 3])
        #expect(work.map(\.connectRate) == [100, nil])
        #expect(work[0].keepAlive == 60)
        #expect(work[0].flows == [0, 1].map { GroupWork.Flow(peak: 100, qos: $0, size: 256) })
        #expect(work[1].flows.isEmpty)
    }

    @Test("the peak and the mean of a rate follow its shape and the stages")
    func shapes() throws {
        let ramp = try Self.work("  a: { clients: 4, publish: { rate: { from: 100/s, to: 400/s } } }")
        #expect(ramp[0].flows == [GroupWork.Flow(peak: 400, mean: 250, size: 256)])
        let stages = try Self.work(
            "  a: { clients: 4, publish: { rate: 100/s } }",
            top: "stages: [{ name: one, for: 3s }, { name: two, for: 1s, load: 200% }]"
        )
        #expect(stages[0].flows == [GroupWork.Flow(peak: 200, mean: 125, size: 256)])
        #expect(try Self.work("  a: { clients: 4, publish: { qos: 1 } }")[0].isClosedLoop)
    }

    @Test(
        "deliveries are those of a topology, and of the filters of other groups",
        arguments: [
            ("{ clients: 4, subscribers: 6, topology: fan-in, publish: { rate: 9/s } }", 6),
            ("{ clients: 4, subscribers: 4, publish: { rate: 9/s } }", 1),
            ("{ clients: 4, publish: { topic: 'x/%i', rate: 9/s } }", 0),
            ("{ clients: 4, publish: { topic: 'fleet/%i', rate: 9/s } }", 50),
            ("{ clients: 4, publish: { topic: 'own/%i', rate: 9/s } }", 1),
            ("{ clients: 4, publish: { topic: 'shared/%i', rate: 9/s } }", 1),
        ]
    )
    func deliveries(_ group: String, _ deliveries: Double) throws {
        let others = """
              all: { clients: 50, subscribe: [{ filter: 'fleet/#' }] }
              own: { clients: 4, subscribe: [{ filter: 'own/%i' }] }
              shared: { clients: 5, subscribe: [{ filter: '$share/g/shared/#' }] }
            """
        #expect(try Self.work("  a: \(group)\n\(others)")[0].flows.map(\.deliveries) == [deliveries])
    }

    @Test("XMPP sessions, with TLS as they ask for it")
    func xmpp() throws {
        let work = try Self.work(
            """
              a: { target: 'xmpp://127.0.0.1', jid: 'u%i@localhost', password: p, clients: 8, message: { rate: 4/s } }
              b: { target: 'xmpp://127.0.0.1', jid: 'v%i@localhost', password: p, clients: 8, tls: 'off' }
            """
        )
        #expect(work.map(\.speech) == [.xmpp, .xmpp])
        #expect(work.map(\.hasTLS) == [true, false])
        #expect(work[0].flows == [GroupWork.Flow(peak: 4, deliveries: 1, size: 256)])
    }

    // MARK: - The answer

    private static let file = """
        name: fleet
        target: mqtt://broker.example
        duration: 1m
        groups:
          devices: { clients: 60000, connect: { rate: 1000/s }, publish: { qos: 1, rate: 3000/s } }
        """

    private static func share(_ hosts: Int) -> HostShare {
        var limits = HostLimits()
        limits.descriptorsSoft = 20_000
        limits.ports = PortSpace(range: 32_768...60_999)
        limits.memoryAvailable = 4 << 30
        limits.cores = 2
        let own = 60_000 / hosts
        let processes = (own + 19_999) / 20_000
        let fit = LoadFit(clients: own, limits: limits) { _ in
            RouteCycle([Route(source: nil, name: "broker.example", port: 1883)])
        }
        var group = GroupWork(clients: own)
        group.connectRate = 1_000 / Double(hosts)
        group.flows = [GroupWork.Flow(peak: 3_000 / Double(hosts), qos: 1)]
        var share = HostShare(
            hosts: hosts,
            processes: processes,
            loops: 2 / processes,
            clientsOfProcess: own / processes,
            groups: [group],
            fits: [fit]
        )
        share.seconds = 60
        return share
    }

    private static func record(_ hosts: Int, smallest: Int? = 3) throws -> DoctorRecord {
        let file = try ScenarioFile(Self.file)
        return DoctorRecord(Self.share(hosts), of: try file.scenario(), smallest: smallest, limit: "ports")
    }

    @Test("a line per check of a host, its costs, and the smallest number")
    func text() throws {
        #expect(
            try Self.record(3).text(TerminalStyle()) == """
                3 hosts like this one · fleet of 60,000 clients, 3,000/s to broker.example:1883

                The largest share of a host:
                  ok    processes    1 with up to 20,000 clients each, of 20,000 clients
                  ok    descriptors  a process may have 20,000; needs 20,000 in each
                  ok    ports        1 source address to 1 target has 28,232 (net.ipv4.ip_local_port_range 32768-60999); \
                needs 20,000 local ports
                  ok    memory       4 GiB are free; needs about 118.6 MiB of memory in 1 process (60 MiB each and the \
                clients'), 78.1 MiB beside them
                  ok    connects     2 event loops may use 1.4 cores, 70 % of what there is; needs 0.11 while clients \
                connect, at up to 339 CPU-µs a client
                  ok    cores        2 event loops may use 1.4 cores, 70 % of what there is; needs 0.15 for 1,000 messages/s \
                and what comes back

                A host needs 196.7 MiB of memory, 15.9 CPU-seconds, 0.15 cores under load, 20,000 ports from each source \
                address to each target, 1 source address at least.
                The smallest number of hosts like this one: 3; one host fewer fails for ports.

                """
        )
    }

    @Test("where no number is enough, that is said")
    func none() throws {
        let text = try Self.record(1, smallest: nil).text(TerminalStyle())
        #expect(text.hasPrefix("1 host like this one · fleet of 60,000 clients"))
        #expect(text.hasSuffix("\nNo number of hosts like this one carries it; ports fails on each.\n"))
    }

    @Test("too few hosts are refused in one line, with the number that is enough or the changes")
    func refusal() {
        #expect(Self.share(3).refusal(of: "fleet", smallest: 3) == nil)
        #expect(
            Self.share(2).refusal(of: "fleet", smallest: 3)
                == "fleet on 2 hosts like this one: ports needs 30,000 local ports, 1 source address to 1 target has "
                + "28,232 (net.ipv4.ip_local_port_range 32768-60999): take more hosts (--hosts 3)"
        )
        #expect(
            Self.share(2).refusal(of: "fleet", smallest: nil)?.hasSuffix(
                ": lower clients, give more source addresses (connect.source_addresses), or widen "
                    + "net.ipv4.ip_local_port_range (sysctl -w net.ipv4.ip_local_port_range='1024 65535')"
            ) == true
        )
    }

    @Test("the same for programs")
    func json() throws {
        let text = try Self.record(3).json()
        #expect(!text.contains("null"))
        let record = try JSONDecoder.snakeCase.decode(DoctorRecord.self, from: Data(text.utf8))
        #expect(record.fits)
        #expect(record.flags == "fleet")
        #expect(record.load.clients == 60_000)
        #expect(record.load.rate == 3_000)
        let machines = try #require(record.machines)
        #expect(machines.hosts == 3)
        #expect(machines.smallest == 3)
        #expect(machines.clients == 20_000)
        #expect(machines.processes == 1)
        #expect(machines.processDescriptors == 20_000)
        #expect(machines.ports == 20_000)
        #expect(machines.processMemoryBytes == 60 << 20 + 20_000 * 3_072)
        #expect(machines.kernelMemoryBytes == 20_000 * 4_096)
        #expect(machines.sourceAddressesNeeded == 1)
        #expect(abs(machines.connectCpuSeconds - 6.774) < 0.001)
        let asked = try Self.record(2)
        #expect(!asked.fits)
        #expect(asked.machines?.smallest == 3)
    }

    // MARK: - The command line

    @Test("a file takes the place of the flags of a load")
    func options() throws {
        let file = try ScenarioFile(Self.file)
        func doctor(_ flags: String) -> Invocation {
            Invocation.parse(["doctor", file.path] + flags.split(separator: " ").map(String.init))
        }
        guard case .doctor(let options) = doctor("--hosts 4 --threads 3 --target other.example:1884 --json") else {
            Issue.record("no doctor")
            return
        }
        #expect(options.hosts == 4)
        #expect(options.scenario?.common.threads == 3)
        #expect(options.scenario?.groups.first?.options.target == .servers([Target(host: "other.example", port: 1884)]))
        #expect(options.json)
        guard case .refused(let lines) = doctor("-c 5") else {
            Issue.record("not refused")
            return
        }
        #expect(lines == ["clamor doctor: -c: \(file.path) has the load; change it there, or leave it out"])
    }
}
