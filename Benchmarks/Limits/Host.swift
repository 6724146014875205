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
    /// Processes that wanted a core when it began.
    let loadAverage: Double

    static func read(_ laboratory: Laboratory) -> Host {
        let load = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8))?.split(separator: " ").first
        let revision = Self.line("git", "rev-parse", "--short", "HEAD") ?? "unknown"
        // What the run itself writes is no change of the source.
        let isChanged = Self.line("git", "status", "--porcelain", "--", ".", ":!results") != nil
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withFullDate]
        return Host(
            facts: .read(),
            cores: Core.allowed.count,
            mosquitto: Self.line(laboratory.mosquitto, "-h")?.replacing("mosquitto version ", with: "") ?? "unknown",
            swift: Self.line("swift", "--version") ?? "unknown",
            revision: isChanged ? "\(revision) with changes" : revision,
            date: formatter.string(from: Date()),
            loadAverage: load.flatMap { Double($0) } ?? 0
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
        return [
            ("CPU", "\(self.facts.cpuModel ?? "unknown"), \(self.cores) cores\(virtual)"),
            ("memory", "\(gib.short) GiB"),
            ("system", "\(self.facts.operatingSystem ?? "unknown"), \(self.facts.kernel ?? "unknown")"),
            ("mosquitto", self.mosquitto),
            ("Swift", self.swift),
            ("revision", self.revision),
            ("date", self.date),
            ("load average at the start", self.loadAverage.short),
        ]
    }

    var text: String { self.lines.map { "\($0.0): \($0.1)" }.joined(separator: "\n") }

    var markdown: String {
        let rows = self.lines.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n")
        return "| host | |\n| --- | --- |\n" + rows + (self.warning.map { "\n\nNote: \($0)" } ?? "")
    }

    /// Two cores are used to the full: whoever else wants one is in the figures.
    var warning: String? {
        guard self.loadAverage > 0.5 else { return nil }
        return "other work was on this machine when it began (load average \(self.loadAverage.short))."
    }
}
