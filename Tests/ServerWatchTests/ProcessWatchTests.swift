import Measurement
import ServerWatch
import Synchronization
import Testing

@Suite("Watching processes")
struct ProcessWatchTests {
    private typealias Process = ScriptedProc.Process
    private typealias Thread = ScriptedProc.Thread

    static let second: Int64 = 1_000_000_000

    private static func broker(_ nanoseconds: Int64 = 5_000_000_000) -> Process {
        Process(name: "mosquitto", threads: [70: Thread(name: "mosquitto", nanoseconds: nanoseconds)])
    }

    @Test("counts CPU since the last look, in cores and seconds, without what was used before the watch")
    func cpu() throws {
        let proc = ScriptedProc([70: Self.broker()])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.change(70) { $0.threads[70]?.nanoseconds = 6_500_000_000 }
        let first = watch.look(at: 2 * Self.second)
        #expect(first.warnings.isEmpty)
        #expect(first.metrics.value("server_cpu", ["process": "mosquitto"]) == 0.75)
        let time = try #require(first.metrics.first { $0.name == "server_cpu_time" })
        #expect(time.unit == "seconds")
        #expect(time.counter == CounterReading(value: 1.5, rate: 0.75))
        let second = watch.look(at: 3 * Self.second).metrics
        #expect(second.value("server_cpu") == 0)
        #expect(second.value("server_cpu_time") == 0)
    }

    @Test("segments that TCP sent again in the server's network, and the cores that it may use")
    func network() throws {
        let proc = ScriptedProc([70: Self.broker()])
        func set(_ count: Int) {
            let text = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs OutRsts\nTcp: 900 \(count) 3\nUdp: X\nUdp: 1\n"
            proc.texts.withLock { $0["/proc/70/net/snmp"] = text }
        }
        set(40)
        proc.texts.withLock {
            $0["/proc/70/status"] = "Name:\tmosquitto\nCpus_allowed:\t3,00000101\nCpus_allowed_list:\t0\n"
        }
        var files = proc.files
        for (online, cores) in [(64, 4.0), (3, 3)] {
            files.online = online
            #expect(try ProcessWatch(["70"], at: 0, files: files).cores == cores)
        }
        var watch = try ProcessWatch(["70"], at: 0, files: files)
        set(47)
        #expect(watch.look(at: Self.second).metrics.value("server_tcp_retransmits") == 7)
        // A smaller count is another network's.
        set(3)
        #expect(watch.look(at: 2 * Self.second).metrics.value("server_tcp_retransmits") == 0)
        proc.texts.withLock { $0["/proc/70/net/snmp"] = "Tcp: RetransSegs\nTcp: many\n" }
        #expect(watch.look(at: 3 * Self.second).metrics.value("server_tcp_retransmits") == nil)
    }

