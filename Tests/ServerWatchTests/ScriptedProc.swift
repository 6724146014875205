import Measurement
import ServerWatch
import Synchronization

/// A /proc of a test, with clock ticks of 10 ms.
final class ScriptedProc: Sendable {
    struct Thread {
        var name: String
        /// `nil`: the kernel does not count nanoseconds.
        var nanoseconds: Int64?
        var ticks: Int64 = 0
    }

    struct Process {
        var name: String
        var parent = 1
        var arguments: String?
        var state = "S"
        var started = 100
        /// Of threads that are gone.
        var extraTicks: Int64 = 0
        var pages: UInt64? = 10
        var descriptors: Int? = 3
        var threads: [Int: Thread]
    }

    static let own = 4_000
    private let processes: Mutex<[Int: Process]>
    /// Other files, such as those of control groups, by their paths.
    let texts = Mutex<[String: String]>([:])

    init(_ processes: [Int: Process]) {
        let own = Process(name: "clamor", threads: [Self.own: Thread(name: "clamor", nanoseconds: 1)])
        self.processes = Mutex(processes.merging([Self.own: own]) { first, _ in first })
    }

    subscript(pid: Int) -> Process? {
        get { self.processes.withLock { $0[pid] } }
        set { self.processes.withLock { $0[pid] = newValue } }
    }

    func change(_ pid: Int, _ body: (inout sending Process) -> Void) {
        self.processes.withLock { processes in
            guard var process = processes[pid] else { return }
            body(&process)
            processes[pid] = process
        }
    }

    var files: ProcessFiles {
        ProcessFiles(
            read: { self.read($0) },
            list: { self.list($0) },
            descriptors: { self[$0]?.descriptors },
            ownProcess: Self.own,
            tickNanoseconds: 10_000_000
        )
    }

    private func list(_ path: String) -> [String]? {
        let parts = path.split(separator: "/")
        if parts == ["proc"] { return self.processes.withLock { $0.keys.map(String.init) } + ["self", "meminfo"] }
        return self[Int(parts[1]) ?? 0]?.threads.keys.map(String.init)
    }

    private func read(_ path: String) -> String? {
        if let text = self.texts.withLock({ $0[path] }) { return text }
        let parts = path.split(separator: "/").map(String.init)
        guard let pid = Int(parts[1]), let process = self[pid] else { return nil }
        let ticks = process.threads.values.reduce(process.extraTicks) {
            $0 + ($1.nanoseconds ?? 0) / 10_000_000 + $1.ticks
        }
        switch (parts[2], parts.last) {
        case ("stat", _): return Self.stat(pid, process.name, process, ticks)
        case ("cmdline", _): return process.arguments
        case ("statm", _): return process.pages.map { "999 \($0) 3 1 0 4 0\n" }
        case ("task", "schedstat"):
            let thread = process.threads[Int(parts[3]) ?? 0]
            return thread.flatMap { $0.nanoseconds.map { "\($0) 77 5\n" } ?? "0 0 0\n" }
        case ("task", "stat"):
            guard let id = Int(parts[3]), let thread = process.threads[id] else { return nil }
            return Self.stat(id, thread.name, process, (thread.nanoseconds ?? 0) / 10_000_000 + thread.ticks)
        default: return nil
        }
    }

    private static func stat(_ id: Int, _ name: String, _ process: Process, _ ticks: Int64) -> String {
        "\(id) (\(name)) \(process.state) \(process.parent) 1 1 0 -1 4194304 1 2 3 4 \(ticks - ticks / 3) \(ticks / 3)"
            + " 9 9 20 0 \(process.threads.count) 0 \(process.started) 1 2 18446744073709551615 0\n"
    }
}

extension [Metric] {
    /// The value of a gauge or counter; `nil` if there is none.
    func value(_ name: String, _ labels: Labels = [:]) -> Double? {
        let all = self.filter { $0.name == name && $0.labels.contains(labels) }
        guard all.count == 1 else { return nil }
        return all[0].gauge?.value ?? all[0].counter?.value
    }

    /// The values of one label of a metric, in the metrics' order.
    func labels(_ key: String, of name: String) -> [String] {
        self.filter { $0.name == name }.compactMap { $0.labels[key] }
    }
}
