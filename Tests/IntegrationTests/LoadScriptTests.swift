import Foundation
import TestSupport
import Testing

extension Integration {
    @Suite("The load test of clamor init --ci")
    struct LoadScriptTests {
        /// A repository with a load test, and one that stands for Clamor's.
        private struct Checkout {
            let folder: ScratchFolder
            /// Where the program of the other repository notes its calls.
            var calls: [String] {
                let text = try? String(contentsOfFile: self.folder.path("calls"), encoding: .utf8)
                return text?.split(separator: "\n").map(String.init) ?? []
            }

            /// `program`: a shell script that `make` builds as `clamor`.
            init(_ program: String, _ out: [String] = []) async throws {
                self.folder = try ScratchFolder()
                let written = try await self.shell("\"$0\" init --ci \"$@\"", [ClamorBinary.path] + out)
                #expect(written.status == 0, "\(written.errors)")
                #expect(written.output.hasPrefix("wrote \(out.last ?? ".github/workflows/load.yml") and load.sh; next"))
                for name in ["CLAMOR_GIT", "CLAMOR_REF", "TARGET", "BASE", "CLAMOR_PASSWORD", "objectives"] {
                    #expect(written.output.contains(name))
                }
                let made = try await self.shell(
                    """
                    git init -q "$0" && cd "$0"
                    printf '#!/bin/sh\\necho "$1" >> calls\\n%s\\n' "$1" > program
                    printf 'build:\\n\\techo make >> ../calls\\n\\tinstall -D program .build/release/clamor\\n' > Makefile
                    git add . && git -c user.name=a -c user.email=a@example.org commit -q -m one
                    """,
                    [self.folder.path("origin"), program]
                )
                #expect(made.status == 0, "\(made.errors)")
                try self.folder.write(
                    """
                    target: ${TARGET:-embedded}
                    duration: 1s
                    groups:
                      all: { clients: 4, subscribers: 1, publish: { topic: t, qos: 1, size: 64, rate: 100/s } }
                    """,
                    to: "fleet.yaml"
                )
            }

            func shell(
                _ words: String,
                _ arguments: [String],
                _ variables: [String] = []
            ) async throws -> RunningProgram.Ending {
                let environment = ["-C", self.folder.path] + variables
                return try await RunningProgram("/usr/bin/env", environment + ["bash", "-ec", words] + arguments)
                    .ended()
            }

            /// The calls of the script in a workflow, in their order.
            func perform(_ workflow: String, _ variables: [String]) async throws -> RunningProgram.Ending {
                let text = try String(contentsOfFile: self.folder.path(workflow), encoding: .utf8)
                let lines = text.split(separator: "\n").compactMap { line in
                    line.range(of: "- (run: )?bash load.sh ", options: .regularExpression).map {
                        line[$0.upperBound...]
                    }
                }
                #expect(lines == ["fetch", "build", "run"])
                let words = lines.map { "bash load.sh \($0)" }.joined(separator: "\n")
                return try await self.shell(words, [], variables)
            }
        }

        /// Calls the program under test; a busy host may have limited the generator, which is not in question here.
        private static let caller = """
            [ "$1" != run ] || for word; do shift; [ "$word" = --strict ] || set -- "$@" "$word"; done
            exec "$CLAMOR" "$@"
            """

        @Test(
            "its commands build once, leave page and JUnit, keep main's runs, and compare two builds of a change",
            arguments: [[], ["--out", ".gitlab-ci.yml"]]
        )
        func commands(_ out: [String]) async throws {
            let workflow = out.last ?? ".github/workflows/load.yml"
            let checkout = try await Checkout(Self.caller, out)
            _ = try await BrokerProgram.with { broker in
                let variables = [
                    "CLAMOR_GIT=\(checkout.folder.path("origin"))", "CLAMOR=\(ClamorBinary.path)",
                    "TARGET=mqtt://127.0.0.1:\(broker.port)",
                ]
                for commit in 1...2 {
                    let ending = try await checkout.perform(workflow, variables + ["BRANCH=main", "COMMIT=\(commit)"])
                    #expect(ending.status == 0, "\(ending.output)\(ending.errors)")
                }
                #expect(checkout.calls == ["make", "run", "trend", "run", "trend"])
                #expect(checkout.folder.entries("history").count == 2)
                #expect(Set(["load.xml", "trend.xml", "trend.html"]).isSubset(of: checkout.folder.entries()))
                #expect(checkout.folder.entries("load").contains("report.html"))

                // A change runs both builds in turn, and leaves the history alone. The slower one is this build.
                let (ending, _) = try await BrokerProgram.with("--delay 50ms") { slow in
                    let own = ["BRANCH=change", "COMMIT=3", "BASE=mqtt://127.0.0.1:\(broker.port)"]
                    return try await checkout.perform(
                        workflow,
                        variables.dropLast() + own + ["TARGET=mqtt://127.0.0.1:\(slow.port)"]
                    )
                }
                #expect(ending.status == 99, "\(ending.output)\(ending.errors)")
                #expect(checkout.folder.entries("history").count == 2)
                #expect(Set(["a", "b", "compare.json"]).isSubset(of: checkout.folder.entries("ab")))
                #expect(checkout.folder.entries().contains("ab.xml"))
            }
        }

        /// The statuses are of the calls of `run` and `trend`.
        @Test(
            "a limited run is repeated once; a worse build fails a change, a worse history fails main alone",
            arguments: [
                ("change", false, [0, 0], 0, ["run", "run"]),
                ("change", false, [98, 0, 0], 0, ["run", "run", "run"]),
                ("change", false, [98, 98], 98, ["run", "run"]), ("change", false, [98, 99], 99, ["run", "run"]),
                ("change", false, [0, 99], 99, ["run", "run"]), ("change", false, [0, 65], 0, ["run", "run"]),
                ("change", true, [0, 0, 99], 0, ["run", "run", "trend"]),
                ("change", true, [0, 99, 0], 99, ["run", "run", "trend"]),
                ("main", false, [97], 97, ["run"]), ("main", false, [0], 0, ["run"]),
                ("main", true, [99], 99, ["run"]), ("main", true, [0, 0], 0, ["run", "trend"]),
                ("main", true, [0, 99], 99, ["run", "trend"]), ("main", true, [0, 65], 65, ["run", "trend"]),
            ]
        )
        func statuses(branch: String, hasHistory: Bool, given: [Int], status: Int32, commands: [String]) async throws {
            let script = "mkdir -p load; status=$(head -n 1 given); sed -i 1d given; exit \"$status\""
            let checkout = try await Checkout(script)
            try checkout.folder.write(given.map { "\($0)\n" }.joined(), to: "given")
            if hasHistory { _ = try await checkout.shell("mkdir history", ["sh"]) }
            let ending = try await checkout.perform(
                ".github/workflows/load.yml",
                ["CLAMOR_GIT=\(checkout.folder.path("origin"))", "BRANCH=\(branch)", "BASE=mqtt://127.0.0.1:1885"]
            )
            #expect(ending.status == status, "\(ending.errors)")
            #expect(checkout.calls == ["make"] + commands)
        }

        @Test("without the repository of Clamor it says what to set")
        func refusal() async throws {
            let checkout = try await Checkout("exit 0")
            let ending = try await checkout.perform(".github/workflows/load.yml", ["CLAMOR_GIT="])
            #expect(ending.status != 0)
            #expect(ending.errors.contains("CLAMOR_GIT: set it to the URL of the Git repository of Clamor"))
            #expect(checkout.calls.isEmpty)
        }
    }
}
