import Measurement
import Testing

@Suite("Whether a load fits this host")
struct LoadFitTests {
    @Test("a load that fits has no problem, nor one of which nothing is known")
    func fits() {
        let fit = LoadFit(
            clients: 15_000,
            descriptorLimit: 20_000,
            localPorts: 32_768...60_999,
            memoryAvailable: 1 << 30
        )
        #expect(fit.problems.isEmpty)
        #expect(LoadFit(clients: 50_000_000).problems.isEmpty)
    }

    @Test(
        "descriptors: one per client and some beside",
        arguments: [(19_936, true), (19_937, false), (30_000, false)]
    )
    func descriptors(_ clients: Int, _ fits: Bool) {
        let fit = LoadFit(clients: clients, descriptorLimit: 20_000)
        #expect(fit.problems.isEmpty == fits)
    }

    @Test("ports: the range, times source addresses, times targets")
    func ports() {
        // 60,999 − 32,768 + 1 = 28,232.
        let range: ClosedRange<UInt16> = 32_768...60_999
        #expect(LoadFit(clients: 28_232, localPorts: range).problems.isEmpty)
        #expect(LoadFit(clients: 28_233, localPorts: range).problems.count == 1)
        #expect(LoadFit(clients: 56_464, sourceAddresses: 2, localPorts: range).problems.isEmpty)
        #expect(LoadFit(clients: 84_696, targets: 3, localPorts: range).problems.isEmpty)
        #expect(LoadFit(clients: 84_697, targets: 3, localPorts: range).problems.count == 1)
    }

    @Test("each problem names the flag, the numbers and the remedy")
    func words() {
        let fit = LoadFit(
            clients: 60_000,
            flags: "-c 30000 --subscribers 30000",
            targets: 1,
            sourceAddresses: 2,
            descriptorLimit: 20_000,
            localPorts: 32_768...60_999,
            memoryAvailable: 256 << 20,
            bytesPerClient: 16_384
        )
        #expect(
            fit.problems == [
                "-c 30000 --subscribers 30000 needs 60,064 descriptors, this process may have 20,000: "
                    + "lower -c, raise the limit (ulimit -n), or split the load over several processes",
                "-c 30000 --subscribers 30000 needs 60,000 local ports, 2 source addresses to 1 target have 56,464: "
                    + "lower -c, give more source addresses (--ifaddr), or widen net.ipv4.ip_local_port_range",
                "-c 30000 --subscribers 30000 needs about 937.5 MiB of memory, 256 MiB are free: "
                    + "lower -c, or split the load over several machines",
            ]
        )
    }

    @Test("on loopback nobody is told to give source addresses")
    func loopback() {
        let fit = LoadFit(clients: 10, sourceAddresses: 1, isLoopback: true, localPorts: 1000...1001)
        #expect(
            fit.problems == [
                "-c 10 needs 10 local ports, 1 source address to 1 target have 2: "
                    + "lower -c, or widen net.ipv4.ip_local_port_range"
            ]
        )
    }
}
