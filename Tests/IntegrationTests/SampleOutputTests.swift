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
    /// Whether a test prints a record instead of running the command, whose course depends on chance.
    var isOfRecord: Bool

    var testDescription: String { "\(self.page):\(self.number)" }

    /// The outputs of README and guides: their blocks with the language `text`.
    static let all: [PageSample] = MarkdownPage.guides.flatMap { path -> [PageSample] in
        let blocks = (try? MarkdownPage(path))?.blocks ?? []
        return blocks.indices.filter { blocks[$0].language == "text" }.map { index in
            let above = index > 0 && blocks[index - 1].language == "sh" ? blocks[index - 1].lines : []
            let marks = (blocks[index].comment ?? "").split(separator: "\"", omittingEmptySubsequences: false)
            return PageSample(
                page: path,
                number: blocks[index].number,
                commands: above.map(String.init),
                lines: blocks[index].lines.map(String.init),
                chance: marks.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) },
                isOfRecord: blocks[index].comment == " from a record "
            )
        }
    }

    static let withMosquitto = Self.all.filter(\.wantsMosquitto)
    static let alone = Self.all.filter { !$0.wantsMosquitto && !$0.isOfRecord }

    /// The arguments of the command, which is the last one of its block.
    var arguments: [String] {
        let line = self.commands.last { $0.hasPrefix("clamor ") } ?? ""
        return Array(MarkdownPage.words(line[...]).dropFirst())
    }
    /// Whether the block starts mosquitto before.
    var wantsMosquitto: Bool { self.commands.contains { $0.contains("mosquitto -p") } }
}

extension Integration {
    @Suite("Outputs that README and guides show", .takes(2))
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
            try await Self.check(sample, sample.arguments)
        }

        @Test(
            "the same with mosquitto, where the page starts it",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
            arguments: PageSample.withMosquitto
        )
        func outputWithMosquitto(_ sample: PageSample) async throws {
            try await Mosquitto.with { broker in
                var arguments = sample.arguments
                let port = try #require(arguments.firstIndex(of: "-p"))
                arguments[port + 1] = "\(broker.port)"
                try await Self.check(sample, arguments)
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
            record.knee = 975
            record.law = CapacityRecord.Law(
                rateOfOne: 1_000,
                contention: 0.986,
                coherency: 0,
                residuals: [],
                deviation: 0.0542
            )
            let text = record.steps.map { record.line($0) }.joined() + record.summary(files: nil)
            #expect(sample.lines.joined(separator: "\n") + "\n" == text)
        }

        private static func check(_ sample: PageSample, _ given: [String]) async throws {
            let folder = try ScratchFolder()
            var arguments = given
            if let out = arguments.firstIndex(of: "--out") {
                arguments[out + 1] = folder.path("out")
            } else if arguments[0] != "doctor" {
                // Options of the program's own, before those of the load that `capacity` runs.
                arguments.insert(contentsOf: ["--out", folder.path("out")], at: 1)
            }
            // The tests leave the client out that asks the server for its name; a reader's run has it.
            if ["conn", "pub", "sub", "pubsub"].contains(arguments[0]) { arguments += ["--server-name", "on"] }
            let ending = try await ClamorBinary.run(arguments)
            let difference = SampleForm(output: ending.output).firstDifference(
                from: sample.lines,
                chance: sample.chance
            )
            #expect(difference == nil, "\(sample.testDescription): \(difference?.description ?? "")\n\(ending.errors)")
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
