import Measurement
import ServerWatch
import TestSupport
import Testing

extension ProcessWatchTests {
    @Test("a real server: a process that is busy, found by its number")
    func real() throws {
        let program = try RunningProgram("/bin/sh", ["-c", "while :; do :; done"])
        defer { program.send(9) }
        // A child of the tests is no server, unless another process watches.
        #expect(throws: ProcessWatchError.ownProcess("\(program.pid)")) {
            try ProcessWatch(["\(program.pid)"], at: 0)
        }
        var files = ProcessFiles.system
        files.ownProcess = .max
        var watch = try ProcessWatch(["\(program.pid)"], at: 0, files: files)
        // Virtual seconds: the process has run for as long as these looks take.
        var used = 0.0
        var second: Int64 = 0
        while used == 0, !program.hasEnded {
            second += Self.second
            let metrics = watch.look(at: second).metrics
            used += metrics.value("server_cpu_time") ?? 0
            #expect((metrics.value("server_memory_bytes") ?? 0) > 0)
            #expect((metrics.value("server_descriptors") ?? 0) > 0)
        }
        #expect(used > 0)
    }
}
