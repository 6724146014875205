import BoardPlayer
import Measurement
import Report
import Testing

/// A scripted run at one moment.
struct BoardMoment: Sendable, CustomTestStringConvertible {
    var name: String
    var run: ScriptedRun
    var step: Int
    var hasWarnings = false

    var testDescription: String { self.name }

    static let all = [
        BoardMoment(name: "connect", run: .mixed(), step: 2), BoardMoment(name: "ramp", run: .mixed(), step: 20),
        BoardMoment(name: "stall", run: .mixed(isWatched: true), step: 39),
        BoardMoment(name: "errors", run: .mixed(isWatched: true), step: 50, hasWarnings: true),
        BoardMoment(name: "drain", run: .mixed(isWatched: true), step: 65),
        BoardMoment(name: "final", run: .mixed(isWatched: true), step: 67),
        BoardMoment(name: "xmpp", run: .xmpp, step: 24), BoardMoment(name: "scenario", run: .scenario, step: 33),
        BoardMoment(name: "closed", run: .closed, step: 100), BoardMoment(name: "sub", run: .subscribers, step: 12),
    ]

    func lines(_ size: WindowSize, isColoured: Bool = false) -> [String] {
        let warnings = self.hasWarnings ? self.run.warnings.sorted { $0.key < $1.key }.map(\.value) : []
        let style = TerminalStyle(isColoured: isColoured)
        return LiveBoard(self.run.after(self.step), size: size, style: style, messages: warnings).lines
    }

    func golden(_ size: WindowSize) -> String { "board-\(self.name)-\(size.columns)x\(size.rows).txt" }
}

@Suite("The board of a running run")
struct LiveBoardTests {
    static let sizes = [(80, 24), (120, 40), (200, 50)].map(WindowSize.init(columns:rows:))

    @Test("shows the run as wanted at each size", arguments: BoardMoment.all, Self.sizes)
    func golden(moment: BoardMoment, size: WindowSize) throws {
        try Golden.check(moment.lines(size).map { $0 + "\n" }.joined(), moment.golden(size))
    }

    @Test("has the same words in colour", arguments: BoardMoment.all, Self.sizes)
    func colour(moment: BoardMoment, size: WindowSize) throws {
        let lines = moment.lines(size, isColoured: true)
        #expect(lines.map(Self.withoutColour) == moment.lines(size))
        if ["errors", "closed"].contains(moment.name) {
            // As text that a diff can show.
            let text = lines.map { $0.replacing("\u{1B}", with: "ESC") + "\n" }.joined()
            try Golden.check(text, "colour-" + moment.golden(size))
        }
    }

    @Test("prints the scripted run in lines as ever")
    func plain() throws {
        var text = ""
        let run = ScriptedRun.mixed(isWatched: true)
        for step in run.steps {
            let errors = step.standing.errors.reduce(0) { $0 + $1.count }
            text += ProgressLine(step.interval, clientsPlanned: run.clients, errors: errors).plain
        }
        try Golden.check(text, "board-plain.txt")
    }

    // MARK: - Any size

    static let extremes = OddRun.all.map(\.name) + ["errors", "scenario"]

    @Test("fits any screen, whatever the figures are", arguments: Self.extremes)
    func fits(name: String) throws {
        let odd = OddRun.all.first { $0.name == name }
        let moment = BoardMoment.all.first { $0.name == name }
        let run = try #require(odd?.run ?? moment.map { $0.run.after($0.step) })
        // Every width and, as 7 and 51 have no common divisor, every height.
        let sizes =
            (80...220).map { WindowSize(columns: $0, rows: 10 + $0 * 7 % 51) }
            + [(80, 10), (80, 60), (220, 10), (220, 60), (0, 0), (1, 1), (79, 50), (200, 9), (-1, -1)].map(
                WindowSize.init(columns:rows:)
            )
        for size in sizes {
            let lines = LiveBoard(run, size: size, style: TerminalStyle(), messages: OddRun.messages).lines
            try #require(lines.count <= max(0, size.rows), "at \(size)")
            let widest = lines.map(\.count).max() ?? 0
            try #require(widest < max(1, size.columns), "at \(size)")
            try #require(lines.allSatisfy { $0.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x3000 } })
        }
    }

