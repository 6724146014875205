import Glibc

/// The resources that this process uses at one moment.
package struct ProcessFacts: Hashable, Sendable {
    package var residentBytes: UInt64?
    /// CPU time of all threads since the start, user and system together, in nanoseconds.
    package var cpuNanoseconds: Int64?
    package var openDescriptors: Int?

    /// Reads the facts.
    ///
    /// Counting descriptors may read a directory (see ``ProcFile/descriptors(of:)``), so it is optional.
    package static func read(countingDescriptors: Bool = true) -> ProcessFacts {
        ProcessFacts(
            residentBytes: ProcFile.read("/proc/self/statm").flatMap { Self.residentBytes(statm: $0) },
            cpuNanoseconds: Self.readCPU(),
            openDescriptors: countingDescriptors ? ProcFile.descriptors(of: "self") : nil
        )
    }

    /// Parses /proc/PID/statm, which counts pages: total, resident, shared, ...
    package static func residentBytes(statm text: String) -> UInt64? {
        let pages = ProcFile.numbers(text)
        guard pages.count > 1 else { return nil }
        let bytes = pages[1].multipliedReportingOverflow(by: UInt64(sysconf(Int32(_SC_PAGESIZE))))
        return bytes.overflow ? nil : bytes.partialValue
    }

    private static func readCPU() -> Int64? {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return nil }
        let seconds = Int64(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        let micros = Int64(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        return seconds * 1_000_000_000 + micros * 1000
    }
}

/// The CPU time of the whole host as /proc/stat counts it, in clock ticks since boot.
package struct CPUSample: Hashable, Sendable {
    package var total: UInt64
    /// No task had work, and no task waited for a disk.
    package var idle: UInt64
    /// Time that the hypervisor gave to other machines while this host had work.
    package var steal: UInt64

    package init(total: UInt64, idle: UInt64, steal: UInt64) {
        self.total = total
        self.idle = idle
        self.steal = steal
    }

    /// The clock in ticks, and the CPUs that are counted; 0 if unknown.
    ///
    /// The kernel of a virtual machine may miss ticks of busy CPUs: 370 of 800 were missed under load, and what was
    /// idle looked twice as much.
    package var clock = 0.0
    package var cores = 0

    package static func read() -> CPUSample? {
        guard let text = ProcFile.read("/proc/stat"), var sample = CPUSample(procStat: text) else { return nil }
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        sample.cores = text.split(separator: "\n").count { $0.hasPrefix("cpu") } - 1
        let seconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        sample.clock = seconds * Double(sysconf(Int32(_SC_CLK_TCK)))
        return sample
    }

    /// Parses the first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice.
    package init?(procStat text: String) {
        guard let line = text.split(separator: "\n").first, line.hasPrefix("cpu ") else { return nil }
        let ticks = ProcFile.numbers(line.dropFirst(4))
        guard ticks.count >= 8 else { return nil }
        // User and nice already include guest time.
        self.init(total: ticks[..<8].reduce(0, +), idle: ticks[3], steal: ticks[7])
    }

    /// The share of the host's CPU that was stolen since `earlier`, 0...1; `nil` without a tick in between.
    package func stealShare(since earlier: CPUSample) -> Double? { self.share(\.steal, since: earlier) }

    /// The idle share of the host's CPU since `earlier`, 0...1; `nil` without a tick in between.
    package func idleShare(since earlier: CPUSample) -> Double? { self.share(\.idle, since: earlier) }

    private func share(_ kind: KeyPath<CPUSample, UInt64>, since earlier: CPUSample) -> Double? {
        guard self.total > earlier.total, self[keyPath: kind] >= earlier[keyPath: kind] else { return nil }
        // A CPU may come or go in between.
        let byClock = (self.clock - earlier.clock) * Double(min(self.cores, earlier.cores))
        let ticks = max(Double(self.total - earlier.total), byClock)
        return min(1, Double(self[keyPath: kind] - earlier[keyPath: kind]) / ticks)
    }
}

/// How long any task on this host had work and waited for a CPU, in microseconds since boot.
package struct CPUPressure: Hashable, Sendable {
    package var waited: UInt64

    package init(waited: UInt64) { self.waited = waited }

    /// `nil` if the kernel does not count it.
    package static func read() -> CPUPressure? { ProcFile.read("/proc/pressure/cpu").flatMap(Self.init(proc:)) }

    /// Parses the first line of /proc/pressure/cpu: some avg10=0.00 avg60=0.00 avg300=0.00 total=0.
    package init?(proc text: String) {
        guard let line = text.split(separator: "\n").first, line.hasPrefix("some "),
            let field = line.split(separator: " ").last, field.hasPrefix("total="),
            let waited = UInt64(field.dropFirst(6))
        else { return nil }
        self.init(waited: waited)
    }

    /// The share of the time since `earlier` in which any task waited, 0...1; `nil` without time in between.
    package func share(since earlier: CPUPressure, nanoseconds: Int64) -> Double? {
        guard nanoseconds > 0, self.waited >= earlier.waited else { return nil }
        return min(1, Double(self.waited - earlier.waited) * 1_000 / Double(nanoseconds))
    }
}
