package import Measurement

/// The limits of this host for a load generator; values that cannot be read are `nil`.
package struct HostLimits: Hashable, Sendable {
    /// Descriptors of this process: RLIMIT_NOFILE.
    package var descriptorsSoft: UInt64?
    package var descriptorsHard: UInt64?
    /// fs.nr_open, the maximum to which any process can raise its limit.
    package var descriptorsMost: UInt64?
    /// fs.file-max minus open files: the rest for all processes together.
    package var filesLeft: UInt64?

    package var ports: PortSpace?

    /// net.core.somaxconn, net.ipv4.tcp_max_syn_backlog: connects that may wait at a listener of this host.
    package var acceptBacklog: UInt64?
    package var synBacklog: UInt64?
    /// Connections that the packet filter tracks, and its maximum.
    package var trackedConnections: UInt64?
    package var trackedMost: UInt64?

    package var memoryAvailable: UInt64?
    package var swapTotal: UInt64?
    package var swapUsed: UInt64?
    /// Pages of TCP buffers: used, and the two limits of net.ipv4.tcp_mem that matter (pressure and maximum).
    package var bufferPages: UInt64?
    package var bufferPressure: UInt64?
    package var bufferMost: UInt64?
    package var group = ControlGroup()

    /// Cores that this process may run on.
    package var cores: Int?
    package var clockSource: String?
    /// 0...1 over a short interval, if it was read twice.
    package var stealShare: Double?

    package init() {}

    /// Reads the limits of this host.
    ///
    /// - Parameter clients: the number of ports to be used; `nil` if unknown. The table of all sockets takes the kernel
    ///   80 ms, so it is not read if the ports suffice without it.
    /// - Returns: the limits that can be read.
    package static func read(clients: Int? = nil) -> HostLimits {
        HostLimits(clients: clients) { ProcFile.read($0, limit: 1 << 30) }
    }

    package init(clients: Int? = nil, reading read: FileReader) {
        self.readDescriptors(read)
        self.readPorts(clients, read)
        self.acceptBacklog = Self.setting("net/core/somaxconn", read)
        self.synBacklog = Self.setting("net/ipv4/tcp_max_syn_backlog", read)
        self.trackedConnections = Self.setting("net/netfilter/nf_conntrack_count", read)
        self.trackedMost = Self.setting("net/netfilter/nf_conntrack_max", read)
        self.readMemory(read)
        self.group = ControlGroup(reading: read)
        self.cores = read("/proc/self/status").flatMap(HostFacts.cores)
        self.clockSource = HostFacts.clockSource(read)
    }

    private mutating func readDescriptors(_ read: FileReader) {
        if let text = read("/proc/self/limits"),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Max open files") })
        {
            // Soft, hard, unit; "unlimited" does not parse as a number, and means no limit.
            let values = line.dropFirst("Max open files".count).split(separator: " ").prefix(2).map { UInt64($0) }
            if values.count == 2 { (self.descriptorsSoft, self.descriptorsHard) = (values[0], values[1]) }
        }
        self.descriptorsMost = Self.setting("fs/nr_open", read)
        // Open, unused, maximum.
        let files = ProcFile.numbers(read("/proc/sys/fs/file-nr") ?? "")
        if files.count == 3 { self.filesLeft = files[2] - min(files[2], files[0]) }
    }

    private mutating func readPorts(_ clients: Int?, _ read: FileReader) {
        guard let range = read("/proc/sys/net/ipv4/ip_local_port_range"),
            var ports = PortSpace(range: range, reserved: read("/proc/sys/net/ipv4/ip_local_reserved_ports") ?? "")
        else { return }
        if let reuse = Self.setting("net/ipv4/tcp_tw_reuse", read) { ports.timeWait.reuse = Int(clamping: reuse) }
        if let stamps = Self.setting("net/ipv4/tcp_timestamps", read) { ports.timeWait.hasTimestamps = stamps > 0 }
        if let delay = Self.setting("net/ipv4/tcp_tw_reuse_delay", read) { ports.timeWait.delay = Int(clamping: delay) }
        // One port of an odd range is never found, and one more goes to the embedded broker.
        let sockets = Self.sockets(read) ?? .max / 2
        if let clients, clients + sockets + 2 <= ports.size {
            self.ports = ports
            return
        }
        for name in ["tcp", "tcp6"] {
            ports.table.add(procNetTCP: read("/proc/net/\(name)") ?? "", ports: ports.range)
        }
        self.ports = ports
    }

    /// All TCP sockets of the network namespace, including those in TIME_WAIT.
    private static func sockets(_ read: FileReader) -> Int? {
        var sum = 0
        for (path, prefix) in [("/proc/net/sockstat", "TCP:"), ("/proc/net/sockstat6", "TCP6:")] {
            guard let text = read(path) else { continue }
            guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(prefix) }) else { return nil }
            let words = line.split(separator: " ")
            for (name, value) in zip(words, words.dropFirst()) where name == "inuse" || name == "tw" {
                sum += Int(value) ?? 0
            }
        }
        return sum > 0 ? sum : nil
    }

    private mutating func readMemory(_ read: FileReader) {
        if let text = read("/proc/meminfo") {
            self.memoryAvailable = HostFacts.kibibytes(of: "MemAvailable", in: text)
            self.swapTotal = HostFacts.kibibytes(of: "SwapTotal", in: text)
            if let total = self.swapTotal, let free = HostFacts.kibibytes(of: "SwapFree", in: text) {
                self.swapUsed = total - min(total, free)
            }
        }
        let limits = ProcFile.numbers(read("/proc/sys/net/ipv4/tcp_mem") ?? "")
        if limits.count == 3 { (self.bufferPressure, self.bufferMost) = (limits[1], limits[2]) }
        if let line = read("/proc/net/sockstat")?.split(separator: "\n").first(where: { $0.hasPrefix("TCP:") }) {
            let words = line.split(separator: " ")
            if let index = words.firstIndex(of: "mem"), index + 1 < words.count {
                self.bufferPages = UInt64(words[index + 1])
            }
        }
    }

    private static func setting(_ name: String, _ read: FileReader) -> UInt64? {
        read("/proc/sys/\(name)").flatMap { ProcFile.numbers($0).first }
    }
}
