import Foundation
import LoadEngine
import RunControl
import Scenario
import Testing
import clamor

@Suite("Parts of a load on the command line")
struct SegmentOptionsTests {
    struct Place: Sendable, CustomTestStringConvertible {
        let environment: [String: String]
        let index: Int
        let count: Int
        var testDescription: String { "\(self.environment.sorted { $0.key < $1.key })" }

        init(_ index: Int, of count: Int, _ environment: [String: String]) {
            self.index = index
            self.count = count
            self.environment = environment
        }
    }

    private static func slurm(_ id: Int, _ least: Int, _ most: Int, _ step: Int) -> [String: String] {
        [
            "SLURM_ARRAY_TASK_ID": "\(id)", "SLURM_ARRAY_TASK_MIN": "\(least)", "SLURM_ARRAY_TASK_MAX": "\(most)",
            "SLURM_ARRAY_TASK_STEP": "\(step)",
        ]
    }

    /// A task of `srun`, or, without a step, a batch script.
    private static func task(_ id: Int, of count: Int, step: String? = "0") -> [String: String] {
        var environment = ["SLURM_JOB_ID": "77", "SLURM_PROCID": "\(id)", "SLURM_NTASKS": "\(count)"]
        environment["SLURM_STEP_ID"] = step
        return environment
    }

    static let places = [
        Place(1, of: 4, ["JOB_COMPLETION_INDEX": "0", "CLAMOR_SEGMENTS": "4"]),
        Place(4, of: 4, ["JOB_COMPLETION_INDEX": "3", "CLAMOR_SEGMENTS": "4"]),
        Place(1, of: 3, Self.slurm(0, 0, 2, 1)),
        Place(3, of: 3, Self.slurm(3, 1, 3, 1)),
        Place(2, of: 4, Self.slurm(7, 5, 11, 2)),
        Place(2, of: 2, Self.slurm(2, 1, 2, 1).merging(["SLURM_ARRAY_TASK_COUNT": "2"]) { $1 }),
        Place(3, of: 8, ["OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8"]),
        Place(1, of: 3, Self.task(0, of: 3)),
        Place(3, of: 3, Self.task(2, of: 3, step: "4")),
        Place(1, of: 1, Self.task(0, of: 1)),
        // Tasks of a step in an array divide the load of their array element; a step of one task is that element.
        Place(2, of: 4, Self.slurm(3, 1, 3, 1).merging(Self.task(1, of: 4)) { $1 }),
        Place(3, of: 3, Self.slurm(3, 1, 3, 1).merging(Self.task(0, of: 1)) { $1 }),
        // The variables of a batch script are those of no task.
        Place(3, of: 3, Self.slurm(3, 1, 3, 1).merging(Self.task(0, of: 4, step: nil)) { $1 }),
        Place(
            3,
            of: 8,
            ["OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8"].merging(Self.task(0, of: 4, step: nil)) { $1 }
        ),
    ]

    @Test("auto takes index and size from the environment", arguments: places)
    func environment(_ place: Place) throws {
        let options = try options("pub -c 8 --seed 1 --segment auto", environment: place.environment)
        #expect(options.segment.part == PlanSegment(index: place.index - 1, of: place.count))
    }

    @Test("a segment is written from 1/N to N/N", arguments: [(1, 1), (1, 4), (4, 4), (17, 1_000)])
    func written(_ index: Int, _ count: Int) throws {
        let options = try options("conn -c 1000 --seed 1 --segment \(index)/\(count)")
        #expect(options.segment.part == PlanSegment(index: index - 1, of: count))
        #expect(options.clients == 1_000 && options.seed == 1)
    }

    @Test("without one the process does all of it")
    func none() throws {
        let segment = try options("pub -c 8").segment
        #expect(segment.part == nil && segment.processes == nil && segment.startAt == nil && !segment.isChild)
    }

