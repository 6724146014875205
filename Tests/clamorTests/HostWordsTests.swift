import HostFit
import RunControl
import Scenario
import Testing
import clamor

@Suite("Refusals of loads that the host does not carry")
struct HostWordsTests {
    /// Each remedy alone, as the command line and as a scenario file names the options.
    @Test(
        "remedies name options by flag, or by the key of a scenario",
        arguments: [
            (.fewerClients, "lower -c", "lower clients"),
            (
                .lowerRate, "lower --rate; such a run ends generator-limited",
                "lower rate; such a run ends generator-limited"
            ),
            (.slowerConnects, "connect slower (-R)", "connect slower (connect.rate)"),
            (
                .moreSourceAddresses, "give more source addresses (--ifaddr)",
                "give more source addresses (connect.source_addresses)"
            ),
            (
                .split(.processes(4)), "split the load over several processes (--processes 4)",
                "split the load over several processes (--processes 4)"
            ),
            (
                .split(.segments(3)), "make it more segments (--segment 1/3 to 3/3)",
                "make it more segments (--segment 1/3 to 3/3)"
            ),
            (.moreThreads, "give more --threads", "give more --threads"),
            (.fewerThreads(2), "--threads 2", "--threads 2"),
        ] as [(HostRemedy, String, String)]
    )
    func options(_ remedy: HostRemedy, _ flags: String, _ keys: String) {
        var check = HostCheck("any", found: "")
        check.remedies = [remedy]
        #expect(check.change(.flags) == flags)
        #expect(check.change(.keys) == keys)
    }

    @Test(
        "remedies for the kernel and the machine name the setting",
        arguments: [
            (.severalMachines, "split the load over several machines"),
            (.raiseDescriptors(to: 30_015, most: false), "raise the limit (ulimit -n 30015)"),
            (
                .raiseDescriptors(to: 30_015, most: true),
                "raise the limit (sysctl -w fs.nr_open=30015, ulimit -n 30015)"
            ),
            (.raiseOpenFiles, "raise fs.file-max (sysctl -w)"),
            (
                .widenPortRange,
                "widen net.ipv4.ip_local_port_range (sysctl -w net.ipv4.ip_local_port_range='1024 65535')"
            ),
            (.waitForTimeWait(seconds: 1, reuse: nil), "wait 1 s for TIME_WAIT"),
            (
                .waitForTimeWait(seconds: 60, reuse: 1),
                "wait 60 s for TIME_WAIT (sysctl -w net.ipv4.tcp_tw_reuse=1: 1 s)"
            ),
            (.raiseBacklog, "sysctl -w net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=4096"),
            (.raiseTracking(to: 310_000), "sysctl -w net.netfilter.nf_conntrack_max=310000"),
            (
                .raiseBuffers(low: 1_200, pressure: 1_250, most: 2_500), "sysctl -w net.ipv4.tcp_mem='1200 1250 2500'"
            ),
            (.raiseQuota, "raise cpu.max of the control group"),
            (
                .fastClock,
                "boot with clocksource=tsc, if /sys/devices/system/clocksource/clocksource0/available_clocksource has it"
            ),
            (.quieterHost, "find a quieter host; a run with over 10 % of it is generator-limited"),
            (.noSwap, "swapoff -a, or free memory: what is swapped in again is measured as latency"),
        ] as [(HostRemedy, String)]
    )
    func settings(_ remedy: HostRemedy, _ words: String) {
        var check = HostCheck("any", found: "")
        #expect(check.change(.keys) == nil)
        check.remedies = [remedy]
        #expect(check.change(.keys) == words)
        #expect(check.change(.flags) == words)
    }

    private static func fit(clients: Int) -> LoadFit {
        var limits = HostLimits()
        limits.descriptorsSoft = 500
        limits.filesLeft = 800
        return LoadFit(clients: clients, limits: limits) { _ in RouteCycle([]) }
    }

    @Test("a problem is the load, the numbers and the remedies, the last of them with an or")
    func sentences() {
        #expect(Self.fit(clients: 500).sentences(of: "-c 500", .flags).isEmpty)
        #expect(
            Self.fit(clients: 900).sentences(of: "-c 900", .flags) == [
                "-c 900 needs 900 descriptors, this process may have 500 (0 are used for other things): lower -c, "
                    + "raise the limit (ulimit -n 900), or split the load over several processes (--processes 2)",
                "-c 900 needs 900 open files, the host has 800 left (fs.file-max): lower -c, "
                    + "or raise fs.file-max (sysctl -w)",
            ]
        )
    }
}
