import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite(
        "The files of clamor init --kubernetes",
        .enabled(if: SlowTests.areOn, "\(SlowTests.reason)"),
        .enabled("needs a Python with PyPI kubernetes-validate and pyyaml: set CLAMOR_PYTHON to it") {
            try await KubernetesPods.python("-c", "import kubernetes_validate, yaml").status == 0
        }
    )
    struct KubernetesTests {
        private static let segments = 3
        private static let messages = 180

        /// With a secret in its text, and without.
        private static func scenario(hasSecret: Bool) -> String {
            let secret = hasSecret ? "    password: pw0f0e\n" : ""
            return Self.scenario.replacing("clients: 9\n", with: "clients: 9\n\(secret)")
        }

        private static let scenario = """
            # Comments, and lines that are empty, stay.

            target: ${TARGET}
            seed: 7
            duration: 1s
            groups:
              devices:
                clients: 9
                subscribers: 9
                publish: { topic: "d/%i", qos: 1, size: 64, rate: \(Self.messages)/s }
            thresholds: ["delivery_lost == 0", "received count == \(Self.messages)"]

            """

        /// Writes the objects as a user does, and fills in what is the user's.
        private static func objects(
            in folder: borrowing ScratchFolder,
            target: String,
            hasSecret: Bool = false
        ) async throws -> String {
            let scenario = try folder.write(Self.scenario(hasSecret: hasSecret), to: "load.yaml")
            let path = folder.path("objects.yaml")
            let written = try await ClamorBinary.run(
                [
                    "init", "--kubernetes", scenario, "--segments", "\(Self.segments)", "--set", "TARGET=\(target)",
                    "--out", path,
                ]
            )
            #expect(written.status == 0, "\(written.errors)")
            var text = try String(contentsOfFile: path, encoding: .utf8)
            for (name, value) in [
                ("REPLACE_IMAGE", "registry.example/clamor:1"), ("REPLACE_PASSWORD", "s3cret"), ("REPLACE_RUN", "1001"),
            ] {
                // Its first lines say so.
                #expect(text.contains("s|\(name)|"))
                text = text.replacing(name, with: value)
            }
            #expect(!text.contains("REPLACE_"))
            return try folder.write(text, to: "applied.yaml")
        }

        @Test(
            "the newest schemas of Kubernetes take them, with nothing in them that no schema has",
            arguments: [false, true]
        )
        func schema(hasSecret: Bool) async throws {
            let folder = try ScratchFolder()
            let path = try await Self.objects(in: folder, target: "mqtt://broker.example", hasSecret: hasSecret)
            let ending = try await KubernetesPods.python("-m", "kubernetes_validate", "--strict", path)
            #expect(ending.status == 0, "\(ending.output) \(ending.errors)")
            let pods = try await KubernetesPods(path: path)
            #expect(pods.kinds == ["Secret", "Secret", "Service", "PersistentVolumeClaim", "Job", "Job"])
        }

        @Test("an index is what tells the pods of the segments apart", arguments: [false, true])
        func pods(hasSecret: Bool) async throws {
            let folder = try ScratchFolder()
            let pods = try await KubernetesPods(
                path: try await Self.objects(in: folder, target: "mqtt://broker.example", hasSecret: hasSecret)
            )
            let processes = try pods.processes(of: "clamor-load-segment")
            #expect(processes.map { $0.environment["JOB_COMPLETION_INDEX"] } == ["0", "1", "2"])
            #expect(Set(processes.map(\.arguments)).count == 1)
            let coordinators = try pods.processes(of: "clamor-load-coordinator")
            #expect(coordinators.map { $0.environment["JOB_COMPLETION_INDEX"] } == [nil])
            for process in processes + coordinators {
                #expect(process.environment["CLAMOR_RUN"] == "1001")
                #expect(process.environment["CLAMOR_COORDINATOR_PASSWORD"] == "s3cret")
                #expect(!process.arguments.contains { $0.contains("s3cret") })
                #expect(process.files == ["/scenario/scenario.yaml": Self.scenario(hasSecret: hasSecret)])
            }
            #expect(processes.allSatisfy { $0.environment["CLAMOR_SEGMENTS"] == "\(Self.segments)" })
            #expect(pods.services == ["clamor-load-coordinator"])
        }

        /// A pod's command line with the places of this host.
        private static func arguments(
            of process: KubernetesPods.Process,
            pod: String,
            port: Int,
            services: [String],
            in folder: borrowing ScratchFolder
        ) throws -> [String] {
            try FileManager.default.createDirectory(atPath: folder.path(pod), withIntermediateDirectories: true)
            var places = ["/results/": folder.path("\(pod)/"), "0.0.0.0:7883": "127.0.0.1:\(port)"]
            for service in services { places["@\(service):7883"] = "@127.0.0.1:\(port)" }
            for (path, text) in process.files {
                let name = path.split(separator: "/").joined(separator: "-")
                places[path] = try folder.write(text, to: "\(pod)/\(name)")
            }
            let words = process.arguments.map { word in
                places.reduce(word) { $0.replacing($1.key, with: $1.value) }
            }
            let variables = process.environment.map { "\($0.key)=\($0.value)" }
            return variables + [ClamorBinary.path] + words.dropFirst()
        }

        @Test("the command lines of the containers, started here, make one result", .takes(4))
        func run() async throws {
            let folder = try ScratchFolder()
            let port = try ReservedPort()
            _ = try await BrokerProgram.with { broker in
                let path = try await Self.objects(in: folder, target: "mqtt://127.0.0.1:\(broker.port)")
                let pods = try await KubernetesPods(path: path)
                func start(_ process: KubernetesPods.Process, _ pod: String) throws -> RunningProgram {
                    #expect(process.arguments.first == "clamor")
                    let words = try Self.arguments(
                        of: process,
                        pod: pod,
                        port: port.port,
                        services: pods.services,
                        in: folder
                    )
                    return try RunningProgram("/usr/bin/env", words)
                }
                let coordinator = try #require(try pods.processes(of: "clamor-load-coordinator").first)
                port.release()
                // In no order: pods begin as they come, some before the coordinator.
                var programs = try pods.processes(of: "clamor-load-segment").reversed().map { process in
                    try start(process, "segment-\(process.environment["JOB_COMPLETION_INDEX"] ?? "")")
                }
                programs.append(try start(coordinator, "coordinator"))
                defer { for program in programs { program.send(SIGKILL) } }
                for program in programs.reversed() {
                    let ending = try await program.ended()
                    #expect(ending.status == 0, "\(ending.errors)")
                }
            }
            let record = try RunJSON.read(directory: folder.path("coordinator/1001"))
            #expect(record.segment.merged == Self.segments)
            for name in ["publish_offered", "publish_acked", "delivery_expected", "received"] {
                #expect(record.count(name) == Self.messages, "\(name)")
            }
            #expect(record.thresholds.map(\.ok) == [true, true])
        }
    }
}
