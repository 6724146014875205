import Foundation
import HostFit
import Report
import TestSupport
import Testing
import clamor

@Suite("The report of doctor")
struct DoctorRecordTests {
    private static func record(_ clients: Int?) -> DoctorRecord {
        var limits = HostLimits()
        limits.descriptorsSoft = 20_000
        limits.ports = PortSpace(range: 32_768...60_999)
        limits.clockSource = "hpet"
        var fit = LoadFit(clients: clients, limits: limits) { _ in
            RouteCycle([Route(source: nil, name: "broker.example", port: 1883)])
        }
        fit.descriptorsBeside = 15
        fit.rate = clients == nil ? nil : 5_000
        return DoctorRecord(fit, of: "-c 30000", targets: ["broker.example:1883"], sources: [])
    }

    @Test("a line per check, and the largest number of clients")
    func text() {
        let clock = """
              warn  clock        the clock source is hpet, so that each look at the clock is a system call; boot with \
            clocksource=tsc, if /sys/devices/system/clocksource/clocksource0/available_clocksource has it
            """
        #expect(
            Self.record(30_000).text(TerminalStyle()) == """
                This host · -c 30000, 5,000/s to broker.example:1883

                  fail  descriptors  this process may have 20,000 (15 are used for other things); needs 30,015 \
                descriptors; lower -c, raise the limit (ulimit -n 30015), or split the load over several processes (--processes 2)
                  fail  ports        1 source address to 1 target has 28,232 (net.ipv4.ip_local_port_range \
                32768-60999); needs 30,000 local ports; lower -c, give more source addresses (--ifaddr), or widen \
                net.ipv4.ip_local_port_range (sysctl -w net.ipv4.ip_local_port_range='1024 65535')
                \(clock)

                The largest number of clients: 19,985, limited by descriptors.

                """
        )
        #expect(
            Self.record(nil).text(TerminalStyle()) == """
                This host · what it allows at most to broker.example:1883

                  ok    descriptors  this process may have 20,000 (15 are used for other things)
                  ok    ports        1 source address to 1 target has 28,232 (net.ipv4.ip_local_port_range 32768-60999)
                \(clock)

                The largest number of clients: 19,985, limited by descriptors.

                """
        )
    }

    @Test("colours mark the state, where they may")
    func colours() {
        let text = Self.record(30_000).text(TerminalStyle(isColoured: true))
        #expect(text.contains("\u{1B}[1;31mfail\u{1B}[0m  ports"))
        #expect(text.contains("\u{1B}[1;33mwarn\u{1B}[0m  clock"))
    }

    @Test("the same for programs; what is not known is absent")
    func json() throws {
        let text = try Self.record(nil).json()
        #expect(!text.contains("null"))
        let record = try JSONDecoder.snakeCase.decode(DoctorRecord.self, from: Data(text.utf8))
        #expect(record.schema == "clamor.doctor/1")
        #expect(record.fits)
        #expect(record.flags == nil)
        #expect(record.load.clients == nil)
        #expect(record.largestClients == 19_985)
        #expect(record.limitedBy == "descriptors")
        #expect(record.checks.map(\.name) == ["descriptors", "ports", "clock"])
        #expect(record.checks.map(\.state) == [.ok, .ok, .warn])
        #expect(record.checks.map(\.available) == [20_000, 28_232, nil])
        let asked = Self.record(30_000)
        #expect(!asked.fits)
        #expect(asked.flags == "-c 30000")
        #expect(asked.load.rate == 5_000)
        #expect(asked.checks.map(\.needed) == [30_015, 30_000, nil])
    }
}
