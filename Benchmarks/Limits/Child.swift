// The compiler holds it for the one that defines `timespec`, once a module is imported that SQLite comes with.
import CoreFoundation
import Foundation
import Glibc

/// A process that is bound to one core and billed by the kernel.
final class Child {
    /// The result of the process after its end.
    struct Ending {
        let status: Int32
        /// User and system, from `wait4`: the whole process, its start and end included.
        let cpuSeconds: Double
        /// How often it slept until something woke it.
        let wakeUps: Int
        let wallSeconds: Double
        let output: String
        let errors: String

        var lastLine: String { String(self.output.split(separator: "\n").last ?? "") }
    }

    let identifier: pid_t
    let command: [String]
    private let started = Date()
    private let outputFile: String
    private let errorFile: String

    /// Starts it; `input` is what it reads, `preload` a library that stands before all others.
    init(
        _ command: [String],
        core: Int,
        directory: String,
        name: String,
        input: Int32? = nil,
        preload: String? = nil
    ) throws {
        self.command = command
        self.outputFile = "\(directory)/\(name).out"
        self.errorFile = "\(directory)/\(name).err"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_addopen(&actions, 1, self.outputFile, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        posix_spawn_file_actions_addopen(&actions, 2, self.errorFile, O_WRONLY | O_CREAT | O_TRUNC, 0o644)

        var variables = ProcessInfo.processInfo.environment
        if let preload { variables["LD_PRELOAD"] = preload }
        // It becomes the command, under the same number.
        let bound = ["taskset", "-c", "\(core)"] + command
        let argv: [UnsafeMutablePointer<CChar>?] = bound.map { strdup($0) } + [nil]
        let environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + environment { free(text) } }
        var identifier: pid_t = 0
        let failure = posix_spawnp(&identifier, bound[0], &actions, nil, argv, environment)
        guard failure == 0 else { throw Refusal("\(bound[0]): \(String(cString: strerror(failure)))") }
        self.identifier = identifier
    }

    var output: String { (try? String(contentsOfFile: self.outputFile, encoding: .utf8)) ?? "" }

    func signal(_ number: Int32) { kill(self.identifier, number) }

    /// Waits for its end; kills it when that takes longer than `limit` seconds.
    func wait(limit: Double) throws -> Ending {
        let alarm = DispatchWorkItem { [identifier] in _ = kill(identifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + limit, execute: alarm)
        var info = siginfo_t()
        // It is not reaped yet: its number is still its own when the alarm strikes.
        while waitid(P_PID, id_t(self.identifier), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        let wall = Date().timeIntervalSince(self.started)
        alarm.cancel()
        var status: Int32 = 0
        var usage = rusage()
        while wait4(self.identifier, &status, 0, &usage) < 0, errno == EINTR {}
        let errors = (try? String(contentsOfFile: self.errorFile, encoding: .utf8)) ?? ""
        guard status & 0x7F == 0 else {
            throw Mismatch("\(self.command.joined(separator: " ")): ended by signal \(status & 0x7F)")
        }
        return Ending(
            status: status >> 8 & 0xFF,
            cpuSeconds: Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime),
            wakeUps: usage.ru_nvcsw,
            wallSeconds: wall,
            output: self.output,
            errors: errors
        )
    }

    /// CPU seconds so far, from its own CPU clock.
    func cpuSeconds() throws -> Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(self.identifier, &clock) == 0, clock_gettime(clock, &time) == 0 else {
            throw Mismatch("\(self.command.joined(separator: " ")): gone before it was sampled")
        }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    func residentBytes() throws -> Double {
        let text = try String(contentsOfFile: "/proc/\(self.identifier)/statm", encoding: .utf8)
        let pages = text.split(separator: " ").compactMap { Double($0) }
        guard pages.count > 1, pages[1] > 0 else {
            throw Mismatch("\(self.command.joined(separator: " ")): gone before it was sampled")
        }
        return pages[1] * Double(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}

/// The cores this process may use.
enum Core {
    static let allowed: [Int] = {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") } ?? ""
        // Numbers and ranges, as 0-3,8.
        return line.split(separator: "\t").last?.split(separator: ",").flatMap { part in
            let ends = part.split(separator: "-").compactMap { Int($0) }
            return ends.isEmpty ? [] : Array(ends[0]...ends[ends.count - 1])
        } ?? []
    }()
}
