import Report
import TestSupport
import Testing

/// An output that a page shows, and the command that the page shows above it.
struct PageSample: Sendable, CustomTestStringConvertible {
    var page: String
    var number: Int
    /// The lines of the block with the command.
    var commands: [String]
    var lines: [String]
    /// Beginnings of lines that depend on chance.
    var chance: [String]
    /// The exit codes that the command may end with.
    var statuses: [Int32]
    /// Whether a test prints a record instead of running the command, whose course depends on chance.
    var isOfRecord: Bool

    var testDescription: String { "\(self.page):\(self.number)" }

    /// The outputs of README and guides: their blocks with the language `text`.
    static let all: [PageSample] = MarkdownPage.guides.flatMap { path -> [PageSample] in
        let blocks = (try? MarkdownPage(path))?.blocks ?? []
        return blocks.indices.filter { blocks[$0].language == "text" }.map { index in
            let above = index > 0 && blocks[index - 1].language == "sh" ? blocks[index - 1].lines : []
            let comment = blocks[index].comment ?? ""
            let marks = comment.split(separator: "\"", omittingEmptySubsequences: false)
            let statuses = marks[0].matches(of: /[0-9]+/).compactMap { Int32($0.output) }
            return PageSample(
                page: path,
                number: blocks[index].number,
                commands: above.map(String.init),
                lines: blocks[index].lines.map(String.init),
                chance: marks.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) },
                statuses: statuses.isEmpty ? [0] : statuses,
                isOfRecord: comment == " from a record "
            )
        }
    }

    static let withMosquitto = Self.all.filter(\.wantsMosquitto)
    static let alone = Self.all.filter { !$0.wantsMosquitto && !$0.isOfRecord }

    /// The arguments of the commands of the block, the last of which prints the output.
    var arguments: [[String]] {
        self.commands.compactMap { MarkdownPage.arguments($0[...]) }
    }
    /// Whether the block starts mosquitto before, or has it run at its usual port.
    var wantsMosquitto: Bool { self.commands.contains { $0.contains("mosquitto -p") || $0.contains(" -h 127.0.0.1 ") } }
}

extension Integration {
    @Suite("Outputs that README and guides show", .takes(4))
    struct SampleOutputTests {
        @Test("each has a command above it, and lines that do not depend on chance", arguments: PageSample.all)
        func commands(_ sample: PageSample) {
            #expect(!sample.arguments.isEmpty)
            let lines = sample.lines.filter { !$0.allSatisfy(\.isWhitespace) }
            for mark in sample.chance {
                #expect(lines.contains { SampleForm.mayBeAbsent($0, [mark]) }, "no line begins with \(mark)")
            }
            #expect(lines.contains { !SampleForm.mayBeAbsent($0, sample.chance) })
        }

        @Test("README and guides show some")
        func count() {
            #expect(PageSample.alone.count > 6)
            #expect(PageSample.withMosquitto.count > 0)
        }

        @Test("the command prints what the page shows, but for figures and times", arguments: PageSample.alone)
        func output(_ sample: PageSample) async throws {
            try await Self.check(sample)
        }

        @Test(
            "the same with mosquitto, where the page starts it",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
            arguments: PageSample.withMosquitto
        )
        func outputWithMosquitto(_ sample: PageSample) async throws {
            try await Mosquitto.with { broker in
                try await Self.check(sample, port: broker.port)
            }
        }

        @Test("a search prints what the guide shows of it")
        func capacity() throws {
            let shown = PageSample.all.filter(\.isOfRecord)
            #expect(shown.map(\.page) == ["Sources/clamor/Clamor.docc/Capacity.md"])
            let sample = try #require(shown.first)
            let objective = "publish_ack_duration p99 < 50ms"
            var record = CapacityRecord(command: ["pub"], varies: "rate", objectives: [objective], holdSeconds: 1)
            record.steps = [
                (1, 800, true, 799, 0.00979), (2, 1_600, false, 972, 0.656), (3, 1_200, false, 918, 0.488),
                (4, 1_000, false, 941, 0.0754), (15, 1_000, true, 983, 0.0204), (16, 1_100, false, 992, 0.114),
                (17, 1_050, false, 986, 0.0651), (18, 1_050, false, 978, 0.0725),
            ].map { (number, load, isHeld, throughput, p99) in
                var step = CapacityRecord.Step(
                    number: number,
                    load: load,
                    phase: "edge",
                    verdict: isHeld ? "held" : "broken",
                    reason: isHeld ? nil : objective,
                    directory: "steps/\(number)"
                )
                step.throughput = throughput
                step.p99Seconds = p99
                return step
            }
            record.answer = CapacityRecord.Answer(kind: "found", load: 1_000, low: 875, high: 1_050)
            record.answer?.limit = .init(
                .unknown,
                "not known: watch the server with --watch-pid in the load's command"
            )
            let text = record.steps.map { record.line($0) }.joined() + record.summary(files: nil)
            #expect(sample.lines.joined(separator: "\n") + "\n" == text)
        }

