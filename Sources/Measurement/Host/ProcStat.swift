/// The fields of /proc/PID/stat, or of /proc/PID/task/TID/stat, that identify a task and its use of CPU (proc(5)).
package struct ProcStat: Hashable, Sendable {
    /// The `comm` of the task, at most 15 bytes.
    package var name: String
    /// "R", "S", "Z" and others.
    package var state: String
    package var parent: Int
    /// User and system time in clock ticks, of all threads that a process ever had.
    package var cpuTicks: UInt64
    package var threads: UInt64
    /// Clock ticks from boot to the start of the task.
    ///
    /// A task with the same number at another time has another value.
    package var started: UInt64
}

extension ProcStat {
    /// Parses `7 (name) S 1 ...`; `nil` for any other text.
    ///
    /// A name may contain blanks and parentheses, so it ends at the last closing one.
    package init?(_ text: String) {
        let bytes = text.utf8
        guard let open = bytes.firstIndex(of: UInt8(ascii: "(")), let close = bytes.lastIndex(of: UInt8(ascii: ")")),
            open < close
        else { return nil }
        // Field 3 is the first one behind the name.
        let fields = bytes[bytes.index(after: close)...].split {
            $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n")
        }
        guard fields.count >= 20 else { return nil }
        func number(_ field: Int) -> UInt64? { UInt64(Substring(fields[field - 3])) }
        guard let parent = number(4), let user = number(14), let system = number(15), let threads = number(20),
            let started = number(22)
        else { return nil }
        let ticks = user.addingReportingOverflow(system)
        guard !ticks.overflow, let parent = Int(exactly: parent) else { return nil }
        self.init(
            name: String(Substring(bytes[bytes.index(after: open)..<close])),
            state: String(Substring(fields[0])),
            parent: parent,
            cpuTicks: ticks.partialValue,
            threads: threads,
            started: started
        )
    }

    /// Whether no thread of the process runs any more; its parent has not asked for its status yet.
    package var hasEnded: Bool { (self.state == "Z" || self.state == "X") && self.threads <= 1 }
}
