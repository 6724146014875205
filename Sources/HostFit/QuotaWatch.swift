import Measurement

/// How long the CPU quota of a control group stopped its tasks, from look to look.
///
/// The kernel adds the time up over all cores on which the group had work, so it may exceed the time that passed.
package struct QuotaWatch: Sendable {
    private let read: @Sendable (String) -> String?
    /// `cpu.stat` of the process's own group and of all its ancestors: the quota of each stops it.
    private let files: [String]
    private var last: [UInt64?]

    /// - Parameter read: returns the text of a file.
    package init(reading read: @escaping @Sendable (String) -> String? = { ProcFile.read($0) }) {
        self.read = read
        self.files = ControlGroup.folders(read).compactMap { folder in
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
