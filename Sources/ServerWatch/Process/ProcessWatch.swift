import HostFit
package import Measurement

/// Watches processes of this host with their children: CPU by thread, memory and descriptors.
///
/// A machine over ``ProcessFiles``; the time is an argument. The CPU of a child that begins and ends between two looks
/// is not counted.
package struct ProcessWatch {
    /// A server: the processes of one number or name, and all their descendants.
    struct Server {
        let wanted: String
        /// The wanted number; `nil` for a name.
        let pid: Int?
        /// The start time of the process with that number.
        var started: UInt64?
        var label: String
        /// Nanoseconds of CPU of processes that have ended.
        var ended: Int64 = 0
        /// Nanoseconds of CPU at the last look.
        var last: Int64 = 0
        /// Resident bytes before the first client connected.
        var idleMemory: UInt64?
        /// The quota of the first process found, and the memory that its control groups allow.
        var quota: QuotaWatch?
        var memoryLimit: UInt64?
        /// At the last look.
        var retransmitted: UInt64?
        /// Looks until descriptors are counted again.
        var looksToCount = 0
        var isRunning = true
        var hasWarned = false
        var threadLabels = ThreadLabels()
    }

    /// Shares over less time are not reported.
    private static let shortest: Int64 = 500_000_000
    /// More descriptors are counted once in ten looks, where counting is dear.
    private static let manyDescriptors = 5_000

    private let files: ProcessFiles
    private var servers: [Server] = []
    private var processes: [Int: WatchedProcess] = [:]
    /// Processes that are no server, with the number of looks that found so: a new process may still take another
    /// program's name, after fork(2).
    private var others: [Int: Int] = [:]
    /// This process and its descendants.
    private var own: Set<Int>
    private var names = ThreadNames()
    private var lastLook: Int64

    /// Finds the processes, and reads them for the first time.
    ///
    /// - Parameters:
    ///   - wanted: each the number or the name of a process.
    ///   - nanoseconds: monotonic.
    ///   - files: for tests.
    /// - Throws: an error for the first process that cannot be watched.
    package init(_ wanted: [String], at nanoseconds: Int64, files: ProcessFiles = .system) throws(ProcessWatchError) {
        self.files = files
        self.own = [files.ownProcess]
        self.lastLook = nanoseconds
        guard let numbers = files.processes() else { throw .noProcFiles }
        self.servers = wanted.map { Server(wanted: $0, pid: Int($0), label: $0) }
        self.findProcesses(among: numbers)
        for index in self.servers.indices { try self.require(index, among: numbers) }
        for index in self.servers.indices {
            self.servers[index].label = self.label(of: index)
            self.servers[index].started = self.servers[index].pid.flatMap { self.processes[$0]?.started }
        }
        self.readProcesses()
        for pid in self.processes.keys { self.processes[pid]?.beginHere() }
        for index in self.servers.indices {
            self.servers[index].idleMemory = self.memory(of: index)
            guard let pid = self.first(of: index) else { continue }
            self.servers[index].retransmitted = files.retransmitted(pid)
            self.servers[index].quota = QuotaWatch(of: "\(pid)", reading: files.read)
            self.servers[index].memoryLimit = ControlGroup(of: "\(pid)", reading: files.read).memoryLimit
        }
    }

    /// The processes of each server and their descendants, a line for each.
    package var found: [String] {
        self.servers.indices.map { index in
            let numbers = self.processes.filter { $0.value.server == index }.keys.sorted()
            let shown = numbers.prefix(8).map(String.init)
            let more = numbers.count > shown.count ? ["\(numbers.count - shown.count) more"] : []
            let all = shown + more
            let list = all.dropLast().joined(separator: ", ") + (all.count > 1 ? " and " : "") + (all.last ?? "")
            let count = numbers.count == 1 ? "process" : "\(numbers.count) processes,"
            return "\(self.servers[index].label): \(count) \(list)"
        }
    }

    /// Reads all processes.
    ///
    /// - Parameter nanoseconds: monotonic.
    /// - Returns: the metrics of the time since the last look, and lines about processes that have ended.
    package mutating func look(at nanoseconds: Int64) -> (metrics: [Metric], warnings: [String]) {
        let span = nanoseconds - self.lastLook
        guard span > 0 else { return ([], []) }
        self.lastLook = nanoseconds
        self.removeEnded()
        if let numbers = self.files.processes() { self.findProcesses(among: numbers) }
        self.readProcesses()
        var metrics: [Metric] = []
        var warnings: [String] = []
        for index in self.servers.indices {
            let wasRunning = self.servers[index].isRunning
            let isRunning = self.processes.values.contains { $0.server == index }
            self.servers[index].isRunning = isRunning
            guard wasRunning || isRunning else { continue }
            metrics += self.metrics(of: index, span)
            if !isRunning, !self.servers[index].hasWarned {
                self.servers[index].hasWarned = true
                let server = self.servers[index]
                let end = server.pid == nil ? "are absent until a process of that name runs again" : "end with it"
                warnings.append("\(server.wanted): the process has ended; its metrics \(end)")
            }
        }
        return (metrics, warnings)
    }

    // MARK: - Processes

    /// Finds servers and their descendants among processes that are not known yet.
    private mutating func findProcesses(among numbers: [Int]) {
        let living = Set(numbers)
        self.others = self.others.filter { living.contains($0.key) }
        self.own = self.own.filter { living.contains($0) || $0 == self.files.ownProcess }
        var fresh: [Int: ProcStat] = [:]
        for pid in numbers where self.processes[pid] == nil && !self.own.contains(pid) && self.others[pid] ?? 0 < 2 {
            if let stat = self.files.stat(pid), !stat.hasEnded { fresh[pid] = stat }
        }
        self.addDescendants(of: &fresh, isOwn: true)
        for (pid, stat) in fresh.sorted(by: { $0.key < $1.key }) {
            if let server = self.servers.firstIndex(where: { self.matches(pid, stat, $0) }) {
                self.add(pid, stat, server)
                fresh[pid] = nil
            }
        }
        self.addDescendants(of: &fresh, isOwn: false)
        for pid in fresh.keys { self.others[pid, default: 0] += 1 }
    }

    private func matches(_ pid: Int, _ stat: ProcStat, _ server: Server) -> Bool {
        if let wanted = server.pid { return wanted == pid && stat.started == server.started ?? stat.started }
        return stat.name == server.wanted || self.files.program(pid) == server.wanted
    }

    /// Moves the children of known processes out of `fresh`, and their children.
    private mutating func addDescendants(of fresh: inout [Int: ProcStat], isOwn: Bool) {
        var isComplete = false
        while !isComplete {
            isComplete = true
            for (pid, stat) in fresh {
                if isOwn, self.own.contains(stat.parent) {
                    self.own.insert(pid)
                } else if !isOwn, let server = self.processes[stat.parent]?.server {
                    self.add(pid, stat, server)
                } else {
                    continue
                }
                fresh[pid] = nil
                isComplete = false
            }
        }
    }

    private mutating func add(_ pid: Int, _ stat: ProcStat, _ server: Int) {
        self.processes[pid] = WatchedProcess(pid, stat, server: server, files: self.files)
        self.others[pid] = nil
    }

    /// Throws the reason if a server has no process.
    private func require(_ index: Int, among numbers: [Int]) throws(ProcessWatchError) {
        guard !self.processes.values.contains(where: { $0.server == index }) else { return }
        let server = self.servers[index]
        if let pid = server.pid {
            if self.own.contains(pid) { throw .ownProcess(server.wanted) }
            if self.processes[pid] != nil { throw .alreadyWatched(server.wanted) }
            let isHidden = numbers.contains(pid) && self.files.stat(pid) == nil
            throw isHidden ? .notPermitted(server.wanted) : .noSuchProcess(server.wanted)
        }
        let isWatched = self.processes.keys.contains { pid in
            self.files.stat(pid).map { self.matches(pid, $0, server) } ?? false
        }
        throw isWatched ? .alreadyWatched(server.wanted) : .noSuchProcess(server.wanted)
    }

    private func label(of index: Int) -> String {
        let server = self.servers[index]
        let name = server.pid.flatMap { self.files.stat($0)?.name } ?? server.wanted
        return LabelText.unique(LabelText.safe(name)) { label in
            self.servers[..<index].contains { $0.label == label }
        }
    }

    private mutating func removeEnded() {
        for (pid, process) in self.processes {
            let stat = self.files.stat(pid)
            // Another start time is another process, to be judged by `findProcesses`.
            let isSame = stat?.started == process.started
            if let stat, isSame { self.processes[pid]?.take(stat, self.files) }
            guard let stat, isSame, !stat.hasEnded else {
                self.servers[process.server].ended &+= self.processes[pid]?.used ?? 0
                self.processes[pid] = nil
                continue
            }
        }
    }

    private mutating func readProcesses() {
        // In order, so that threads of one name are numbered alike in every run.
        for pid in self.processes.keys.sorted() {
            if let stat = self.files.stat(pid) { self.processes[pid]?.take(stat, self.files) }
            self.processes[pid]?.readThreads(self.files, &self.names)
        }
    }

    // MARK: - Metrics

    private mutating func metrics(of index: Int, _ span: Int64) -> [Metric] {
        let label = self.servers[index].label
        let labels: Labels = ["process": label]
        let processes = self.processes.values.filter { $0.server == index }
        let used = self.servers[index].ended &+ processes.reduce(0) { $0 &+ $1.used }
        let increase = max(0, used - self.servers[index].last)
        self.servers[index].last = max(used, self.servers[index].last)
        let cores = Double(increase) / Double(span)
        let time = CounterReading(value: Double(increase) / 1e9, rate: cores)
        var metrics: [Metric] = []
        let isShown = span >= Self.shortest && self.servers[index].isRunning
        if isShown { metrics.append(Metric(.serverCPU, labels: labels, reading: .gauge(GaugeReading(value: cores)))) }
        metrics.append(Metric(.serverCPUTime, labels: labels, reading: .counter(time)))
        if isShown { metrics += self.threadMetrics(of: index, span, labels) }
        if let stopped = self.servers[index].quota?.take(), isShown {
            let share = GaugeReading(value: Double(stopped) / Double(span))
            metrics.append(Metric(.serverCPUThrottled, labels: labels, reading: .gauge(share)))
        }
        guard self.servers[index].isRunning else { return metrics }
        let memory: [(MetricDefinition, UInt64?)] = [
            (.serverMemory, self.memory(of: index)),
            (.serverMemoryIdle, self.servers[index].idleMemory),
            (.serverMemoryLimit, self.servers[index].memoryLimit),
        ]
        for (kind, bytes) in memory {
            guard let bytes else { continue }
            let reading = GaugeReading(value: Double(bytes))
            metrics.append(Metric(kind, labels: labels, reading: .gauge(reading)))
        }
        if let pid = self.first(of: index), let now = self.files.retransmitted(pid) {
            let more = Double(
                max(now, self.servers[index].retransmitted ?? now) - (self.servers[index].retransmitted ?? now)
            )
            self.servers[index].retransmitted = now
            let reading = CounterReading(value: more, rate: more / Double(span) * 1e9)
            metrics.append(Metric(.serverRetransmits, labels: labels, reading: .counter(reading)))
        }
        if let count = self.descriptors(of: index) {
            let reading = GaugeReading(value: Double(count))
            metrics.append(Metric(.serverDescriptors, labels: labels, reading: .gauge(reading)))
        }
        return metrics
    }

    /// The cores that the first server may use, by its affinity and by the quota of its control groups.
    package var cores: Double? {
        guard let pid = self.first(of: 0) else { return nil }
        let allowed = self.files.read("/proc/\(pid)/status").flatMap { HostFacts.cores(status: $0) }
        let quota = ControlGroup(of: "\(pid)", reading: self.files.read).cores
        // The mask may have bits of processors that are not there.
        return [allowed.map { Double(min($0, self.files.online)) }, quota].compactMap(\.self).min()
    }

    private func first(of index: Int) -> Int? { self.processes.filter { $0.value.server == index }.keys.min() }

    private mutating func threadMetrics(of index: Int, _ span: Int64, _ labels: Labels) -> [Metric] {
        var threads: [WatchedThread] = []
        for pid in self.processes.keys where self.processes[pid]?.server == index {
            threads += self.processes[pid]?.noteBusyThreads(span) ?? []
        }
        return self.servers[index].threadLabels.shares(of: threads, span).map { label, share in
            Metric(
                .serverThreadCPU,
                labels: labels.adding("thread", label),
                reading: .gauge(GaugeReading(value: share))
            )
        }
    }

    /// Resident memory of a server; `nil` if any of it is unknown.
    private func memory(of index: Int) -> UInt64? { self.sum(of: index) { self.files.residentBytes($0) } }

    private mutating func descriptors(of index: Int) -> UInt64? {
        self.servers[index].looksToCount -= 1
        guard self.servers[index].looksToCount <= 0 else { return nil }
        let count = self.sum(of: index) { self.files.descriptors($0).map { UInt64($0) } }
        if !self.files.countsDescriptors, let count, count > Self.manyDescriptors {
            self.servers[index].looksToCount = 10
        }
        return count
    }

    private func sum(of index: Int, _ value: (Int) -> UInt64?) -> UInt64? {
        var sum: UInt64 = 0
        var isEmpty = true
        for (pid, process) in self.processes where process.server == index {
            guard let value = value(pid) else { return nil }
            sum &+= value
            isEmpty = false
        }
        return isEmpty ? nil : sum
    }
}