        private static func check(_ sample: PageSample, port: Int? = nil) async throws {
            let folder = try ScratchFolder()
            var results: Set<String> = []
            for given in sample.arguments.dropLast() {
                let earlier = try await ClamorBinary.run(Self.arguments(given, in: folder, &results, port: port))
                #expect([0, 97, 98, 99].contains(earlier.status), "\(given): \(earlier.errors)")
            }
            let last = try #require(sample.arguments.last)
            let ending = try await ClamorBinary.run(Self.arguments(last, in: folder, &results, port: port))
            let difference = SampleForm(output: ending.output).firstDifference(
                from: sample.lines,
                chance: sample.chance
            )
            #expect(difference == nil, "\(sample.testDescription): \(difference?.description ?? "")\n\(ending.errors)")
            #expect(sample.statuses.contains(ending.status), "\(sample.testDescription): \(ending.errors)")
        }

        /// Arguments with results in a folder, where those of the commands before are.
        private static func arguments(
            _ given: [String],
            in folder: ScratchFolder,
            _ results: inout Set<String>,
            port: Int?
        ) throws -> [String] {
            var arguments = given
            if let port, let given = arguments.firstIndex(of: "-p") {
                arguments[given + 1] = "\(port)"
            } else if let port {
                arguments += ["-p", "\(port)"]
            }
            if let out = arguments.firstIndex(of: "--out") {
                results.insert(arguments[out + 1])
            } else if !["doctor", "compare"].contains(arguments[0]) {
                // Options of the program's own, before those of the load that `capacity` runs.
                arguments.insert(contentsOf: ["--out", folder.path("out")], at: 1)
            }
            arguments = arguments.map { results.contains($0) ? folder.path($0) : $0 }
            // The tests leave the client out that asks the server for its name; a reader's run has it.
            if ["conn", "pub", "sub", "pubsub"].contains(arguments[0]) { arguments += ["--server-name", "on"] }
            // On a busy host the generator is the limit of runs that a test makes.
            if arguments[0] == "compare" { arguments += ["--allow-different", "verdict"] }
            return arguments
        }
    }

    @Suite("The form of an output")
    struct SampleFormTests {
        @Test(
            "figures, units, times and paths do not count, words and labels do",
            arguments: [
                ("Clients     200 of 200 up in 49.0 ms", "Clients # of # up in #"),
                ("  ack QoS 1       20,000  174 µs  –  1.00 s   ← late", "ack QoS # # # # #"),
                ("Latency  count  p50  p99.9", "Latency count p50 p99.9"),
                ("sent (1,000/s) · 14.6 % of a core", "sent (#) · # of a core"),
                ("· started 2026-11-25 18:47:32 UTC", "· started # # UTC"),
                ("topic clamor/4, message 145 of clamor-4e7d-pub-4", "topic clamor/#, message # of clamor-#-pub-#"),
                ("Files  results/runs/20261125-184732-pubsub/  page: report.html", "Files # page: report.html"),
                ("memory pipelined  packets/s  41.24 B", "memory pipelined packets/s #"),
                ("mosquitto 2.0.11 ($SYS/broker/version)", "mosquitto # ($SYS/broker/version)"),
                ("fs.nr_open 1,048,576, 27 go", "fs.nr_open #, # go"),
                ("8.438/s … ±1.2 ms", "# … ±#"),
            ]
        )
        func form(_ line: String, _ form: String) { #expect(SampleForm.form(of: line) == form) }

        static let output = """
               1 s  measure  sent 5/s
            VALID · nothing broke
            Sent        5 offered · 5 sent
            By chance   1 message · 2 seconds
            Generator   1 event loop at 5 % · memory 60.2 MB ·
              host stole 0 %
            """

        @Test(
            "lines may be left out and broken elsewhere, but not differ or change places",
            arguments: [
                (["Sent  7 offered · 8 sent"], true), (["Sent  7 offered"], false), (["7 offered · 8 sent"], false),
                (["Sent  7 due · 8 sent"], false), (["VALID · nothing broke", "", "Sent 1 offered · 2 sent"], true),
                (["Sent 1 offered · 2 sent", "VALID · nothing broke"], false),
                (["Generator  1 event loop at 9 % · memory 1.00 kB · host stole 7 %"], true),
                (["Generator  1 event loop at 9 %", "  · memory 1.00 kB · host stole 7 %"], true),
                (["Generator  1 event loop at 9 %", "Sent 1 offered · 2 sent"], false),
                (["By chance  1 message", "Generator  1 event loop at 9 % · memory 1.00 kB · host stole 7 %"], true),
                (["In flight 5"], false), (["By chance", "Sent  7 offered · 8 sent"], true),
                (["By chance", "Sent  7 due · 8 sent"], false), (["Sent  7 offered", "Generator"], false),
            ]
        )
        func differences(_ sample: [String], isRight: Bool) {
            let difference = SampleForm(output: Self.output).firstDifference(from: sample, chance: ["By chance"])
            #expect((difference == nil) == isRight, "\(difference?.description ?? "")")
        }
    }
}
