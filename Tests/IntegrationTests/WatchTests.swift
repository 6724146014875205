import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("The server on the run's time line", .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"))
    struct WatchTests {
        private func gauge(_ name: String, _ record: RunRecord) -> GaugeReading? {
            record.metrics.first { $0.name == name }?.gauge
        }

        @Test("a watched broker has CPU, memory, descriptors, and a cost per message and connection")
        func process() async throws {
            let run = try await Mosquitto.with { broker in
                try await ClamorRun.of(
                    "pubsub -p \(broker.port) -c 20 -q 1 -s 64 --rate 2000/s --duration 3s --server-name on --watch-pid \(broker.program.pid)",
                    "--threshold",
                    "server_cpu_per_message < 1s"
                )
            }
            #expect(run.status == 0)
            // 40 clients and the broker's own.
            #expect(try #require(self.gauge("server_descriptors", run.record)?.max) > 40)
            #expect(try #require(self.gauge("server_memory_bytes", run.record)?.max) > 1_000_000)
            let time = try #require(run.record.metrics.first { $0.name == "server_cpu_time" }?.counter)
            let messages = ["publish_sent", "received"].map { name in
                run.record.metrics.filter { $0.name == name }.compactMap(\.counter?.rate).reduce(0, +)
            }
            let each = try #require(self.gauge("server_cpu_per_message", run.record)?.value)
            #expect(abs(each - (time.rate ?? 0) / messages.reduce(0, +)) < 1e-9)
            #expect(each > 0)
            #expect(run.record.servers?.map(\.product) == ["mosquitto"])
            #expect(run.record.servers?.first?.version?.first?.isNumber == true)
            #expect(run.ending.output.contains("mosquitto"))
        }

        @Test("of several segments the first one watches, and the cost is that of all messages")
        func segments() async throws {
            let run = try await Mosquitto.with { broker in
                try await ClamorRun.of(
                    "pubsub -p \(broker.port) -c 20 -q 1 -s 64 --rate 1000/s --duration 2s --server-name on --processes 2 --watch-pid \(broker.program.pid)",
                    "--threshold",
                    "server_cpu_per_message < 1s"
                )
            }
            #expect(run.status == 0)
            let time = try #require(run.record.metrics.first { $0.name == "server_cpu_time" }?.counter?.rate)
            let messages = ["publish_sent", "received"].map { name in
                run.record.metrics.filter { $0.name == name }.compactMap(\.counter?.rate).reduce(0, +)
            }
            let each = try #require(self.gauge("server_cpu_per_message", run.record)?.value)
            #expect(abs(each - time / messages.reduce(0, +)) < 1e-9)
            #expect(run.record.servers?.map(\.product) == ["mosquitto"])
        }

        @Test("a process that ends is one line, and the run goes on")
        func ends() async throws {
            let run = try await Mosquitto.with { broker in
                try await Mosquitto.with { watched in
                    let line =
                        "pub -p \(broker.port) -c 2 -q 1 --rate 100/s --duration 4s --watch-pid \(watched.program.pid)"
                    return try await ClamorRun.of(line) { run in
                        try await run.line { $0.contains(" measure ") }
                        watched.program.send(SIGKILL)
                    }
                }
            }
            #expect(run.status == 0)
            #expect(run.ending.errorLines.count { $0.contains("--watch-pid") } == 1, "\(run.ending.errors)")
        }

        @Test(
            "a server that cannot be watched is refused in one line, before anything is measured",
            arguments: [
                ("--watch-pid no-such-server", "no process has the name no-such-server"),
                ("--watch-pid 999999999", "there is no process 999999999"),
            ]
        )
        func refused(_ flag: String, _ words: String) async throws {
            let words = words
            let folder = try ScratchFolder()
            let ending = try await ClamorBinary.run(ClamorRun.arguments("pub -c 1 \(flag)", in: folder))
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.contains(words), "\(ending.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.path("out")))
        }

        @Test("an exporter that is gone is one line, and the run goes on")
        func exporter() async throws {
            let port = try ReservedPort()
            let line =
                "pub -h embedded -c 2 -q 1 --rate 100/s --duration 3s --watch-prometheus http://127.0.0.1:\(port.port)/metrics"
            let run = try await ClamorRun.of(line)
            #expect(run.status == 0)
            #expect(run.ending.errorLines.count { $0.contains("--watch-prometheus") } == 1, "\(run.ending.errors)")
        }

        @Test("a signal ends the wait for $SYS, and the result is there")
        func interruptedWait() async throws {
            let run = try await Mosquitto.with { broker in
                let line = "pubsub -p \(broker.port) -c 2 -q 1 -s 64 --rate 100/s --duration 1s --watch-sys"
                return try await ClamorRun.of(line) { run in
                    try await run.line { $0.hasPrefix("reading $SYS") }
                    run.send(SIGINT)
                }
            }
            #expect(run.status == 0)
            #expect(run.record.state == .valid || run.record.state == .generatorLimited)
        }

        @Test("$SYS and the books agree, but for what mosquitto leaves out")
        func sys() async throws {
            let run = try await Mosquitto.with { broker in
                try await ClamorRun.of(
                    "pubsub -p \(broker.port) -c 6 -q 0,1,2 -s 64 --rate 600/s --duration 2s --watch-sys"
                )
            }
            #expect(run.status == 0)
            #expect(run.record.notes?.contains { $0.code == "server-books" } != true, "\(run.record.notes ?? [])")
            #expect(run.record.metrics.contains { $0.name == "server_sys" })
        }

        @Test("compare refuses another product until that is allowed, and its heading has the versions")
        func products() async throws {
            let line = "-c 2 -q 1 -s 64 --rate 100/s --duration 2s --seed 5 --server-name on"
            let base = try await ClamorRun.of("pub -h embedded \(line)")
            let new = try await Mosquitto.with { broker in
                try await ClamorRun.of("pub -h 127.0.0.1 -p \(broker.port) \(line)")
            }
            let words = ["compare", base.directory, new.directory, "--allow-different", "verdict"]
            let refused = try await ClamorBinary.run(words)
            #expect(refused.status == 65)
            #expect(refused.errors.contains("the server differs: clamor in \(base.directory), mosquitto in"))
            let allowed = try await ClamorBinary.run(words.dropLast() + ["verdict,server"])
            #expect(allowed.status == 0, "\(allowed.errors)")
            #expect(allowed.output.contains("1 of new (mosquitto 2"), "\(allowed.output)")
        }
    }
}
