import Glibc

/// Facts about the machine that matter for the interpretation of figures; values that cannot be read are `nil`.
package struct HostFacts: Hashable, Sendable, Codable {
    package var cpuModel: String?
    /// Cores that this process may run on.
    package var cores: Int?
    package var kernel: String?
    package var machine: String?
    package var operatingSystem: String?
    package var memoryBytes: UInt64?
    package var memoryAvailableBytes: UInt64?
    package var descriptorLimitSoft: UInt64?
    package var descriptorLimitHard: UInt64?
    /// First and last local port that connect(2) may choose, inclusive.
    package var localPortFirst: UInt16?
    package var localPortLast: UInt16?
    package var clockSource: String?
    /// Whether a hypervisor is detected, and its name if the firmware has one.
    package var isVirtual: Bool?
    package var hypervisor: String?

    package init() {}

    enum CodingKeys: String, CodingKey {
        case cpuModel = "cpu_model"
        case cores
        case kernel
        case machine
        case operatingSystem = "os"
        case memoryBytes = "memory_bytes"
        case memoryAvailableBytes = "memory_available_bytes"
        case descriptorLimitSoft = "descriptor_limit_soft"
        case descriptorLimitHard = "descriptor_limit_hard"
        case localPortFirst = "local_port_first"
        case localPortLast = "local_port_last"
        case clockSource = "clock_source"
        case isVirtual = "virtual"
        case hypervisor
    }

    /// Reads all facts from a few small files, in well under a millisecond.
    package static func read() -> HostFacts {
        var facts = HostFacts()
        facts.readProcessor()
        facts.readSystem()
        facts.readMemory()
        facts.readLimits()
        return facts
    }

    private mutating func readProcessor() {
        if let text = ProcFile.read("/proc/cpuinfo", limit: 16384) {
            self.cpuModel = ProcFile.value(of: "model name", separator: ":", in: text)
            if let flags = ProcFile.value(of: "flags", separator: ":", in: text) {
                self.isVirtual = flags.split(separator: " ").contains("hypervisor")
            }
        }
        self.hypervisor = ProcFile.line("/sys/hypervisor/type")
        if self.hypervisor != nil { self.isVirtual = true }
        if self.isVirtual == true, self.hypervisor == nil {
            self.hypervisor = ProcFile.line("/sys/class/dmi/id/sys_vendor")
        }

        self.cores = ProcFile.read("/proc/self/status").flatMap(Self.cores)
        self.clockSource = Self.clockSource { ProcFile.read($0) }
    }

    /// The cores of sched_getaffinity(2), from /proc/self/status.
    package static func cores(status text: String) -> Int? {
        // A mask of hexadecimal words, such as "00000000,00000003".
        guard let mask = ProcFile.value(of: "Cpus_allowed", separator: ":", in: text) else { return nil }
        let cores = mask.reduce(0) { $0 + ($1.hexDigitValue ?? 0).nonzeroBitCount }
        return cores > 0 ? cores : nil
    }

    package static func clockSource(_ read: FileReader) -> String? {
        read("/sys/devices/system/clocksource/clocksource0/current_clocksource").flatMap(ProcFile.firstLine)
    }

    /// The host's name, without asking a name server.
    package static var name: String? { ProcFile.line("/proc/sys/kernel/hostname") }

    private mutating func readSystem() {
        var names = utsname()
        if uname(&names) == 0 {
            self.kernel = "\(Self.text(&names.sysname)) \(Self.text(&names.release))"
            self.machine = Self.text(&names.machine)
        }
        if let text = ProcFile.read("/etc/os-release"),
            let name = ProcFile.value(of: "PRETTY_NAME", separator: "=", in: text)
        {
            self.operatingSystem = String(name.split(separator: "\"").first ?? "")
        }
    }

    private mutating func readMemory() {
        guard let text = ProcFile.read("/proc/meminfo") else { return }
        self.memoryBytes = Self.kibibytes(of: "MemTotal", in: text)
        self.memoryAvailableBytes = Self.kibibytes(of: "MemAvailable", in: text)
    }

    private mutating func readLimits() {
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            self.descriptorLimitSoft = UInt64(limit.rlim_cur)
            self.descriptorLimitHard = UInt64(limit.rlim_max)
        }
        if let range = ProcFile.read("/proc/sys/net/ipv4/ip_local_port_range").flatMap(Self.portRange) {
            (self.localPortFirst, self.localPortLast) = (range.lowerBound, range.upperBound)
        }
    }

    /// Parses `32768\t60999`.
    package static func portRange(_ text: String) -> ClosedRange<UInt16>? {
        let ports = ProcFile.numbers(text).compactMap { UInt16(exactly: $0) }
        return ports.count == 2 && ports[0] <= ports[1] ? ports[0]...ports[1] : nil
    }

    package static func kibibytes(of key: String, in text: String) -> UInt64? {
        ProcFile.value(of: key, separator: ":", in: text).flatMap { ProcFile.numbers($0).first }.map { $0 * 1024 }
    }

    /// A field of `utsname`: a C string in a tuple.
    private static func text<Field>(_ field: inout Field) -> String {
        withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
