import Foundation
import Measurement
import TestSupport
import Testing

@Suite("Facts about host and process")
struct HostFactsTests {
    @Test("are those that Foundation and the shell's tools know")
    func secondSource() throws {
        let facts = HostFacts.read()
        #expect(facts.memoryBytes == ProcessInfo.processInfo.physicalMemory)
        #expect(facts.cores == ProcessInfo.processInfo.activeProcessorCount)
        #expect(facts.kernel == "Linux " + (try self.output("uname", "-r")))
        #expect(facts.machine == (try self.output("uname", "-m")))
        #expect(facts.descriptorLimitSoft.map(String.init) == (try self.output("sh", "-c", "ulimit -Sn")))
        #expect(facts.descriptorLimitHard.map(String.init) == (try self.output("sh", "-c", "ulimit -Hn")))
        let ports = try self.output("cat", "/proc/sys/net/ipv4/ip_local_port_range").split(separator: "\t")
        #expect(facts.localPortFirst.map(String.init) == ports.first.map(String.init))
        #expect(facts.localPortLast.map(String.init) == ports.last.map(String.init))
        #expect(facts.operatingSystem == (try self.output("sh", "-c", ". /etc/os-release; echo \"$PRETTY_NAME\"")))
        #expect((facts.memoryAvailableBytes ?? 0) <= (facts.memoryBytes ?? 0))
    }

    @Test("survive JSON, and what could not be read is absent")
    func json() throws {
        let facts = HostFacts.read()
        #expect(try JSONDecoder().decode(HostFacts.self, from: JSONEncoder().encode(facts)) == facts)
        #expect(try JSONEncoder().encode(HostFacts()) == Data("{}".utf8))
    }

