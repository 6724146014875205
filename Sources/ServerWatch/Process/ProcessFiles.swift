import Glibc
import Measurement

/// The files of /proc that a ``ProcessWatch`` reads, and the units of the kernel.
package struct ProcessFiles: Sendable {
    package var read: @Sendable (String) -> String?
    /// The names in a directory; `nil` if it cannot be read.
    package var list: @Sendable (String) -> [String]?
    /// The number of open descriptors of a process; `nil` if it cannot be read.
    package var descriptors: @Sendable (Int) -> Int?
    /// Whether counting descriptors costs the same for any number of them.
    package var countsDescriptors: Bool
    /// The process that watches: it is not a server.
    package var ownProcess: Int
    package var tickNanoseconds: Int64
    /// Processors of this host.
    package var online = Int(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    package init(
        read: @escaping @Sendable (String) -> String?,
        list: @escaping @Sendable (String) -> [String]?,
        descriptors: @escaping @Sendable (Int) -> Int?,
        countsDescriptors: Bool = true,
        ownProcess: Int,
        tickNanoseconds: Int64
    ) {
        self.read = read
        self.list = list
        self.descriptors = descriptors
        self.countsDescriptors = countsDescriptors
        self.ownProcess = ownProcess
        self.tickNanoseconds = tickNanoseconds
    }

    package static let system = ProcessFiles(
        read: { ProcFile.read($0) },
        list: { ProcFile.list($0) },
        descriptors: { ProcFile.descriptors(of: "\($0)") },
        countsDescriptors: ProcFile.countsDescriptors,
        ownProcess: Int(getpid()),
        tickNanoseconds: 1_000_000_000 / Int64(max(1, sysconf(Int32(_SC_CLK_TCK))))
    )

    /// A bound that keeps sums of times in range: 36 years.
    private static let longest: Int64 = 1 << 60

    func stat(_ pid: Int) -> ProcStat? { self.read("/proc/\(pid)/stat").flatMap { ProcStat($0) } }

    /// The numbers of all processes; `nil` without /proc.
    func processes() -> [Int]? { self.numbers(in: "/proc") }

    /// The numbers of the threads of a process, in their order.
    func threads(_ pid: Int) -> [Int] { self.numbers(in: "/proc/\(pid)/task") ?? [] }

    /// The last part of the path that the process was started by.
    func program(_ pid: Int) -> String? {
        guard let arguments = self.read("/proc/\(pid)/cmdline") else { return nil }
        let path = arguments.unicodeScalars.prefix { $0 != "\0" }
        return String(Substring(path)).split(separator: "/").last.map(String.init)
    }

    /// The CPU time of a thread in nanoseconds; `nil` if the kernel does not count it, or the thread is gone.
    func threadTime(_ pid: Int, _ thread: Int) -> Int64? {
        // "run wait slices"; a kernel that does not count has zeros.
        guard let text = self.read("/proc/\(pid)/task/\(thread)/schedstat") else { return nil }
        let end = text.utf8.firstIndex { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? text.endIndex
        return Int64(text[..<end]).map { min($0, Self.longest) }
    }

    /// The CPU time of a task in nanoseconds, by clock ticks.
    func time(_ stat: ProcStat) -> Int64 {
        let time = Int64(clamping: stat.cpuTicks).multipliedReportingOverflow(by: self.tickNanoseconds)
        return time.overflow ? Self.longest : min(time.partialValue, Self.longest)
    }

    func residentBytes(_ pid: Int) -> UInt64? {
        self.read("/proc/\(pid)/statm").flatMap { ProcessFacts.residentBytes(statm: $0) }
    }

    /// The segments that TCP sent again in the process's network namespace, since that began; `nil` if it is unknown.
    func retransmitted(_ pid: Int) -> UInt64? {
        // Two lines: the names of the counters, and their values.
        let lines = self.read("/proc/\(pid)/net/snmp")?.split(separator: "\n").filter { $0.hasPrefix("Tcp: ") } ?? []
        guard lines.count == 2 else { return nil }
        let (names, values) = (lines[0].split(separator: " "), lines[1].split(separator: " "))
        guard let place = names.firstIndex(of: "RetransSegs"), values.indices.contains(place) else { return nil }
        return UInt64(values[place])
    }

    private func numbers(in folder: String) -> [Int]? {
        self.list(folder)?.compactMap { Int($0) }.filter { $0 > 0 }.sorted()
    }
}
