import Foundation
import Measurement
import Report
import TestSupport
import Testing
import clamor

extension Integration {
    /// The largest number that it names is reached, and one more is refused and would not have been.
    @Suite("doctor predicts the failure that it guards against")
    struct DoctorTests {
        // MARK: - Descriptors

        /// The kernel counts: of the 500 all but one are open when M are connected.
        ///
        /// The one is for the monitor's files, which come and go: with a client more there would be none for those.
        @Test(
            "descriptors: M clients under ulimit -n 500, and not one more",
            arguments: ["", "--threads 3", "-h embedded", "-h embedded --threads 2", "-h localhost"]
        )
        func descriptors(_ flags: String) async throws {
            _ = try await BrokerProgram.with { broker in
                let flags = flags + (flags.contains("embedded") ? "" : " -p \(broker.port)")
                let most = try await self.largest(try await self.limited("doctor --json \(flags)"), by: "descriptors")
                #expect((400..<500).contains(most))
                #expect(try await self.limited("doctor -c \(most) --quiet \(flags)").status == 0)

                let more = try await self.limited("doctor -c \(most + 1) \(flags)")
                #expect(more.status == 64)
                #expect(more.errorLines.count == 1)
                #expect(
                    more.errors.contains("-c \(most + 1) needs 501 descriptors, this process may have 500 (hard limit")
                )
                #expect(more.errors.contains("ulimit -n 501"))

                let folder = try ScratchFolder()
                let refused = try await self.limited(
                    "conn -c \(most + 1) \(flags) --out \(folder.path("out"))"
                )
                #expect(refused.status == 64)
                #expect(refused.errors == more.errors)
                #expect(folder.entries().isEmpty)

                let program = try self.start("conn -c \(most) \(flags) --duration 0 --out \(folder.path("out"))")
                defer { program.send(SIGKILL) }
                try await program.line { $0.contains(" measure ") }
                // The least of some looks: in one of them a file of the monitor's may be open.
                let open = try (0..<20).map { _ in
                    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(program.pid)/fd").count
                }
                #expect(open.min() == 499)
                program.send(SIGINT)
                let run = try ClamorRun(try await program.ended(), folder)
                #expect(run.status == 0, "\(run.ending.errors)")
                self.expectAll(most, in: run)
            }
        }

        // MARK: - Ports

        @Test(
            "ports: M clients from one source address and from four, and not one more",
            .enabled(if: NetworkNamespace.canBeMade, NetworkNamespace.reason),
            arguments: [
                (["127.0.0.1"], 1_000), (["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"], 4_000),
            ]
        )
        func ports(_ sources: [String], _ most: Int) async throws {
            let flags = "--ifaddr \(sources.joined(separator: ","))"
            try await NetworkNamespace.with(ports: "20000 20999") { network in
                #expect(try await self.largest(try await network.clamor("doctor --json \(flags)"), by: "ports") == most)
                #expect(try await network.clamor("doctor -c \(most) --quiet \(flags)").status == 0)
                try await self.expectRefusal(of: most + 1, flags, in: network)

                let run = try await network.run("conn -c \(most) \(flags) --duration 1s")
                #expect(run.status == 0, "\(run.ending.errors)")
                self.expectAll(most, in: run)
            }
            // The kernel's own word: as many sockets, and the next has no port. In a network without TIME_WAIT.
            try await NetworkNamespace.with(ports: "20000 20999") { network in
                let forced = try await network.start("python3", ["-c", Self.connector, "\(most + 1)"] + sources).ended()
                #expect(forced.output == "\(most) EADDRNOTAVAIL\n", "\(forced.errors)")
            }
        }

        /// Binds as the connector does, and says how many connected and why the next did not.
        private static let connector = """
            import errno, resource, socket, sys
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            sources, connected, failure = sys.argv[2:], [], "none"
            for number in range(int(sys.argv[1])):
                client = socket.socket()
                client.setsockopt(socket.SOL_IP, 24, 1)
                client.bind((sources[number % len(sources)], 0))
                try:
                    client.connect(("127.0.0.1", 1883))
                except OSError as error:
                    failure = errno.errorcode[error.errno]
                    break
                connected.append(client)
            print(len(connected), failure)
            """

        @Test(
            "ports: without --ifaddr loopback takes as many source addresses as the range wants",
            .enabled(if: NetworkNamespace.canBeMade, NetworkNamespace.reason)
        )
        func spread() async throws {
            try await NetworkNamespace.with(ports: "20000 20099") { network in
                // 254 addresses of 100 ports, or what descriptors allow.
                let ending = try await network.clamor("doctor --json")
                let record = try JSONDecoder.snakeCase.decode(DoctorRecord.self, from: Data(ending.output.utf8))
                #expect(record.checks.first { $0.name == "ports" }?.largestClients == 25_400)
                // Beyond half of the ports of one address the next is taken.
                let run = try await network.run("conn -c 1000 --duration 1s")
                #expect(run.status == 0, "\(run.ending.errors)")
                self.expectAll(1_000, in: run)
            }
        }