    @Test("what names the run is CLAMOR_RUN, else the job's id, with that of the step")
    func run() throws {
        var environment = Self.task(1, of: 2, step: "3")
        func name() throws -> String {
            try options("pub -c 8 --seed 1 --segment auto", environment: environment).segment.run
        }
        #expect(try name() == "77.3")
        environment = Self.slurm(1, 1, 2, 1)
        #expect(try name() == "")
        environment["SLURM_ARRAY_JOB_ID"] = "77"
        #expect(try name() == "77")
        environment["CLAMOR_RUN"] = "nightly"
        #expect(try name() == "nightly")
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let line: String
        let environment: [String: String]
        let answer: String
        var testDescription: String { "\(self.line) \(self.environment.sorted { $0.key < $1.key })" }

        init(_ line: String, _ answer: String) { self.init(line, [:], answer) }

        init(_ line: String, _ environment: [String: String], _ answer: String) {
            self.line = line
            self.environment = environment
            self.answer = answer
        }
    }

    private static let form = "is no segment; write it like 2/4, from 1/4 to 4/4, or auto"

    static let refusals = [
        Refusal("pub -c 8 --seed 1 --segment 0/4", "clamor pub: --segment: '0/4' \(form)"),
        Refusal("pub -c 8 --seed 1 --segment 5/4", "clamor pub: --segment: '5/4' \(form)"),
        Refusal("pub -c 8 --seed 1 --segment 2", "clamor pub: --segment: '2' \(form)"),
        Refusal("pub -c 8 --seed 1 --segment 1/2/3", "clamor pub: --segment: '1/2/3' \(form)"),
        Refusal("pub -c 8 --seed 1 --segment=-1/2", "clamor pub: --segment: '-1/2' \(form)"),
        Refusal("pub -c 8 --seed 1 --segment +1/2", "clamor pub: --segment: '+1/2' \(form)"),
        Refusal(
            "pub -c 8 --segment 1/2",
            "clamor pub: --segment: needs --seed N, the same for all segments, so that they have one plan"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            "clamor pub: --segment: auto: the environment has none of JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID, "
                + "SLURM_PROCID, OMPI_COMM_WORLD_RANK; write the segment like 2/4"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            ["JOB_COMPLETION_INDEX": "0"],
            "clamor pub: --segment: auto: CLAMOR_SEGMENTS is missing in the environment"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            ["JOB_COMPLETION_INDEX": "4", "CLAMOR_SEGMENTS": "4"],
            "clamor pub: --segment: auto: JOB_COMPLETION_INDEX: segment 5 of 4 is out of range"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            ["JOB_COMPLETION_INDEX": "x", "CLAMOR_SEGMENTS": "4"],
            "clamor pub: --segment: auto: JOB_COMPLETION_INDEX is 'x', and should be a whole number"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            ["JOB_COMPLETION_INDEX": "9223372036854775807", "CLAMOR_SEGMENTS": "4"],
            "clamor pub: --segment: auto: JOB_COMPLETION_INDEX is '9223372036854775807', and should be a whole number"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            slurm(4, 1, 5, 2),
            "clamor pub: --segment: auto: task 4 is none of 1 to 5 in steps of 2 (SLURM_ARRAY_TASK_MIN, _MAX, _STEP)"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            slurm(5, 1, 6, 1).merging(["SLURM_ARRAY_TASK_COUNT": "3"]) { $1 },
            "clamor pub: --segment: auto: the array has 3 tasks (SLURM_ARRAY_TASK_COUNT), and 1 to 6 in steps of 1 are "
                + "6; number them without gaps"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            slurm(1, 1, 2, 1).merging(["OMPI_COMM_WORLD_RANK": "0"]) { $1 },
            "clamor pub: --segment: auto: the environment has SLURM_ARRAY_TASK_ID and OMPI_COMM_WORLD_RANK, and which "
                + "is meant is not known; write it like 2/4"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            task(0, of: 3).merging(["JOB_COMPLETION_INDEX": "0"]) { $1 },
            "clamor pub: --segment: auto: the environment has JOB_COMPLETION_INDEX and SLURM_PROCID, and which is meant "
                + "is not known; write it like 2/4"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            task(0, of: 3).merging(["OMPI_COMM_WORLD_RANK": "0"]) { $1 },
            "clamor pub: --segment: auto: the environment has SLURM_PROCID and OMPI_COMM_WORLD_RANK, and which is meant "
                + "is not known; write it like 2/4"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            task(0, of: 3, step: nil),
            "clamor pub: --segment: auto: SLURM_PROCID without SLURM_STEP_ID is the batch script's own, which is no task; "
                + "start the segments with srun"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            ["SLURM_PROCID": "0", "SLURM_STEP_ID": "0"],
            "clamor pub: --segment: auto: SLURM_NTASKS is missing in the environment"
        ),
        Refusal(
            "pub -c 8 --seed 1 --segment auto",
            task(3, of: 3),
            "clamor pub: --segment: auto: SLURM_PROCID: segment 4 of 3 is out of range"
        ),
        Refusal(
            "pub -c 3 --seed 1 --segment 1/4",
            "clamor pub: --segment: 4 segments of -c 3 would not have a client each; ask for fewer"
        ),
        Refusal(
            "sub -c 3 --processes 4",
            "clamor sub: --processes: 4 segments of -c 3 would not have a client each; ask for fewer"
        ),
        Refusal(
            "pubsub -c 8 --subscribers 3 --seed 1 --segment 1/4",
            "clamor pubsub: --segment: 4 segments of --subscribers 3 would not have a client each; ask for fewer"
        ),
        Refusal(
            "pubsub -c 6 --subscribers 12 --seed 1 --segment 1/4",
            "clamor pubsub: --segment: needs --start-at TIME, the same for all segments, or CLAMOR_RUN in the "
                + "environment, so that they know the messages of their run"
        ),
        Refusal(
            "pubsub -h embedded -c 8 -t one --processes 2",
            "clamor pubsub: --processes: each segment would have an embedded broker of its own, where its subscribers "
                + "hear no other segment; start one with clamor broker, and name it with -h"
        ),
        Refusal(
            "pubsub -c 3 --subscribers 2 --topology fan-in --processes 4",
            "clamor pubsub: --processes: 4 segments of -c 3 and --subscribers 2 would not have a client each; ask for "
                + "fewer"
        ),
        Refusal(
            "pubsub --topology fan-out --subscribers 8 -L 100 --processes 4",
            "clamor pubsub: --processes: segments without a publisher would not know when -L is spent; give --duration "
                + "as well"
        ),
        Refusal(
            "pubsub -c 3000 --topology fan-in --subscribers 2000 --processes 4",
            "clamor pubsub: --processes: 3000 publishers that 2000 subscriptions hear are over 4194304 streams, which is "
                + "all that a merge follows; ask for fewer, or take -s 15 or less, without a ledger"
        ),
        Refusal(
            "pubsub -c 8 --topology request -q 1 --seed 1 --segment 1/4",
            "clamor pubsub: --segment: with --topology request segments answer each other's requests, and have to end "
                + "together; start them with --processes, or join a coordinator with --coordinator"
        ),
        Refusal(
            "pubsub -h embedded -c 8 --topology request -q 1 --processes 4",
            "clamor pubsub: --processes: each segment would have an embedded broker of its own, where its subscribers "
                + "hear no other segment; start one with clamor broker, and name it with -h"
        ),
        Refusal(
            "pub -c 8 --processes 2 --segment 1/2 --seed 1",
            "clamor pub: --processes: starts the segments itself; leave --segment out, or join a coordinator with "
                + "--coordinator"
        ),
        Refusal("pub -c 8 --processes 0", "clamor pub: --processes: '0' is not a whole number of 1 to 1024"),
        Refusal(
            "xmpp message --jid u%i@h --password p -c 8 --rate 1/s --pairing hotspot --processes 2",
            "clamor xmpp message: --processes: with --pairing hotspot clients of all segments would write to one, where "
                + "in this build no ledger follows them; take another pairing, or one process"
        ),
        Refusal(
            "xmpp message --jid u%i@h --password p -c 7 --processes 4",
            "clamor xmpp message: --processes: 4 segments of -c 7 would not have two clients each; ask for fewer"
        ),
        Refusal(
            "xmpp login --jid u%i@h --password p --register -c 8 --processes 2",
            "clamor xmpp login: --processes: accounts are made by one process in this build; create them first, with "
                + "--keep"
        ),
        Refusal(
            "pub -c 8 --start-at 1000",
            "clamor pub: --start-at: 1970-01-01T00:16:40.000000Z is past"
        ),
        Refusal(
            "pub -c 8 --start-at soon",
            "clamor pub: --start-at: 'soon' is no moment; write it like 2026-11-21T01:37:10Z, or in seconds since 1970"
        ),
    ]

