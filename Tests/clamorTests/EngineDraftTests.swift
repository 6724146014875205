import Foundation
import Scenario
import TestSupport
import Testing
import clamor

/// The files that `init` writes for the engines that start segments.
@Suite("clamor init --slurm and --kubernetes")
struct EngineDraftTests {
    private static let load = """
        name: ${NAME:-load}
        target: mqtt://broker.example
        seed: 7
        warmup: 5s
        duration: 100s
        drain: 20s
        groups:
          devices: { clients: 30, publish: { topic: "a/%i", qos: 1, rate: "${RATE:-60/s}" } }

        """

    private let folder: ScratchFolder

    init() throws { self.folder = try ScratchFolder() }

    private func invocation(
        _ flags: [String],
        of text: String = Self.load,
        name: String = "load.yaml",
        environment: [String: String] = [:]
    ) throws
        -> Invocation
    {
        let path = try self.folder.write(text, to: name)
        return Invocation.parse(["init"] + flags.map { $0 == "FILE" ? path : $0 }, environment: environment)
    }

    private func draft(_ flags: [String], of text: String = Self.load, name: String = "load.yaml") throws -> String {
        let invocation = try self.invocation(flags, of: text, name: name)
        guard case .draft(let draft) = invocation else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
        return draft.text
    }

    // MARK: - Slurm

    private static let slurm = ["--slurm", "FILE", "--segments", "3"]

    @Test("the script is of the scenario's name, or of --out")
    func paths() throws {
        for (flags, path) in [([], "load.sbatch"), (["--out", "x"], "x")] {
            let invocation = try self.invocation(Self.slurm + flags)
            guard case .draft(let draft) = invocation else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
            #expect(draft.files.map(\.path) == [path])
            #expect(draft.next == "run it: sbatch --wait \(path)")
        }
    }

    @Test("sbatch reads all of its options: they stand before the first command")
    func directives() throws {
        let lines = try self.draft(Self.slurm).split(separator: "\n")
        #expect(lines.first == "#!/bin/bash")
        let head = lines.prefix { $0.hasPrefix("#") }.filter { $0.hasPrefix("#SBATCH ") }
        #expect(head.count == lines.count { $0.hasPrefix("#SBATCH") })
        for option in ["--job-name=clamor-load", "--nodes=3", "--ntasks=3", "--no-requeue"] {
            #expect(head.contains("#SBATCH \(option)"))
        }
        // 5 s, 100 s, 20 s, a minute for the results, ten for the beginning.
        #expect(head.contains("#SBATCH --time=0:14:00"))
        // The drain and that minute.
        #expect(head.contains("#SBATCH --signal=B:USR1@80"))
    }

