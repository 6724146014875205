import HostFit
import Testing

@Suite("Local ports that are left")
struct PortSpaceTests {
    /// Of Linux 6.18: a listener, two connections of 127.0.0.1 to its port 1883, their other ends, and three that are
    /// over: for 61 ticks (0.61 s), for 101 (1.01 s) and for 1,000.
    static let tcp = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
           0: 00000000:075B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 242 1 00000000b158f126 100 0 0 10 0
           1: 0100007F:4E20 0100007F:075B 01 00000000:00000000 00:00000000 00000000     0        0 300 1 00000000b158f127 20 4 30 10 -1
           2: 0100007F:4E21 0100007F:075B 01 00000000:00000000 02:00000512 00000000     0        0 301 1 00000000b158f127 20 4 30 10 -1
           3: 0100007F:075B 0100007F:4E20 01 00000000:00000000 00:00000000 00000000     0        0 302 1 00000000b158f127 20 4 30 10 -1
           4: 0100007F:4E22 0100007F:075B 06 00000000:00000000 03:00001733 00000000     0        0 0 3 00000000b158f127
           5: 0100007F:4E23 0100007F:075B 06 00000000:00000000 03:0000170B 00000000     0        0 0 3 00000000b158f127
           6: 0100000A:4E24 0200000A:075B 06 00000000:00000000 03:00001388 00000000     0        0 0 3 00000000b158f127
           7: 0200007F:4E25 0100007F:075B 01 00000000:00000000 00:00000000 00000000     0        0 303 1 00000000b158f127 20 4 30 10 -1
           8: 0100007F:4E26 0100007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 304 1 00000000b158f127 20 4 30 10 -1
        """
    /// A listener on every address of both families at 20,010, and a connection of ::ffff:127.0.0.1.
    static let tcp6 = """
          sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
           0: 00000000000000000000000000000000:4E2A 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 400 1 0000000000000000 100 0 0 10 0
           1: 0000000000000000FFFF00000100007F:4E27 0000000000000000FFFF00000100007F:075B 01 00000000:00000000 00:00000000 00000000     0        0 401 1 0000000000000000 20 4 30 10 -1
           2: 00000000000000000000000001000000:4E28 00000000000000000000000001000000:075B 01 00000000:00000000 00:00000000 00000000     0        0 402 1 0000000000000000 20 4 30 10 -1
        """

    static func limits(
        range: String = "20000\t20999",
        reserved: String = "",
        reuse: Int = 2,
        timestamps: Int = 1,
        delay: Int? = nil,
        tables: Bool = true
    ) -> HostLimits {
        let files = [
            "/proc/sys/net/ipv4/ip_local_port_range": range,
            "/proc/sys/net/ipv4/ip_local_reserved_ports": reserved,
            "/proc/sys/net/ipv4/tcp_tw_reuse": "\(reuse)",
            "/proc/sys/net/ipv4/tcp_timestamps": "\(timestamps)",
            "/proc/sys/net/ipv4/tcp_tw_reuse_delay": delay.map { "\($0)" } ?? "",
            "/proc/net/tcp": tables ? Self.tcp : "",
            "/proc/net/tcp6": tables ? Self.tcp6 : "",
        ]
        return HostLimits { files[$0] }
    }

    /// The ports available to clients from these sources to these targets.
    static func largest(_ limits: HostLimits, _ routes: (String?, String)...) -> Int? {
        let routes = routes.map { source, target in
            Route(source: source.flatMap { IPAddress($0) }, name: target, port: 1883)
        }
        return LoadFit(clients: 1, limits: limits) { _ in RouteCycle(routes) }.largest?.clients
    }

    @Test("the whole range, where nothing is in the way")
    func whole() {
        let limits = Self.limits(tables: false)
        #expect(Self.largest(limits, ("127.0.0.1", "127.0.0.1")) == 1_000)
        #expect(Self.largest(limits, (nil, "broker.example")) == 1_000)
        #expect(Self.largest(limits, ("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.1")) == 2_000)
        #expect(Self.largest(limits, (nil, "10.0.0.1"), (nil, "10.0.0.2"), (nil, "10.0.0.3")) == 3_000)
    }

    @Test("the same way twice has the same ports")
    func twice() {
        let limits = Self.limits(tables: false)
        #expect(Self.largest(limits, (nil, "10.0.0.1"), (nil, "10.0.0.1")) == 1_000)
        // Two of three clients go to the first, so the 1,500th of all is its last.
        #expect(Self.largest(limits, (nil, "10.0.0.1"), (nil, "10.0.0.1"), (nil, "10.0.0.2")) == 1_500)
    }

    @Test(
        "less what is reserved",
        arguments: [
            ("20010-20019,20999,5", 989), ("1-65535", 0), ("20000-20000", 999), ("1-19999,21000-30000", 1_000),
            ("", 1_000), ("junk", 1_000),
        ]
    )
    func reserved(_ text: String, _ count: Int) {
        #expect(Self.largest(Self.limits(reserved: text, tables: false), ("127.0.0.1", "127.0.0.1")) == count)
    }

    /// Measured: of 20000 to 21000 the last connect succeeds by chance only; of 20001 to 20003 it is two, of one it is one.
    @Test(
        "of an odd range one less, for the kernel searches pairs",
        arguments: [
            ("20000 21000", "", 1_000), ("20001 20003", "", 2), ("20001 20002", "", 2), ("20000 20000", "", 1),
            ("20000 21000", "20000,21000", 999), ("20000 21000", "20000", 999),
        ]
    )
    func odd(_ range: String, _ reserved: String, _ count: Int) {
        let limits = Self.limits(range: range, reserved: reserved, tables: false)
        #expect(Self.largest(limits, ("127.0.0.1", "127.0.0.1")) == count)
    }

    @Test("less those listened on, from every address, and those in use, between the same two only")
    func table() {
        // Of 1,000: one listened on; from 127.0.0.1 three connections (one of them written as IPv6), and of the two in
        // TIME_WAIT the one that is younger than a second.
        #expect(Self.largest(Self.limits(), ("127.0.0.1", "127.0.0.1")) == 995)
        #expect(Self.largest(Self.limits(), ("127.0.0.2", "127.0.0.1")) == 998)
        #expect(Self.largest(Self.limits(), ("127.0.0.3", "127.0.0.1")) == 999)
        #expect(Self.largest(Self.limits(), (nil, "::1")) == 998)
        #expect(Self.largest(Self.limits(), (nil, "10.0.0.9")) == 999)
    }

    @Test("without a source of its own a client leaves loopback as 127.0.0.1, and other hosts from anywhere")
    func chosenByKernel() {
        #expect(Self.largest(Self.limits(), (nil, "127.0.0.1")) == 995)
        #expect(Self.largest(Self.limits(), (nil, "localhost")) == 995)
        #expect(Self.largest(Self.limits(), (nil, "10.0.0.2")) == 998)
    }

    @Test("of several ways the scarcest counts, for clients take them in turn")
    func scarcest() {
        // 995 from the first: client 1,990 is the 996th to go there.
        #expect(Self.largest(Self.limits(), ("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.1")) == 1_990)
        #expect(Self.largest(Self.limits(), ("127.0.0.2", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")) == 1_991)
    }

    /// As measured: in mode 2 the ports of loopback come back after a second and others after 60, without timestamps
    /// none before 60.
    @Test(
        "TIME_WAIT holds a port as long as the kernel's settings say",
        arguments: [
            // reuse, timestamps, delay, from 127.0.0.1, from 10.0.0.1
            (2, 1, 1_000, 995, 998), (1, 1, 1_000, 995, 999), (0, 1, 1_000, 994, 998), (2, 0, 1_000, 994, 998),
            (2, 1, 100, 996, 998), (2, 1, 5_000, 994, 998), (1, 1, 20_000, 994, 998),
        ]
    )
    func timeWait(_ reuse: Int, _ timestamps: Int, _ delay: Int, _ loopback: Int, _ other: Int) {
        let limits = Self.limits(reuse: reuse, timestamps: timestamps, delay: delay)
        #expect(Self.largest(limits, ("127.0.0.1", "127.0.0.1")) == loopback)
        #expect(Self.largest(limits, ("10.0.0.1", "10.0.0.2")) == other)
    }

    @Test("a kernel without tcp_tw_reuse_delay waits a second")
    func oldKernel() {
        #expect(Self.limits().ports?.timeWait.delay == 1_000)
    }

    @Test("what is no range gives no answer", arguments: ["", "1", "5 4", "1 70000", "a b"])
    func noRange(_ text: String) {
        #expect(Self.limits(range: text).ports == nil)
    }

    @Test("the table of all sockets is read only when it can matter")
    func lazy() {
        var asked: [String] = []
        func read(_ path: String) -> String? {
            asked.append(path)
            return [
                "/proc/sys/net/ipv4/ip_local_port_range": "20000 20999",
                "/proc/net/sockstat": "sockets: used 9\nTCP: inuse 300 orphan 5 tw 200 alloc 400 mem 7\n",
                "/proc/net/sockstat6": "TCP6: inuse 100\n",
            ][path]
        }
        // 1,000 less 600 sockets less two to be sure.
        _ = HostLimits(clients: 398) { read($0) }
        #expect(!asked.contains("/proc/net/tcp"))
        _ = HostLimits(clients: 399) { read($0) }
        #expect(asked.contains("/proc/net/tcp"))
        #expect(asked.contains("/proc/net/tcp6"))
    }

    @Test("addresses of both spellings are one")
    func addresses() {
        #expect(IPAddress("127.0.0.1") == IPAddress("::ffff:127.0.0.1"))
        #expect(IPAddress("127.0.0.1") != IPAddress("127.0.0.2"))
        #expect(IPAddress("::1")?.isLoopback == true)
        #expect(IPAddress("127.9.8.7")?.isLoopback == true)
        #expect(IPAddress("::7f00:1")?.isLoopback == false)
        #expect(IPAddress("10.0.0.1")?.isLoopback == false)
        #expect(IPAddress("127.9.8.7")?.sourceOnLoopback == IPAddress("127.0.0.1"))
        #expect(IPAddress("::1")?.sourceOnLoopback == IPAddress("::1"))
        #expect(IPAddress("10.0.0.1")?.sourceOnLoopback == nil)
        #expect(IPAddress("localhost") == nil)
    }
}
