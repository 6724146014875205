import Measurement

struct WatchedThread {
    var name: String
    /// The name, with a number after it if an earlier thread has the same name; `nil` if no label was left.
    var label: String?
    /// Nanoseconds of CPU since its start.
    var time: Int64
    /// Nanoseconds of CPU since the watch began.
    var used: Int64 = 0
    /// Nanoseconds of CPU since the last look.
    var latest: Int64 = 0
    /// Whether it ever used enough to be reported.
    var isBusy = false
    /// Programs name a thread just after its start, so the name is read twice.
    var isNamed = false

    /// The share of a core since the last look.
    func share(_ span: Int64) -> Double { Double(self.latest) / Double(span) }
}

struct WatchedProcess {
    let pid: Int
    let started: UInt64
    /// The place of its server.
    let server: Int
    /// Nanoseconds of CPU before the watch began.
    private(set) var before: Int64 = 0
    /// Nanoseconds of CPU since the start of the process; never falls.
    private(set) var time: Int64 = 0
    var threads: [Int: WatchedThread] = [:]
    /// Nanoseconds of CPU of threads that have ended.
    private var endedThreads: Int64 = 0
    /// Whether the times of threads are read from `schedstat`, or by clock ticks.
    private let countsNanoseconds: Bool

    init(_ pid: Int, _ stat: ProcStat, server: Int, files: ProcessFiles) {
        self.pid = pid
        self.started = stat.started
        self.server = server
        // The first thread has run, so 0 means a kernel that does not count.
        self.countsNanoseconds = (files.threadTime(pid, pid) ?? 0) > 0
    }

    /// Nanoseconds of CPU since the watch began.
    var used: Int64 { self.time - self.before }

    /// Counts the CPU used so far as used before the watch.
    mutating func beginHere() {
        self.before = self.time
        for thread in self.threads.keys {
            self.threads[thread]?.used = 0
            self.threads[thread]?.latest = 0
        }
    }

    /// Takes the total of the process, by clock ticks.
    ///
    /// The sum over threads misses threads that ended between two looks, and ticks miss the last 10 ms: neither is too
    /// high, so the higher one is the better.
    mutating func take(_ stat: ProcStat, _ files: ProcessFiles) { self.time = max(self.time, files.time(stat)) }

    /// Marks the threads that ever used enough to be reported, and returns all threads.
    mutating func noteBusyThreads(_ span: Int64) -> [WatchedThread] {
        for (id, thread) in self.threads where !thread.isBusy && thread.share(span) >= ThreadLabels.busy {
            self.threads[id]?.isBusy = true
        }
        return Array(self.threads.values)
    }

    mutating func readThreads(_ files: ProcessFiles, _ names: inout ThreadNames) {
        var living: [Int: WatchedThread] = [:]
        var sum: Int64 = 0
        for id in files.threads(self.pid) {
            let known = self.threads[id]
            let stat = self.countsNanoseconds && known?.isNamed ?? false ? nil : self.threadStat(id, files)
            let time = self.countsNanoseconds ? files.threadTime(self.pid, id) : stat.map { files.time($0) }
            guard let time else { continue }
            var thread: WatchedThread
            if let known, known.time <= time {
                self.threads[id] = nil
                thread = known
                thread.isNamed = true
                if let name = stat?.name, name != known.name {
                    thread.name = name
                    thread.label = names.label(name, server: self.server)
                }
            } else {
                // A number whose time falls is another thread's now.
                guard let name = stat?.name ?? self.threadStat(id, files)?.name else { continue }
                thread = WatchedThread(name: name, label: names.label(name, server: self.server), time: 0)
            }
            thread.latest = time - thread.time
            thread.used += thread.latest
            thread.time = time
            living[id] = thread
            sum &+= time
        }
        for thread in self.threads.values { self.endedThreads &+= thread.time }
        self.threads = living
        self.time = max(self.time, self.endedThreads &+ sum)
    }

    private func threadStat(_ thread: Int, _ files: ProcessFiles) -> ProcStat? {
        files.read("/proc/\(self.pid)/task/\(thread)/stat").flatMap { ProcStat($0) }
    }
}