    @Test("of the process: memory, CPU time and descriptors grow with what it uses")
    func process() throws {
        // Tests beside this one give memory back as well: one look of many in which none did is enough.
        var grown: Int64 = 0
        let pipe = Pipe()
        for _ in 0..<100 where grown <= 32 << 20 {
            let before = ProcessFacts.read()
            var memory = [UInt8](repeating: 1, count: 64 << 20)
            for index in stride(from: 0, to: memory.count, by: 4096) { memory[index] = 2 }
            let after = ProcessFacts.read()
            grown = Int64(try #require(after.residentBytes)) - Int64(try #require(before.residentBytes))
            #expect(try #require(after.cpuNanoseconds) > (try #require(before.cpuNanoseconds)))
            withExtendedLifetime(memory) {}
        }
        #expect(grown > 32 << 20)
        let after = ProcessFacts.read()
        // Other tests open and close files meanwhile, so only that there are some is certain.
        #expect(try #require(after.openDescriptors) > 2)
        #expect(ProcessFacts.read(countingDescriptors: false).openDescriptors == nil)
        withExtendedLifetime(pipe) {}
    }

    @Test("of the CPU: the steal column as a share of user to steal, without guest time")
    func steal() throws {
        let before = try #require(CPUSample(procStat: "cpu  100 10 50 800 20 5 5 10 30 0\ncpu0 1 2 3 4\n"))
        #expect(before == CPUSample(total: 1000, idle: 800, steal: 10))
        let after = try #require(CPUSample(procStat: "cpu  150 10 80 880 40 10 5 25 30 0\n"))
        #expect(after == CPUSample(total: 1200, idle: 880, steal: 25))
        #expect(after.stealShare(since: before) == 15.0 / 200)
        // Waiting for a disk is not being idle.
        #expect(after.idleShare(since: before) == 80.0 / 200)
        #expect(before.idleShare(since: before) == nil)
        #expect(before.idleShare(since: after) == nil)
        #expect(before.stealShare(since: before) == nil)
        #expect(before.stealShare(since: after) == nil)
        let (first, second) = (try #require(CPUSample.read()), try #require(CPUSample.read()))
        #expect(first.clock > 0 && second.clock >= first.clock && first.cores > 0)
    }

    /// Ticks by the clock, CPUs before and after, and the idle share of 100 counted ticks.
    static let missed: [(clock: Double, before: Int, after: Int, idle: Double)] = [
        (0, 0, 0, 0.8), (45, 2, 2, 0.8), (50, 2, 2, 0.8), (80, 2, 2, 0.5), (400, 2, 2, 0.1), (50, 2, 64, 0.8),
        (50, 64, 2, 0.8),
    ]

    @Test("of the CPU: ticks that the kernel missed were not idle", arguments: missed)
    func missedTicks(_ row: (clock: Double, before: Int, after: Int, idle: Double)) {
        var (before, after) = (CPUSample(total: 0, idle: 0, steal: 0), CPUSample(total: 100, idle: 80, steal: 20))
        (before.clock, before.cores) = (1_000, row.before)
        (after.clock, after.cores) = (1_000 + row.clock, row.after)
        #expect(after.idleShare(since: before) == row.idle)
        #expect(after.stealShare(since: before) == row.idle / 4)
    }

    @Test(
        "of the CPU: other texts are no sample",
        arguments: ["", "intr 1 2 3\n", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n"]
    )
    func noSample(_ text: String) {
        #expect(CPUSample(procStat: text) == nil)
    }

    @Test("CPU pressure: the time that tasks waited for a CPU, if the kernel reports it")
    func pressure() throws {
        let text = "some avg10=67.14 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.00 total=7\n"
        let before = try #require(CPUPressure(proc: text))
        #expect(before == CPUPressure(waited: 1_000_000))
        let after = CPUPressure(waited: 1_250_000)
        #expect(after.share(since: before, nanoseconds: 1_000_000_000) == 0.25)
        // The two clocks are read one after the other.
        #expect(after.share(since: before, nanoseconds: 200_000_000) == 1)
        #expect(after.share(since: before, nanoseconds: 0) == nil)
        #expect(before.share(since: after, nanoseconds: 1_000_000_000) == nil)
        for text in ["", "full avg10=0.00 total=1\n", "some avg10=0.00\n", "some total=-1\n", "some total=\n"] {
            #expect(CPUPressure(proc: text) == nil, "\(text)")
        }
    }

    @Test("of the CPU: a run's mean is that of its time, and spans of a few ticks are no seconds")
    func load() {
        func look(_ total: UInt64, _ idle: UInt64, waited: UInt64, milliseconds: Int64) -> HostLoad.Look {
            HostLoad.Look(
                cpu: CPUSample(total: total, idle: idle, steal: 0),
                pressure: CPUPressure(waited: waited),
                time: milliseconds * 1_000_000
            )
        }
        func gauge(_ metrics: [Metric], _ name: String) -> GaugeReading? { metrics.first { $0.name == name }?.gauge }
        var load = HostLoad(look(1_000, 500, waited: 0, milliseconds: 0))
        let full = load.take(look(1_200, 550, waited: 800_000, milliseconds: 1_000))
        #expect(full.map(\.gauge?.value) == [0.25, 0.8])
        #expect(load.take(look(1_202, 552, waited: 800_000, milliseconds: 1_010)).isEmpty)
        #expect(load.steal == 0)
        let calm = load.take(look(1_400, 710, waited: 900_000, milliseconds: 2_010))
        #expect(gauge(calm, "host_cpu_pressure")?.value == 0.1)
        let whole = load.metrics
        #expect(gauge(whole, "host_cpu_idle")?.mean == 210.0 / 400)
        #expect(gauge(whole, "host_cpu_idle")?.min == 0.25)
        #expect(gauge(whole, "host_cpu_pressure")?.mean == 900.0 / 2_010)
        #expect(gauge(whole, "host_cpu_pressure")?.max == 0.8)
        // A run of less than a second has a mean, and no seconds.
        var short = HostLoad(look(1_000, 500, waited: 0, milliseconds: 0))
        #expect(short.take(look(1_040, 510, waited: 0, milliseconds: 200)).isEmpty)
        #expect(gauge(short.metrics, "host_cpu_idle") == GaugeReading(value: 0.25, mean: 0.25))
        var unknown = HostLoad(HostLoad.Look(cpu: nil, pressure: nil, time: 0))
        #expect(unknown.take(HostLoad.Look(cpu: nil, pressure: nil, time: 1_000_000_000)).isEmpty)
        #expect(unknown.metrics.isEmpty)
        #expect(unknown.steal == nil)
    }

    private func output(_ command: String...) throws -> String {
        try RunningProgram.run("/usr/bin/env", command).output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