    @Test("what cannot be is refused, in one line", arguments: refusals)
    func refuses(_ refusal: Refusal) throws {
        let words = refusal.line.split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(words, environment: refusal.environment) else {
            Issue.record("'\(refusal.line)' is taken")
            return
        }
        try #require(lines.count == 1)
        // The current time follows.
        #expect(lines.first == refusal.answer || refusal.answer.hasSuffix("past") && lines[0].hasPrefix(refusal.answer))
    }

    @Test(
        "publishers and subscribers may be in different segments",
        arguments: [
            "--topology fan-in -c 8", "--topology fan-out --subscribers 8", "--topology shared -c 4",
            "-c 6 --subscribers 12", "-c 8 -t one",
        ]
    )
    func topologies(_ shape: String) throws {
        _ = try options("pubsub \(shape) --seed 1 --segment 4/4", environment: ["CLAMOR_RUN": "nightly"])
        _ = try options("pubsub \(shape) --seed 1 --segment 4/4 --start-at \(Int(Date().timeIntervalSince1970) + 60)")
        _ = try options("pubsub \(shape) --processes 4")
    }

    @Test("writers and readers of messages are in one segment", arguments: ["neighbour", "random"])
    func messages(_ pairing: String) throws {
        let line = "xmpp message --jid u%i@h --password p -c 8 --pairing \(pairing)"
        let words = "\(line) --processes 4".split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(words, environment: [:]) else { return }
        Issue.record("\(lines)")
    }