    @Test("shows the heading and the progress line on a small screen", arguments: [(79, 24), (80, 9), (60, 5)])
    func small(columns: Int, rows: Int) throws {
        let run = ScriptedRun.mixed().after(20)
        let lines = LiveBoard(run, size: WindowSize(columns: columns, rows: rows), style: TerminalStyle()).lines
        try #require(lines.count == 2)
        #expect(lines[0].hasPrefix("clamor pubsub · fleet telemetry"))
        #expect(lines[0].hasSuffix("elapsed 0:20"))
        #expect(lines[1].hasPrefix("  20 s  measure  1,000/1,000 clients  sent 8,202/s"))
    }

    @Test("keeps what is most important on the lowest screen")
    func lowest() {
        let run = ScriptedRun.mixed(isWatched: true).after(50)
        let lines = LiveBoard(run, size: WindowSize(columns: 80, rows: 10), style: TerminalStyle()).lines
        let titles = lines.map { String($0.prefix(12)).split(separator: " ").first.map(String.init) ?? "" }
        #expect(
            titles == [
                "clamor", "measure", "Verdict", "all", "write", "ack", "delivery", "Clients", "Delivered", "Errors",
            ]
        )
    }

    // MARK: - What is not known

    @Test("calls missing messages outstanding until the end of the drain, and then lost")
    func outstanding() {
        let run = ScriptedRun.mixed(isWatched: true)
        let size = WindowSize(columns: 200, rows: 50)
        let during = LiveBoard(run.after(65), size: size, style: TerminalStyle()).lines.joined(separator: "\n")
        let after = LiveBoard(run.after(67), size: size, style: TerminalStyle()).lines.joined(separator: "\n")
        #expect(during.contains("9 outstanding"))
        #expect(!during.contains("dropped"))
        #expect(after.contains("12 lost (dropped 9, session lost 3)"))
        #expect(!after.contains("outstanding"))
    }

    @Test("leaves out what the run does not know")
    func unknown() {
        var run = LiveRun(ScriptedRun.xmpp.first, course: LiveCourse(), clients: 5)
        run.add(TimelineInterval(second: 0, phase: "measure", seconds: 1, metrics: [], lanes: []))
        let lines = LiveBoard(run, size: WindowSize(columns: 200, rows: 50), style: TerminalStyle()).lines
        let text = lines.joined(separator: "\n")
        for word in ["Per second", "Latency", "Clients", "Delivered", "Received", "Generator", "Server", "Objectives"] {
            #expect(!text.contains(word))
        }
    }

    @Test("shows rates of a longer interval until the next one is long enough")
    func partial() {
        var run = LiveRun(ScriptedRun.closed.first, course: ScriptedRun.closed.course, clients: 1)
        for (second, seconds, rate) in [(0, 1.0, 500.0), (1, 0.02, 9999)] {
            let metrics = [Scripted.counter("publish_sent", ["qos": "1"], rate, seconds: seconds)]
            run.add(TimelineInterval(second: second, phase: "measure", seconds: seconds, metrics: metrics, lanes: []))
        }
        let text = LiveBoard(run, size: WindowSize(columns: 80, rows: 24), style: TerminalStyle()).lines.joined()
        #expect(text.contains("500"))
        #expect(!text.contains("9,999"))
    }

    /// Columns with a figure, without one, and so on, of the 48 that a screen of 120 has for it.
    static let spans: [(intervals: [(second: Int, seconds: Double)], columns: [Int])] = [
        ([(0, 1), (1, 1), (3, 1)], [24, 12, 12]), ([(0, 0.4), (0, 0.6), (1, 1)], [48]), ([(4, 10), (14, 10)], [48]),
        ([(4, 10), (24, 10)], [16, 16, 16]), ([(7, 1)], [48]),
    ]

    @Test("gives each second the same share of its columns, and a gap to one without a sample", arguments: Self.spans)
    func seconds(intervals: [(second: Int, seconds: Double)], columns: [Int]) throws {
        var run = LiveRun(ScriptedRun.closed.first, course: ScriptedRun.closed.course, clients: 1)
        for (second, seconds) in intervals {
            let metrics = [Scripted.duration("delivery_duration", ["qos": "1"], p99: 0.001, count: 100)]
            let metric = try #require(metrics[0])
            run.add(TimelineInterval(second: second, phase: "measure", seconds: seconds, metrics: [metric], lanes: []))
        }
        let lines = LiveBoard(run, size: WindowSize(columns: 120, rows: 12), style: TerminalStyle()).lines
        let row = try #require(lines.first { $0.hasPrefix("  delivery") })
        let line = columns.enumerated().map { String(repeating: $0 % 2 == 0 ? "█" : " ", count: $1) }.joined()
        #expect(row.contains("  \(line) "))
    }

    /// Blocks in the lowest row of a chart: two charts beside each other, or above each other.
    static let chartColumns = [(WindowSize(columns: 200, rows: 50), 170), (WindowSize(columns: 120, rows: 40), 96)]

    @Test("fills the columns of its charts from the first second on", arguments: [1, 2, 8, 60, 100], Self.chartColumns)
    func fills(seconds: Int, screen: (size: WindowSize, columns: Int)) {
        let lines = LiveBoard(ScriptedRun.closed.after(seconds), size: screen.size, style: TerminalStyle()).lines
        let lowest = lines.filter { $0.contains(" 0 │") }
        #expect(!lowest.isEmpty)
        for line in lowest { #expect(line.count { "▁▂▃▄▅▆▇█".contains($0) } == screen.columns) }
    }

    static let flights: [(acked: [Double], oldest: Double, hasFailed: Bool, line: String)] = [
        ([100, 100], 0.004, false, "0 without an answer · oldest outstanding 4.00 ms"),
        ([100, 101], 0, false, "0 without an answer"),
        ([100, 0], 0.9, false, "100 without an answer · oldest outstanding 900 ms"),
        ([100, 0, 0, 0], 2.9, true, "300 without an answer or failed · oldest outstanding 2.90 s"),
    ]

    @Test("shows what waits for an answer, and the age of the oldest", arguments: Self.flights)
    func inFlight(_ row: (acked: [Double], oldest: Double, hasFailed: Bool, line: String)) {
        var run = LiveRun(ScriptedRun.closed.first, course: ScriptedRun.closed.course, clients: 1)
        var standing = LiveStanding()
        if row.hasFailed { standing.errors = [ErrorRecord(kind: "timeout", count: 1, firstAt: "", example: "")] }
        for (second, acked) in row.acked.enumerated() {
            let metrics = [
                Scripted.counter("publish_offered", ["qos": "0"], 50),
                Scripted.counter("publish_offered", ["qos": "1"], 100),
                Scripted.counter("publish_acked", ["qos": "1"], acked),
                Scripted.gauge("oldest_outstanding", [:], row.oldest, unit: "seconds"),
            ]
            let interval = TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: metrics, lanes: [])
            run.add(interval, standing)
        }
        let lines = LiveBoard(run, size: WindowSize(columns: 80, rows: 24), style: TerminalStyle()).lines
        #expect(lines.filter { $0.hasPrefix("In flight") } == ["In flight   \(row.line)"])
    }

    @Test("shows in a stall what is in flight, on the lowest screen too", arguments: Self.sizes + [lowestSize])
    func stalled(size: WindowSize) {
        let run = ScriptedRun.mixed(isWatched: true)
        let lines = LiveBoard(run.after(39), size: size, style: TerminalStyle()).lines
        #expect(lines.contains { $0.hasPrefix("In flight ") && $0.contains("oldest outstanding 2.90 s") })
    }

    static let lowestSize = WindowSize(columns: 80, rows: 10)

    @Test("joins series under one name by the highest, and says so")
    func joined() {
        let moment = BoardMoment.all.first { $0.name == "scenario" }
        let lines = moment?.lines(WindowSize(columns: 80, rows: 24)) ?? []
        #expect(lines.contains { $0.contains("devices    ≤") })
        #expect(lines.contains { $0.contains("operators ") && !$0.contains("≤") })
    }

    static func withoutColour(_ line: String) -> String {
        var text = ""
        var rest = line[...]
        while let escape = rest.firstIndex(of: "\u{1B}") {
            text += rest[..<escape]
            rest = rest[escape...].drop { $0 != "m" }.dropFirst()
        }
        return text + rest
    }
}