        @Test(
            "ports: those in TIME_WAIT count as long as the kernel keeps them",
            .enabled(if: NetworkNamespace.canBeMade, NetworkNamespace.reason)
        )
        func timeWait() async throws {
            let flags = "--ifaddr 127.0.0.1"
            try await NetworkNamespace.with(ports: "20000 20199", timeWaitReuse: 0) { network in
                self.expectAll(150, in: try await network.run("conn -c 150 \(flags) --duration 100ms"))
                // A server that is quick to close has the TIME_WAIT on its side, where it holds no port of a client.
                let left = try await self.largest(try await network.clamor("doctor --json \(flags)"), by: "ports")
                #expect((50..<200).contains(left))
                try await self.expectRefusal(of: left + 1, flags, in: network)
                let forced = try await network.start("python3", ["-c", Self.connector, "200", "127.0.0.1"]).ended()
                #expect(forced.output == "\(left) EADDRNOTAVAIL\n", "\(forced.errors)")
            }
            try await NetworkNamespace.with(ports: "20000 20199", timeWaitReuse: 2) { network in
                self.expectAll(200, in: try await network.run("conn -c 200 \(flags) --duration 100ms"))
                // Within a second or two; then all of them can be had again, which the kernel has to agree with.
                while try await network.clamor("doctor -c 200 --quiet \(flags)").status != 0 { await Task.yield() }
                let run = try await network.run("conn -c 200 \(flags) --duration 100ms")
                #expect(run.status == 0, "\(run.ending.errors)")
                self.expectAll(200, in: run)
            }
        }

        // MARK: - The command

        @Test("a line per check, the largest number last, and nothing on stderr")
        func text() async throws {
            let ending = try await ClamorBinary.run(["doctor", "-c", "1", "--rate", "10/s"])
            #expect(ending.status == 0)
            #expect(ending.errors.isEmpty)
            #expect(ending.outputLines.first == "This host · -c 1, 10/s to 127.0.0.1:1883")
            #expect(ending.outputLines.last?.hasPrefix("The largest number of clients: ") == true)
            for name in ["descriptors", "open files", "ports", "backlog", "memory", "cores", "clock", "swap"] {
                #expect(ending.outputLines.contains { $0.contains("  \(name)  ") }, "\(name)")
            }
        }

        @Test(
            "the JSON keeps to its schema",
            .enabled("needs a Python with PyPI jsonschema: set CLAMOR_PYTHON to it") {
                try await OtherReader.has("jsonschema")
            },
            arguments: ["doctor --json", "doctor --json -c 5 --rate 5/s -h embedded", "doctor --json -c 9000000"]
        )
        func schema(_ line: String) async throws {
            let ending = try await ClamorBinary.run(line.split(separator: " ").map(String.init))
            #expect(ending.status == (line.contains("9000000") ? 64 : 0))
            try await OtherReader.check(ending.output, against: "doctor")
        }

        // MARK: -

        /// Without what this process, busy with other tests, may leave open at the moment of the fork.
        private static let limiting = """
            for open in /proc/$$/fd/*; do open=${open##*/}; if [ "$open" -gt 2 ]; then eval "exec $open>&-"; fi; done
            ulimit -n 500; exec "$0" "$@"
            """

        private func start(_ line: String) throws -> RunningProgram {
            try RunningProgram(
                "/bin/bash",
                ["-c", Self.limiting, ClamorBinary.path]
                    + line.split(separator: " ").map(String.init)
            )
        }

        private func limited(_ line: String) async throws -> RunningProgram.Ending {
            try await self.start(line).ended()
        }

        private func largest(_ ending: RunningProgram.Ending, by check: String) async throws -> Int {
            #expect(ending.status == 0, "\(ending.errors)")
            let record = try JSONDecoder.snakeCase.decode(DoctorRecord.self, from: Data(ending.output.utf8))
            #expect(record.limitedBy == check)
            return try #require(record.largestClients)
        }

        private func expectRefusal(of clients: Int, _ flags: String, in network: NetworkNamespace) async throws {
            let doctor = try await network.clamor("doctor -c \(clients) --quiet \(flags)")
            #expect(doctor.status == 64)
            #expect(doctor.errorLines.count == 1)
            #expect(doctor.errors.contains("-c \(clients) needs \(Words.count(UInt64(clients))) local ports"))
            let folder = try ScratchFolder()
            let run = try await network.clamor(ClamorRun.arguments("conn -c \(clients) \(flags)", in: folder))
            #expect(run.status == 64)
            #expect(run.errors == doctor.errors)
            #expect(folder.entries().isEmpty)
        }

        private func expectAll(_ clients: Int, in run: ClamorRun) {
            #expect(run.record.errors.isEmpty, "\(run.record.errors)")
            #expect(run.record.duration("connect_duration", ["phase": "session"])?.count == UInt64(clients))
            let gauges = run.record.metrics.filter { $0.name == "clients" }.compactMap(\.gauge?.max)
            #expect(gauges == [Double(clients)])
        }
    }
}