    @Test("a threshold that ends the run would end a part of it by what it sees")
    func abort() {
        let load = ["pub", "-c", "8", "--seed", "1", "--threshold", "errors count == 0 abort"]
        // The process that started the segments sees the whole.
        if case .refused(let lines) = Invocation.parse(load + ["--processes", "2"]) { Issue.record("\(lines)") }
        guard case .refused(let lines) = Invocation.parse(load + ["--segment", "1/2"]) else {
            Issue.record("it is taken")
            return
        }
        #expect(
            lines == [
                "clamor pub: --threshold: 'errors count == 0 abort': abort asks of the whole run what a segment sees in "
                    + "part; leave it out"
            ]
        )
    }

    struct Moment: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let time: Int64?

        init(_ text: String, _ time: Int64?) {
            self.testDescription = text
            self.time = time
        }
    }

    /// 2026-11-21T01:37:09Z.
    private static let now: Int64 = 1_795_225_029_000_000_000

    static let moments = [
        Moment("2026-11-21T01:37:10Z", now + 1_000_000_000),
        Moment("2026-11-21T01:37:10.25Z", now + 1_250_000_000),
        Moment("2026-11-21T01:37:10.123456789Z", now + 1_123_456_789),
        Moment("2026-11-21T02:37:10+01:00", now + 1_000_000_000),
        Moment("2026-11-20T20:07:10-05:30", now + 1_000_000_000),
        Moment("1795225030", now + 1_000_000_000),
        Moment("1795225029.5", now + 500_000_000),
        Moment("2026-11-21T01:37:09Z", nil),
        Moment("2026-11-21T01:37:10", nil),
        Moment("2026-11-31T01:37:10Z", nil),
        Moment("2026-11-21T25:37:10Z", nil),
        Moment("2026-11-21T01:37:10.Z", nil),
        Moment("2026-11-21T01:37:10+1:00", nil),
        Moment("2028-11-21T01:37:10Z", nil),
        Moment("1795225029123", nil),
        Moment("", nil),
    ]

    @Test("a moment to begin at is read exactly, or refused", arguments: moments)
    func moment(_ moment: Moment) {
        #expect((try? StartText.parse(moment.testDescription, now: Self.now)) == moment.time)
    }

    @Test("a segment's command line is that of the whole without what is its parent's")
    func arguments() throws {
        let line =
            "pubsub -h embedded -c 8 --processes 4 --out x --json --strict --seed=5 --threads 2 --junit j --threshold a"
        let words = line.split(separator: " ").map(String.init)
        let processes = SegmentOptions.Processes(count: 4, arguments: words)
        #expect(
            processes.arguments(of: 1, seed: 9, threads: 3, directory: "x.partial/segments/2").joined(separator: " ")
                == "pubsub -h embedded -c 8 --threshold a --segment 2/4 --child --seed 9 --threads 3 "
                + "--out x.partial/segments/2 --quiet"
        )
    }
}
