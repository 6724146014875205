import Foundation
import Measurement
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
        let before = ProcessFacts.read()
        var memory = [UInt8](repeating: 1, count: 64 << 20)
        let pipe = Pipe()
        for index in stride(from: 0, to: memory.count, by: 4096) { memory[index] = 2 }
        let after = ProcessFacts.read()
        let grown = try #require(after.residentBytes) - (try #require(before.residentBytes))
        #expect(grown > 32 << 20)
        #expect(try #require(after.cpuNanoseconds) > (try #require(before.cpuNanoseconds)))
        // Other tests open and close files meanwhile, so only that there are some is certain.
        #expect(try #require(after.openDescriptors) > 2)
        #expect(ProcessFacts.read(countingDescriptors: false).openDescriptors == nil)
        withExtendedLifetime((memory, pipe)) {}
    }

    @Test("of the CPU: the steal column as a share of user to steal, without guest time")
    func steal() throws {
        let before = try #require(CPUSample(procStat: "cpu  100 10 50 800 20 5 5 10 30 0\ncpu0 1 2 3 4\n"))
        #expect(before == CPUSample(total: 1000, steal: 10))
        let after = try #require(CPUSample(procStat: "cpu  150 10 80 900 20 10 5 25 30 0\n"))
        #expect(after == CPUSample(total: 1200, steal: 25))
        #expect(after.stealShare(since: before) == 15.0 / 200)
        #expect(before.stealShare(since: before) == nil)
        #expect(before.stealShare(since: after) == nil)
        #expect(CPUSample.read() != nil)
    }

    @Test(
        "of the CPU: other texts are no sample",
        arguments: ["", "intr 1 2 3\n", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n"]
    )
    func noSample(_ text: String) {
        #expect(CPUSample(procStat: text) == nil)
    }

    private func output(_ command: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
