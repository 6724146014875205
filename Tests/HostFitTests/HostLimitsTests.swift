import HostFit
import Measurement
import Testing

@Suite("The limits of this host")
struct HostLimitsTests {
    /// Of a host with everything, as its kernel writes it.
    static let files = [
        "/proc/self/limits": """
        Limit                     Soft Limit           Hard Limit           Units
        Max processes             96146                96146                processes
        Max open files            20000                65536                files
        Max locked memory         8388608              8388608              bytes

        """,
        "/proc/self/status": "Name:\tclamor\nCpus_allowed:\t00000000,0000000b\nCpus_allowed_list:\t0-1,3\n",
        "/proc/sys/fs/nr_open": "1048576\n",
        "/proc/sys/fs/file-nr": "2351\t0\t2466183\n",
        "/proc/sys/net/core/somaxconn": "4096\n",
        "/proc/sys/net/ipv4/tcp_max_syn_backlog": "2048\n",
        "/proc/sys/net/ipv4/tcp_mem": "287901\t383869\t575802\n",
        "/proc/sys/net/netfilter/nf_conntrack_count": "17\n",
        "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
        "/proc/net/sockstat": "sockets: used 101\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 208\nUDP: inuse 0 mem 0\n",
        "/proc/meminfo": """
        MemTotal:       24684000 kB
        MemAvailable:   20309948 kB
        SwapTotal:       2097148 kB
        SwapFree:        2097000 kB

        """,
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    ]

    @Test("is read from what the kernel writes")
    func everything() {
        let limits = HostLimits { Self.files[$0] }
        #expect(limits.descriptorsSoft == 20_000)
        #expect(limits.descriptorsHard == 65_536)
        #expect(limits.descriptorsMost == 1_048_576)
        #expect(limits.filesLeft == 2_463_832)
        #expect(limits.acceptBacklog == 4_096)
        #expect(limits.synBacklog == 2_048)
        #expect(limits.trackedConnections == 17)
        #expect(limits.trackedMost == 262_144)
        #expect(limits.memoryAvailable == 20_309_948 * 1_024)
        #expect(limits.swapTotal == 2_097_148 * 1_024)
        #expect(limits.swapUsed == 148 * 1_024)
        #expect(limits.bufferPages == 208)
        #expect(limits.bufferPressure == 383_869)
        #expect(limits.bufferMost == 575_802)
        #expect(limits.cores == 3)
        #expect(limits.clockSource == "tsc")
        #expect(limits.ports == nil)
        #expect(limits.group == ControlGroup())
    }

    @Test("and is not known where there is nothing to read, or nothing that can be read")
    func nothing() {
        #expect(HostLimits { _ in nil } == HostLimits())
        #expect(HostLimits { _ in "junk\n" } == HostLimits { $0.hasSuffix("clocksource") ? "junk" : nil })
        let text = "Max open files            unlimited            unlimited            files\n"
        let unlimited = HostLimits { $0 == "/proc/self/limits" ? text : nil }
        #expect(unlimited.descriptorsSoft == nil)
    }

    @Test("here: what a second source says too")
    func here() throws {
        let limits = HostLimits.read()
        let facts = HostFacts.read()
        #expect(limits.descriptorsSoft == facts.descriptorLimitSoft)
        #expect(limits.descriptorsHard == facts.descriptorLimitHard)
        #expect(limits.ports?.range.lowerBound == facts.localPortFirst)
        #expect(limits.ports?.range.upperBound == facts.localPortLast)
        #expect(limits.cores == facts.cores)
        #expect(limits.clockSource == facts.clockSource)
    }

    static func group(_ files: [String: String]) -> ControlGroup { HostLimits { files[$0] }.group }

    @Test("a control group of version 2 and those above it: the least counts")
    func second() {
        let group = Self.group([
            "/proc/self/cgroup": "0::/pod/box\n",
            "/sys/fs/cgroup/pod/box/memory.max": "max\n",
            "/sys/fs/cgroup/pod/box/memory.current": "1000\n",
            "/sys/fs/cgroup/pod/box/cpu.max": "150000 100000\n",
            "/sys/fs/cgroup/pod/memory.max": "1073741824\n",
            "/sys/fs/cgroup/pod/memory.current": "536870912\n",
            "/sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 268435456\nactive_file 7\n",
            "/sys/fs/cgroup/pod/cpu.max": "max 100000\n",
        ])
        #expect(group.memoryLimit == 1 << 30)
        #expect(group.memoryLeft == 768 << 20)
        #expect(group.cores == 1.5)
    }

    @Test("of version 1: two hierarchies, and no limit is a number of its own")
    func first() {
        let files = [
            "/proc/self/cgroup": "9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/\n",
            "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n",
            "/sys/fs/cgroup/memory/a/memory.usage_in_bytes": "2097152\n",
            "/sys/fs/cgroup/memory/a/memory.stat": "inactive_file 5\ntotal_inactive_file 1572864\n",
            "/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": "50000\n",
            "/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        ]
        let group = Self.group(files)
        #expect(group.memoryLimit == 1 << 20)
        #expect(group.memoryLeft == 512 << 10)
        #expect(group.cores == 0.5)
    }

    @Test("of a container, whose path only the host sees: what is mounted is taken")
    func container() {
        let group = Self.group([
            "/proc/self/cgroup": "0::/kubepods/pod1/box\n",
            "/sys/fs/cgroup/memory.max": "2097152\n",
            "/sys/fs/cgroup/memory.current": "4194304\n",
            "/sys/fs/cgroup/cpu.max": "25000 100000\n",
        ])
        #expect(group.memoryLeft == 0)
        #expect(group.cores == 0.25)
    }
}