    struct Name: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// In the script.
        let word: String
    }

    static let names = [
        Name(testDescription: "load.yaml", word: "load.yaml"),
        Name(testDescription: "my load.yaml", word: "my load.yaml"),
        Name(testDescription: "it's $HOME.yaml", word: #"it'\''s $HOME.yaml"#),
    ]

    @Test("bash reads the script, whatever the file and the variables are called", arguments: names)
    func shell(_ name: Name) throws {
        let script = try self.draft(
            Self.slurm + ["--set", "RATE=90/s", "--set", "NAME=it's $HOME"],
            name: name.testDescription
        )
        #expect(script.contains("/\(name.word)"))
        #expect(script.contains(#"set -- --set RATE=90/s --set 'NAME=it'\''s $HOME' "$@""#))
        let ending = try RunningProgram.run("/bin/bash", ["-n", try self.folder.write(script, to: "script")])
        #expect(ending.status == 0 && ending.errors.isEmpty, "\(ending.errors)")
        // Assignments alone, so that what a shell makes of the words can be seen.
        let words = script.split(separator: "\n").filter { $0.hasPrefix("scenario=") || $0.hasPrefix("set -- ") }
        let echo = (words + [#"printf '%s\n' "$scenario" "$@""#]).joined(separator: "\n")
        let shown = try RunningProgram.run("/bin/bash", ["-c", echo, "bash", "--quiet"])
        #expect(
            shown.outputLines
                == [
                    self.folder.path(name.testDescription), "--set", "RATE=90/s", "--set", "NAME=it's $HOME",
                    "--quiet",
                ]
        )
    }

    // MARK: - Kubernetes

    private static let kubernetes = ["--kubernetes", "FILE", "--segments", "3"]

    @Test("the objects are those of the contract, named by the scenario")
    func objects() throws {
        let documents = try self.draft(Self.kubernetes).components(separatedBy: "\n---\n")
        let kinds = documents.compactMap { $0.firstMatch(of: /(?m)^kind: (.*)$/)?.1 }
        #expect(kinds == ["Secret", "Secret", "Service", "PersistentVolumeClaim", "Job", "Job"])
        let names = documents.compactMap { $0.firstMatch(of: /(?m)^  name: (.*)$/)?.1 }
        #expect(
            names
                == ["scenario", "password", "coordinator", "results", "coordinator", "segment"].map {
                    "clamor-load-\($0)"
                }
        )
        let job = try #require(documents.last)
        for line in [
            "completionMode: Indexed", "completions: 3", "parallelism: 3", "restartPolicy: Never",
            "podReplacementPolicy: Failed", "backoffLimitPerIndex: 2", "terminationGracePeriodSeconds: 80",
            "runAsUser: 65532", "name: net.ipv4.ip_local_port_range", "topologyKey: kubernetes.io/hostname",
        ] {
            #expect(job.contains(" \(line)\n"), "\(line)")
        }
    }

    @Test(
        "the Secret has the scenario to the byte",
        arguments: ["", "\n", "\n\n\n"].flatMap { end in ["", "\n", "  # a comment\n"].map { ($0, end) } }
    )
    func scenarioText(start: String, end: String) throws {
        let text = start + Self.load.trimmingCharacters(in: .newlines).replacing("\nseed", with: "\n\nseed") + end
        let document = try #require(try self.draft(Self.kubernetes, of: text).components(separatedBy: "---\n").first)
        let block = try #require(document.firstMatch(of: /scenario.yaml: \|(2?)([-+]?)\n((?s).*)/))
        let lines = String(block.3).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.allSatisfy { $0.isEmpty || $0.hasPrefix("    ") })
        var read = lines.map { $0.dropFirst(4) + "\n" }.joined()
        if block.2 == "-" { read.removeLast() }
        #expect(read == text)
        #expect(start.isEmpty == block.1.isEmpty)
        #expect((block.2 == "+") == (end.count > 1))
    }

    private static func scenario(_ keys: String, target: String = "mqtt://h", vars: String = "{}") -> String {
        "vars: \(vars)\ntarget: '\(target)'\nduration: 1s\ngroups: { a: { clients: 9, \(keys) } }\n"
    }

    /// A secret may stand in a comment or a user property, which no key tells.
    static let texts = [
        scenario("username: me, password: s3cret"), scenario(#"username: me, password: "${PW}""#),
        scenario("") + "# the old password: s3cret\n", scenario(#"connect: { user_properties: ["auth: s3cret"] }"#),
        scenario("psk: 'i:00'", target: "mqtts://h"), scenario("jid: u%i@x, password: s3cret", target: "xmpp://h"),
    ]

    @Test("the scenario is a Secret, whatever it has, and the file is its owner's", arguments: texts)
    func secretScenario(_ text: String) throws {
        let invocation = try self.invocation(Self.kubernetes, of: text, environment: ["PW": "0f0e-of-here"])
        guard case .draft(let draft) = invocation else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
        let first = try #require(draft.text.components(separatedBy: "---\n").first)
        #expect(first.contains("\nkind: Secret\nmetadata:\n  name: clamor-load-scenario\n"))
        #expect(first.contains("\nstringData:\n  scenario.yaml: |\n    vars: "))
        #expect(!draft.text.contains("ConfigMap") && !draft.text.contains("configMap"))
        let volume = "\n          secret:\n            secretName: clamor-load-scenario\n"
        #expect(draft.text.components(separatedBy: volume).count == 3)
        #expect(!draft.text.contains("0f0e"))
        #expect(draft.files.map(\.isSecret) == [true])
    }

    @Test("a file with a secret is its owner's alone, from its first byte on")
    func mode() async throws {
        let path = try self.folder.write(Self.scenario("username: me, password: s3cret"), to: "load.yaml")
        let out = self.folder.path("out.yaml")
        let line = ["init", "--kubernetes", path, "--segments", "3", "--out", out]
        let written = try await ClamorBinary.run(line)
        #expect(written.status == 0, "\(written.errors)")
        #expect(try FileManager.default.attributesOfItem(atPath: out)[.posixPermissions] as? Int == 0o600)
        #expect(try String(contentsOfFile: out, encoding: .utf8).contains("s3cret"))
        // An existing file stays.
        #expect(try await ClamorBinary.run(line).status == 73)
    }

    @Test(
        "names are ones that the DNS takes",
        arguments: [
            ("Load_2.yaml", "clamor-load-2"), ("---.yaml", "clamor"), ("ÜBER load.yaml", "clamor-ber-load"),
            (String(repeating: "a", count: 80), "clamor-" + String(repeating: "a", count: 40)),
            (String(repeating: "a", count: 39) + ".b.yaml", "clamor-" + String(repeating: "a", count: 39)),
        ]
    )
    func domainName(file: String, name: String) throws {
        #expect(try self.draft(Self.kubernetes, name: file).contains("\n  name: \(name)-scenario\n"))
    }

    @Test("a variable is an argument as it is, and not Kubernetes' own")
    func variables() throws {
        let text = try self.draft(Self.kubernetes + ["--set", #"NAME="$(HOME)" \ x"#])
        #expect(text.components(separatedBy: #"- "NAME=\"$$(HOME)\" \\ x""#).count == 3)
        #expect(text.contains(#"- "/results/$(CLAMOR_RUN)""#))
    }

    // MARK: - Refusals

    struct Refusal: Sendable, CustomTestStringConvertible {
        let flags: String
        var text = EngineDraftTests.load
        let answer: String
        var testDescription: String { "\(self.flags): \(self.answer)" }
    }

    static let refusals = [
        Refusal(
            flags: "--slurm FILE",
            answer: "--slurm: needs --segments N, the number of tasks that divide the load"
        ),
        Refusal(
            flags: "--kubernetes FILE",
            answer: "--kubernetes: needs --segments N, the number of pods that divide the load"
        ),
        Refusal(
            flags: "--slurm FILE --kubernetes FILE --segments 3",
            answer: "--kubernetes: writes other files than --slurm; give one of the two"
        ),
        Refusal(
            flags: "--slurm FILE --segments 3 --ci",
            answer: "--slurm: writes other files than --ci; give one of the two"
        ),
        Refusal(
            flags: "fleet --slurm FILE --segments 3",
            answer: "fleet: --slurm is followed by the scenario's file; leave one of the two out"
        ),
        Refusal(
            flags: "fleet --segments 3",
            answer: "--segments: is of --slurm and --kubernetes; add one of them"
        ),
        Refusal(
            flags: "fleet --set RATE=9/s",
            answer: "--set: is of --slurm and --kubernetes; add one of them"
        ),
        Refusal(
            flags: "--slurm /no/such.yaml --segments 3",
            answer: "--slurm: cannot read /no/such.yaml (no such file); check the path and its permissions"
        ),
        Refusal(
            flags: "--slurm FILE --segments 31",
            answer: "--segments: devices: 31 segments of -c 30 would not have a client each; ask for fewer"
        ),
        Refusal(
            flags: "--slurm FILE --segments 3 --set CLAMOR_PASSWORD=s3cret",
            answer: "--set: CLAMOR_PASSWORD would be readable in the file; put it into the environment, here and of "
                + "sbatch"
        ),
        Refusal(
            flags: "--kubernetes FILE --segments 3 --set TOKEN=s3cret",
            answer:
                "--set: TOKEN would be readable in the file; put it into the environment, here and, from a Secret, of "
                + "all pods"
        ),
        Refusal(
            flags: "--slurm FILE --segments 3 --set PW=s3cret",
            text: load.replacing("clients: 30", with: #"username: me, password: "${PW}", clients: 30"#),
            answer: "--set: PW would be readable in the file; put it into the environment, here and of sbatch"
        ),
        Refusal(
            flags: "--kubernetes FILE --segments 3 --set PW=s3cret",
            text: load.replacing("clients: 30", with: #"username: me, password: "${PW}", clients: 30"#),
            answer: "--set: PW would be readable in the file; put it into the environment, here and, from a Secret, of "
                + "all pods"
        ),
        Refusal(
            flags: "--slurm FILE --segments 3 --set RATTE=9/s",
            answer: "--set: FILE has no ${RATTE}; it has ${NAME}, ${RATE}"
        ),
        Refusal(
            flags: "--kubernetes FILE --segments 3",
            text: load + "#" + String(repeating: "x", count: 1_000_000) + "\n",
            answer: "--kubernetes: FILE is over 1 MB, which is all that a Secret holds; make it smaller"
        ),
        Refusal(
            flags: "--kubernetes FILE --segments 3",
            text: load + "include: []\n",
            answer:
                "--kubernetes: FILE includes other files, and the pods have this one alone; write them into one file"
        ),
    ]

    @Test("what cannot be is refused, in one line", arguments: refusals)
    func refuses(_ refusal: Refusal) throws {
        let flags = refusal.flags.split(separator: " ").map(String.init)
        guard case .refused(let lines) = try self.invocation(flags, of: refusal.text) else {
            Issue.record("it is taken")
            return
        }
        #expect(lines == ["clamor init: " + refusal.answer.replacing("FILE", with: self.folder.path("load.yaml"))])
    }

    @Test("a number of segments is a whole one in its range", arguments: ["0", "100001", "x"])
    func counts(_ count: String) throws {
        guard case .refused(let lines) = try self.invocation(["--slurm", "FILE", "--segments", count]) else {
            Issue.record("it is taken")
            return
        }
        #expect(lines == ["clamor init: --segments: '\(count)' is not a whole number of 1 to 100000"])
    }

    @Test("a scenario that is wrong is answered as clamor run answers it")
    func wrong() throws {
        let text = Self.load + "duratoin: 1s\n"
        guard case .wrong(let lines) = try self.invocation(Self.slurm, of: text),
            case .wrong(let expected) = Invocation.parse(["run", self.folder.path("load.yaml")])
        else {
            Issue.record("it is taken")
            return
        }
        #expect(lines == expected && lines.count == 1)
    }
}