    @Test("by the name of the process or the file name of its program: all of that name, never this program")
    func byName() throws {
        let proc = ScriptedProc([
            10: Process(name: "nginx", threads: [10: Thread(name: "nginx", nanoseconds: 1)]),
            20: Process(
                name: "renamed",
                arguments: "/usr/sbin/nginx\0-g\0",
                threads: [20: Thread(name: "renamed", nanoseconds: 1)]
            ),
            30: Process(
                name: "sh",
                arguments: "sh\0/usr/sbin/nginx",
                threads: [30: Thread(name: "sh", nanoseconds: 1)]
            ),
            5_000: Process(
                name: "nginx",
                parent: ScriptedProc.own,
                threads: [5_000: Thread(name: "nginx", nanoseconds: 1)]
            ),
        ])
        var watch = try ProcessWatch(["nginx"], at: 0, files: proc.files)
        for (pid, time) in [10: 100, 20: 200, 30: 400, 5_000: 800] as [Int: Int64] {
            proc.change(pid) { $0.threads[pid]?.nanoseconds = 1 + time * 1_000_000 }
        }
        let metrics = watch.look(at: Self.second).metrics
        #expect(metrics.value("server_cpu", ["process": "nginx"]) == 0.3)
        #expect(throws: ProcessWatchError.noSuchProcess("clamor")) {
            try ProcessWatch(["clamor"], at: 0, files: proc.files)
        }
    }

    @Test("names the processes that it has found, with children")
    func found() throws {
        let proc = ScriptedProc([70: Self.broker(), 71: Self.broker()])
        #expect(try ProcessWatch(["70"], at: 0, files: proc.files).found == ["mosquitto: process 70"])
        #expect(
            try ProcessWatch(["mosquitto"], at: 0, files: proc.files).found == ["mosquitto: 2 processes, 70 and 71"]
        )
        for pid in 100...109 {
            proc[pid] = Process(name: "worker", parent: 70, threads: [pid: Thread(name: "worker", nanoseconds: 9)])
        }
        let numbers = "70, 71, 100, 101, 102, 103, 104, 105"
        #expect(
            try ProcessWatch(["mosquitto"], at: 0, files: proc.files).found
                == ["mosquitto: 12 processes, \(numbers) and 4 more"]
        )
    }

    @Test("names what cannot be watched, in one line")
    func errors() throws {
        let proc = ScriptedProc([70: Self.broker(), 71: Process(name: "sleep", state: "Z", threads: [:])])
        func error(_ wanted: String...) -> ProcessWatchError? {
            do throws(ProcessWatchError) {
                _ = try ProcessWatch(wanted, at: 0, files: proc.files)
                return nil
            } catch {
                #expect(!error.description.isEmpty && !error.description.contains("\n"))
                return error
            }
        }
        #expect(error("70") == nil)
        #expect(error("72") == .noSuchProcess("72"))
        #expect(error("71") == .noSuchProcess("71"))
        #expect(error("emqx") == .noSuchProcess("emqx"))
        #expect(error("\(ScriptedProc.own)") == .ownProcess("\(ScriptedProc.own)"))
        #expect(error("70", "mosquitto") == .alreadyWatched("mosquitto"))
        #expect(error("mosquitto", "70") == .alreadyWatched("70"))
        var files = proc.files
        let read = files.read
        files.read = { $0 == "/proc/70/stat" ? nil : read($0) }
        #expect(throws: ProcessWatchError.notPermitted("70")) { try ProcessWatch(["70"], at: 0, files: files) }
        files.list = { _ in nil }
        #expect(throws: ProcessWatchError.noProcFiles) { try ProcessWatch(["70"], at: 0, files: files) }
    }

    @Test("includes children and theirs, also later ones; a process that ends keeps what it had used")
    func children() throws {
        let proc = ScriptedProc([
            70: Self.broker(),
            // A lower number than its parent's.
            60: Process(name: "worker", parent: 70, threads: [60: Thread(name: "worker", nanoseconds: 9)]),
            90: Process(name: "other", parent: 1, threads: [90: Thread(name: "other", nanoseconds: 9)]),
        ])
        var watch = try ProcessWatch(["mosquitto"], at: 0, files: proc.files)
        proc[61] = Process(name: "worker", parent: 60, threads: [61: Thread(name: "worker", nanoseconds: 300_000_000)])
        proc.change(90) { $0.threads[90]?.nanoseconds = 900_000_000 }
        #expect(watch.look(at: Self.second).metrics.value("server_cpu_time") == 0.3)
        // Its parent inherits what the kernel knows of it, and the watch keeps what it saw.
        proc[61] = nil
        proc.change(60) { $0.threads[60]?.nanoseconds = 200_000_009 }
        let last = watch.look(at: 2 * Self.second)
        #expect(last.metrics.value("server_cpu_time") == 0.2)
        #expect(last.warnings.isEmpty)
    }

    @Test("a number that another process has taken is not the server")
    func reuse() throws {
        let proc = ScriptedProc([70: Self.broker()])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc[70] = Process(
            name: "cc1",
            started: 999,
            threads: [70: Thread(name: "cc1", nanoseconds: 30_000_000_000)]
        )
        let look = watch.look(at: Self.second)
        #expect(look.metrics.map(\.name) == ["server_cpu_time"])
        #expect(look.metrics.value("server_cpu_time") == 0)
        #expect(look.warnings == ["70: the process has ended; its metrics end with it"])
        #expect(watch.look(at: 2 * Self.second).metrics.isEmpty)
    }

    @Test("a server that ends is reported once, its metrics stop, and its last seconds count while it is a zombie")
    func end() throws {
        let proc = ScriptedProc([70: Self.broker(5_000_000_000)])
        var watch = try ProcessWatch(["mosquitto"], at: 0, files: proc.files)
        proc.change(70) { process in
            process.state = "Z"
            process.threads = [:]
            process.extraTicks = 540
            process.pages = 0
        }
        let last = watch.look(at: Self.second)
        #expect(last.metrics.map(\.name) == ["server_cpu_time"])
        #expect(last.metrics.value("server_cpu_time") == 0.4)
        #expect(
            last.warnings == [
                "mosquitto: the process has ended; its metrics are absent until a process of that name "
                    + "runs again"
            ]
        )
        proc[70] = nil
        let after = watch.look(at: 2 * Self.second)
        #expect(after.metrics.isEmpty && after.warnings.isEmpty)
        // A server of that name that starts again continues its metrics.
        proc[88] = Process(
            name: "mosquitto",
            started: 500,
            threads: [88: Thread(name: "mosquitto", nanoseconds: 100_000_000)]
        )
        #expect(watch.look(at: 3 * Self.second).metrics.value("server_cpu") == 0.1)
    }

    @Test("threads by name, numbered where names repeat, the busiest first, at most 16, none that ever idled")
    func threads() throws {
        var threads: [Int: Thread] = [70: Thread(name: "beam.smp", nanoseconds: 1)]
        for id in 71..<91 { threads[id] = Thread(name: "sched", nanoseconds: 0) }
        let proc = ScriptedProc([70: Process(name: "beam.smp", threads: threads)])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.change(70) { process in
            process.threads[71]?.nanoseconds = 20_000_000
            process.threads[73]?.nanoseconds = 700_000_000
            process.threads[74]?.nanoseconds = 9_999_999
        }
        let first = watch.look(at: Self.second).metrics
        #expect(first.labels("thread", of: "server_thread_cpu") == ["sched 3", "sched"])
        #expect(first.value("server_thread_cpu", ["process": "beam.smp", "thread": "sched 3"]) == 0.7)
        // Once busy, always shown.
        let second = watch.look(at: 2 * Self.second).metrics
        #expect(second.value("server_thread_cpu", ["thread": "sched"]) == 0)
        proc.change(70) { process in
            for id in 71..<91 { process.threads[id]?.nanoseconds = 800_000_000 + Int64(id) }
        }
        let third = watch.look(at: 3 * Self.second).metrics
        #expect(third.labels("thread", of: "server_thread_cpu").count == 16)
        #expect(third.labels("thread", of: "server_thread_cpu").first == "sched 20")
    }

    @Test("a thread that is named after its start, that ends, or whose number is used again")
    func threadLives() throws {
        let proc = ScriptedProc([70: Self.broker(1)])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.change(70) { $0.threads[71] = Thread(name: "mosquitto", nanoseconds: 100_000_000) }
        var metrics = watch.look(at: Self.second).metrics
        #expect(metrics.labels("thread", of: "server_thread_cpu") == ["mosquitto 2"])
        proc.change(70) { $0.threads[71] = Thread(name: "io", nanoseconds: 300_000_000) }
        metrics = watch.look(at: 2 * Self.second).metrics
        #expect(metrics.value("server_thread_cpu", ["thread": "io"]) == 0.2)
        proc.change(70) { $0.threads[71] = Thread(name: "io", nanoseconds: 50_000_000) }
        metrics = watch.look(at: 3 * Self.second).metrics
        #expect(metrics.value("server_thread_cpu", ["thread": "io 2"]) == 0.05)
        #expect(metrics.value("server_cpu_time") == 0.05)
        // Only the process's ticks know what threads used between two looks.
        proc.change(70) { process in
            process.threads[71] = nil
            process.extraTicks = 60
        }
        metrics = watch.look(at: 4 * Self.second).metrics
        #expect(abs((metrics.value("server_cpu_time") ?? 0) - 0.25) < 1e-6)
    }

    @Test("a kernel that does not count nanoseconds: clock ticks")
    func ticks() throws {
        let proc = ScriptedProc([
            70: Process(name: "mosquitto", threads: [70: Thread(name: "mosquitto", nanoseconds: nil, ticks: 500)])
        ])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.change(70) { $0.threads[70]?.ticks = 525 }
        let metrics = watch.look(at: Self.second).metrics
        #expect(metrics.value("server_cpu") == 0.25)
        #expect(metrics.value("server_thread_cpu", ["thread": "mosquitto"]) == 0.25)
    }

    @Test("memory and descriptors over all processes of the server; absent if one cannot be read")
    func memory() throws {
        let proc = ScriptedProc([
            70: Self.broker(),
            71: Process(name: "child", parent: 70, threads: [71: Thread(name: "child", nanoseconds: 1)]),
        ])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        let page = try #require(ProcessFacts.residentBytes(statm: "1 1 1"))
        let metrics = watch.look(at: Self.second).metrics
        #expect(metrics.value("server_memory_bytes") == Double(20 * page))
        #expect(metrics.first { $0.name == "server_memory_bytes" }?.unit == "bytes")
        #expect(metrics.value("server_descriptors") == 6)
        proc.change(71) { process in
            process.descriptors = nil
            process.pages = nil
        }
        let later = watch.look(at: 2 * Self.second).metrics
        #expect(later.value("server_memory_bytes") == nil)
        #expect(later.value("server_descriptors") == nil)
        #expect(later.value("server_memory_idle_bytes") == Double(20 * page))
    }

    @Test("what its control group allows: for how long the CPU quota stopped it, and the limit of its memory")
    func controlGroup() throws {
        let proc = ScriptedProc([70: Self.broker()])
        let free = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.texts.withLock {
            $0 = [
                "/proc/70/cgroup": "0::/server\n",
                "/sys/fs/cgroup/server/cpu.stat": "usage_usec 9\nthrottled_usec 1000\n",
                "/sys/fs/cgroup/server/memory.max": "2000000\n",
            ]
        }
        var watches = [free, try ProcessWatch(["70"], at: 0, files: proc.files)]
        proc.texts.withLock { $0["/sys/fs/cgroup/server/cpu.stat"] = "usage_usec 9\nthrottled_usec 301000\n" }
        let allowed: [(Double?, Double?)] = [(nil, nil), (0.15, 2_000_000)]
        for (index, expected) in allowed.enumerated() {
            let metrics = watches[index].look(at: 2 * Self.second).metrics
            #expect(metrics.value("server_cpu_throttled", ["process": "mosquitto"]) == expected.0)
            #expect(metrics.value("server_memory_limit_bytes", ["process": "mosquitto"]) == expected.1)
        }
    }

    @Test("where the kernel does not keep their number, many descriptors are counted in one look of ten")
    func manyDescriptors() throws {
        let proc = ScriptedProc([70: Self.broker()])
        proc.change(70) { $0.descriptors = 5_001 }
        for isKept in [true, false] {
            var files = proc.files
            files.countsDescriptors = isKept
            var watch = try ProcessWatch(["70"], at: 0, files: files)
            let counts = (1...20).map { look in
                watch.look(at: Int64(look) * Self.second).metrics.value("server_descriptors")
            }
            #expect(counts.compactMap(\.self).count == (isKept ? 20 : 2))
            #expect(counts.compactMap(\.self).allSatisfy { $0 == 5_001 })
        }
    }

    @Test("shares of less than half a second are absent, and counters go on")
    func shortInterval() throws {
        let proc = ScriptedProc([70: Self.broker(1)])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.change(70) { $0.threads[70]?.nanoseconds = 100_000_001 }
        let short = watch.look(at: 200_000_000).metrics
        #expect(!short.contains { $0.name == "server_cpu" || $0.name == "server_thread_cpu" })
        #expect(short.value("server_cpu_time") == 0.1)
        #expect(watch.look(at: 200_000_000).metrics.isEmpty)
    }

    @Test("two servers of one name have different labels, and names are safe in a label")
    func names() throws {
        let proc = ScriptedProc([
            70: Self.broker(), 71: Self.broker(),
            72: Process(name: "a;b=)\n(c", threads: [72: Thread(name: ") 1 (", nanoseconds: 1)]),
        ])
        proc.change(71) { $0.threads = [71: Thread(name: "mosquitto", nanoseconds: 1)] }
        var watch = try ProcessWatch(["70", "71", "72"], at: 0, files: proc.files)
        proc.change(72) { $0.threads[72]?.nanoseconds = 500_000_001 }
        let metrics = watch.look(at: Self.second).metrics
        #expect(metrics.labels("process", of: "server_cpu") == ["mosquitto", "mosquitto 2", "a_b=)_(c"])
        #expect(metrics.labels("thread", of: "server_thread_cpu") == [") 1 ("])
        for metric in metrics { #expect(Labels(parsing: metric.labels.description) == metric.labels) }
    }
}
