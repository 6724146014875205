import Foundation
import Measurement

/// Where the figures were taken.
struct Host: Codable {
    let facts: HostFacts
    let cores: Int
    let mosquitto: String
    let swift: String
    let revision: String
    let date: String
    /// Of the cores' time, what others used in the two seconds before the first run.
    let busyBefore: Double?
    /// Of the cores' time, what the hypervisor gave to others while it ran.
    var stolen: Double?

    static func read(_ laboratory: Laboratory) -> Host {
        let revision = Self.line("git", "rev-parse", "--short", "HEAD") ?? "unknown"
        // Files that the run itself writes do not count as changes of the source.
        let isChanged = Self.line("git", "status", "--porcelain", "--", ".", ":!results") != nil
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withFullDate]
        let before = CPUSample.read()
        sleep(2)
        let idle = before.flatMap { CPUSample.read()?.idleShare(since: $0) }
        return Host(
            facts: .read(),
            cores: Core.allowed.count,
            mosquitto: Self.line(laboratory.mosquitto, "-h")?.replacing("mosquitto version ", with: "") ?? "unknown",
            swift: Self.line("swift", "--version") ?? "unknown",
            revision: isChanged ? "\(revision) with changes" : revision,
            date: formatter.string(from: Date()),
            busyBefore: idle.map { 1 - $0 }
        )
    }

    /// The first line that a program prints.
    private static func line(_ command: String...) -> String? {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(separator: "\n").first.map(String.init)
    }

    private var lines: [(String, String)] {
        let gib = (self.facts.memoryBytes.map { Double($0) } ?? 0) / 1_073_741_824
        let virtual = self.facts.isVirtual == true ? ", virtual" : ""
        func percent(_ share: Double?) -> String { share.map { "\(($0 * 100).short) %" } ?? "unknown" }
        return [
            ("CPU", "\(self.facts.cpuModel ?? "unknown"), \(self.cores) cores\(virtual)"),
            ("memory", "\(gib.short) GiB"),
            ("system", "\(self.facts.operatingSystem ?? "unknown"), \(self.facts.kernel ?? "unknown")"),
            ("mosquitto", self.mosquitto),
            ("Swift", self.swift),
            ("revision", self.revision),
            ("date", self.date),
            ("CPU in use before it began", percent(self.busyBefore)),
            ("CPU stolen by others on the same hardware while it ran", percent(self.stolen)),
        ]
    }

    /// The facts known at the beginning.
    var text: String { self.lines.dropLast().map { "\($0.0): \($0.1)" }.joined(separator: "\n") }

    var markdown: String {
        let rows = self.lines.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n")
        return "| host | |\n| --- | --- |\n" + rows + (self.warning.map { "\n\nNote: \($0)" } ?? "")
    }

    /// Two cores are fully used: other work on the host affects the figures.
    var warning: String? {
        guard let busyBefore, busyBefore > 0.05 else { return nil }
        return "other work was on this machine when it began (\((busyBefore * 100).short) % of its cores)."
    }
}
