import Foundation
import TestSupport
import Testing

extension Integration {
    /// The commands of README before its section Install, in order and in one folder that is empty at first.
    ///
    /// CI begins with what `make demo` and `make test` do; the rest is here.
    @Suite("The first screen of README", .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"), .takes(4))
    struct FirstScreenTests {
        /// A command, and the exit code that its row has.
        struct Step {
            var arguments: [String]
            var status: Int32?
        }

        /// The replacements that make a command short; the reader's takes minutes.
        static let short = [
            ("-d 40s", "-d 4s"), ("30%@20s", "30%@2s"), ("-c 5000 -R 1000 -d 10s", "-c 500 -R 1000 -d 1s"),
            ("clamor capacity", "clamor capacity --hold 1s --max-rate 2000/s"),
            ("clamor run", "clamor run --set SETTLE=1s --set PEAK=2s --set STORM=1s"),
        ]

        static var steps: [Step] {
            get throws {
                let lines = try MarkdownPage("README.md").lines.prefix { $0 != "## Install" }
                return lines.flatMap { line -> [Step] in
                    let commands = line.hasPrefix("|") ? line.matches(of: /`(clamor [^`]*)`/).map(\.1) : [line]
                    let status = line.firstMatch(of: /\| (9[89]):/).flatMap { Int32($0.1) }
                    return commands.flatMap { $0.split(separator: " && ") }.compactMap { command in
                        let text = Self.short.reduce(String(command)) { $0.replacing($1.0, with: $1.1) }
                        return MarkdownPage.arguments(Substring(text)).map { Step(arguments: $0, status: status) }
                    }
                }
            }
        }

        @Test("has one own run, three proofs, and the commands of five questions")
        func count() throws {
            let commands = try Self.steps.map(\.arguments[0])
            let wanted = ["pubsub", "pubsub", "pubsub", "pub", "conn", "capacity", "pubsub", "init", "run", "init"]
            #expect(commands == wanted)
        }

        @Test("each command runs as printed, and ends with the exit code beside it")
        func run() async throws {
            let folder = try ScratchFolder()
            try await Mosquitto.with { broker in
                for step in try Self.steps {
                    var arguments = step.arguments.map {
                        $0.replacing("mqtt://127.0.0.1", with: "mqtt://127.0.0.1:\(broker.port)")
                            .replacing("127.0.0.1:1884", with: "127.0.0.1:\(broker.port)")
                    }
                    if let host = arguments.firstIndex(of: "127.0.0.1") {
                        arguments.insert(contentsOf: ["-p", "\(broker.port)"], at: host + 1)
                    }
                    // The shell changes into the folder, where `init` writes and `run` reads.
                    let inFolder = [
                        "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", folder.path("."), ClamorBinary.path,
                    ]
                    let ending = try await RunningProgram("/bin/sh", inFolder + arguments).ended()
                    // On a busy host the generator may be the limit of a short run.
                    let wanted: [Int32] = step.status.map { [$0] } ?? [0, 97, 98]
                    #expect(wanted.contains(ending.status), "\(step.arguments): \(ending.errors)")
                }
            }
        }
    }
}
