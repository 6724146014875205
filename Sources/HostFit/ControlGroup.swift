package import Measurement

/// The memory and CPU that the control groups of a process allow: the least of its own group and all its ancestors.
package struct ControlGroup: Hashable, Sendable {
    package var memoryLimit: UInt64?
    /// Memory left in the tightest group; inactive files, which the kernel would drop first, count as free.
    package var memoryLeft: UInt64?
    /// CPU time per unit of time, in cores.
    package var cores: Double?

    package init() {}

    /// Reads both versions of control groups.
    ///
    /// - Parameters:
    ///   - process: its number, or `self`.
    ///   - read: returns the text of a file. In a container the path in /proc/self/cgroup may exist only on the host, so
    ///     missing files are skipped.
    package init(of process: String = "self", reading read: FileReader) {
        for folder in Self.folders(of: process, read) {
            switch folder {
            case .second(let path): self.readSecond(path, read)
            case .firstMemory(let path): self.readFirstMemory(path, read)
            case .firstCPU(let path): self.readFirstCPU(path, read)
            }
        }
    }

    /// A folder of the process's own group or of an ancestor, by the files in it.
    enum Folder {
        case second(String)
        case firstMemory(String)
        case firstCPU(String)
    }

    static func folders(of process: String, _ read: FileReader) -> [Folder] {
        (read("/proc/\(process)/cgroup") ?? "").split(separator: "\n").flatMap { line -> [Folder] in
            // 0::/path in version 2, 4:memory:/path in version 1.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return [] }
            let controllers = fields[1].split(separator: ",")
            return Self.upwards(fields[2]).flatMap { path -> [Folder] in
                var folders: [Folder] = []
                if fields[1].isEmpty {
                    folders += ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map { .second($0 + path) }
                }
                if controllers.contains("memory") { folders.append(.firstMemory("/sys/fs/cgroup/memory\(path)")) }
                if controllers.contains("cpu") {
                    folders += ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].map { .firstCPU($0 + path) }
                }
                return folders
            }
        }
    }

    /// `/a/b` as `/a/b`, `/a` and the empty path: the group and its ancestors.
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
        // The root has neither file; elsewhere "max" does not parse as a number.
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
        // −1 means no quota, and does not parse as a number here.
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

    static func statistic(_ name: String, _ text: String?) -> UInt64? {
        for line in (text ?? "").split(separator: "\n") where line.hasPrefix("\(name) ") {
            return ProcFile.numbers(line).first
        }
        return nil
    }
}

/// How long the CPU quota of a control group stopped its tasks, from look to look.
///
/// The kernel adds the time up over all cores on which the group had work, so it may exceed the time that passed.
package struct QuotaWatch: Sendable {
    private let read: @Sendable (String) -> String?
    /// `cpu.stat` of the process's own group and of all its ancestors: the quota of each stops it.
    private let files: [String]
    private var last: [UInt64?]

    /// - Parameters:
    ///   - process: its number, or `self`.
    ///   - read: returns the text of a file.
    package init(
        of process: String = "self",
        reading read: @escaping @Sendable (String) -> String? = { ProcFile.read($0) }
    ) {
        self.read = read
        self.files = ControlGroup.folders(of: process, read).compactMap { folder in
            switch folder {
            case .second(let path), .firstCPU(let path): "\(path)/cpu.stat"
            case .firstMemory: nil
            }
        }
        self.last = self.files.map { Self.throttled(read($0)) }
    }

    /// Ends a stretch of time, and begins the next.
    ///
    /// - Returns: nanoseconds, of the group that was stopped the longest; `nil` if no group counts them.
    package mutating func take() -> Int64? {
        let now = self.files.map { Self.throttled(self.read($0)) }
        let waits = zip(now, self.last).compactMap { now, before -> Int64? in
            guard let now, let before, now >= before else { return nil }
            return Int64(clamping: now - before)
        }
        self.last = now
        return waits.max()
    }

    /// Nanoseconds since the group was made: microseconds in version 2, nanoseconds in version 1.
    static func throttled(_ text: String?) -> UInt64? {
        if let micros = ControlGroup.statistic("throttled_usec", text) {
            return micros.multipliedReportingOverflow(by: 1_000).partialValue
        }
        return ControlGroup.statistic("throttled_time", text)
    }
}
