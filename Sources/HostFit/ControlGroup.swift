import Measurement

/// What the control groups of this process leave it: of the memory and of the CPU, the least of its group and all above.
package struct ControlGroup: Hashable, Sendable {
    package var memoryLimit: UInt64?
    /// Left of the group that has the least left; what the kernel would drop first (inactive files) counts as free.
    package var memoryLeft: UInt64?
    /// CPU time per time, in cores.
    package var cores: Double?

    package init() {}

    /// Reads both versions.
    ///
    /// - Parameter read: gives the text of a file; in a container the path in /proc/self/cgroup may be one that only
    ///   the host sees, so what is not there is passed by.
    init(reading read: FileReader) {
        for line in (read("/proc/self/cgroup") ?? "").split(separator: "\n") {
            // 0::/path in version 2, 4:memory:/path in version 1.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            let controllers = fields[1].split(separator: ",")
            for path in Self.upwards(fields[2]) {
                if fields[1].isEmpty {
                    for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] { self.readSecond(root + path, read) }
                }
                if controllers.contains("memory") { self.readFirstMemory("/sys/fs/cgroup/memory\(path)", read) }
                if controllers.contains("cpu") {
                    for root in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"] {
                        self.readFirstCPU(root + path, read)
                    }
                }
            }
        }
    }

    /// `/a/b` as `/a/b`, `/a` and nothing: the group and all above it.
    private static func upwards(_ path: Substring) -> [String] {
        var paths: [String] = []
        var path = path.hasSuffix("/") ? path.dropLast() : path
        while !path.isEmpty {
            paths.append(String(path))
            path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        }
        return paths + [""]
    }

    private mutating func readSecond(_ folder: String, _ read: FileReader) {
        // The root has neither file; elsewhere "max" is no number.
        if let limit = Self.number(read("\(folder)/memory.max")) {
            self.take(
                limit: limit,
                used: Self.number(read("\(folder)/memory.current")),
                droppable: Self.statistic("inactive_file", read("\(folder)/memory.stat"))
            )
        }
        let quota = ProcFile.numbers(read("\(folder)/cpu.max") ?? "")
        if quota.count == 2, quota[1] > 0 { self.take(cores: Double(quota[0]) / Double(quota[1])) }
    }

    private mutating func readFirstMemory(_ folder: String, _ read: FileReader) {
        // Without a limit it is the largest number of whole pages.
        guard let limit = Self.number(read("\(folder)/memory.limit_in_bytes")), limit < 1 << 60 else { return }
        self.take(
            limit: limit,
            used: Self.number(read("\(folder)/memory.usage_in_bytes")),
            droppable: Self.statistic("total_inactive_file", read("\(folder)/memory.stat"))
        )
    }

    private mutating func readFirstCPU(_ folder: String, _ read: FileReader) {
        // −1, which is no number here, is no quota.
        if let quota = Self.number(read("\(folder)/cpu.cfs_quota_us")),
            let period = Self.number(read("\(folder)/cpu.cfs_period_us")), period > 0
        {
            self.take(cores: Double(quota) / Double(period))
        }
    }

    private mutating func take(limit: UInt64, used: UInt64?, droppable: UInt64?) {
        let used = used ?? 0
        let kept = used - min(used, droppable ?? 0)
        let left = limit - min(limit, kept)
        guard left < self.memoryLeft ?? .max else { return }
        self.memoryLeft = left
        self.memoryLimit = limit
    }

    private mutating func take(cores: Double) { self.cores = min(cores, self.cores ?? cores) }

    private static func number(_ text: String?) -> UInt64? { text.flatMap { ProcFile.numbers($0).first } }

    private static func statistic(_ name: String, _ text: String?) -> UInt64? {
        for line in (text ?? "").split(separator: "\n") where line.hasPrefix("\(name) ") {
            return ProcFile.numbers(line).first
        }
        return nil
    }
}
