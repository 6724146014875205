/// Segment `index` of `count`, from 1, and what names the run that it is of.
struct SegmentPlace: Hashable {
    var index: Int
    var count: Int
    var run = ""

    /// Reads `2/4`.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isNumber } }),
            let index = Int(parts[0]), let count = Int(parts[1]), (1...SegmentOptions.mostSegments).contains(count),
            (1...count).contains(index)
        else { return nil }
        self.index = index
        self.count = count
    }

    /// Reads the environment variables that a scheduler sets for its processes.
    init(environment: [String: String]) throws(QuantityError) {
        let present = Source.allCases.filter { $0.isPresent(in: environment) }
        guard let source = present.first else {
            if environment[Source.step.rawValue] != nil {
                throw QuantityError(
                    "SLURM_PROCID without SLURM_STEP_ID is the batch script's own, which is no task; start the segments "
                        + "with srun"
                )
            }
            let names = Source.allCases.map(\.rawValue).joined(separator: ", ")
            throw QuantityError("the environment has none of \(names); write the segment like 2/4")
        }
        guard present.count == 1 else {
            let names = present.map(\.rawValue).joined(separator: " and ")
            throw QuantityError("the environment has \(names), and which is meant is not known; write it like 2/4")
        }
        self =
            switch source {
            case .kubernetes: try Self.of(source, "CLAMOR_SEGMENTS", [], environment)
            case .array: try Self.ofArray(environment)
            // A job may have several steps, one after the other, and all tasks of a step run at once.
            case .step: try Self.of(source, "SLURM_NTASKS", ["SLURM_JOB_ID", "SLURM_STEP_ID"], environment)
            case .openMPI: try Self.of(source, "OMPI_COMM_WORLD_SIZE", ["PMIX_NAMESPACE"], environment)
            }
    }

    /// Schedulers, by the variable that says which of its processes this one is.
    private enum Source: String, CaseIterable {
        case kubernetes = "JOB_COMPLETION_INDEX"
        case array = "SLURM_ARRAY_TASK_ID"
        case step = "SLURM_PROCID"
        case openMPI = "OMPI_COMM_WORLD_RANK"

        func isPresent(in environment: [String: String]) -> Bool {
            guard environment[self.rawValue] != nil else { return false }
            // A batch script has SLURM_PROCID=0 and the SLURM_NTASKS of its job: only a task of srun has a step too.
            let isTask = environment["SLURM_STEP_ID"] != nil
            let isInArray = environment[Self.array.rawValue] != nil
            // Several tasks divide the load of their array element; one alone is that element.
            let isOneOfMany = isTask && environment["SLURM_NTASKS"] != "1"
            return switch self {
            case .kubernetes, .openMPI: true
            case .array: !isOneOfMany
            case .step: isInArray ? isOneOfMany : isTask
            }
        }
    }

    private static func number(_ name: String, _ environment: [String: String]) throws(QuantityError) -> Int {
        guard let text = environment[name] else { throw QuantityError("\(name) is missing in the environment") }
        guard let number = Int(text), (0..<Int.max).contains(number) else {
            throw QuantityError("\(name) is '\(text)', and should be a whole number")
        }
        return number
    }

    private init(index: Int, count: Int, run: String, of name: String) throws(QuantityError) {
        guard (1...SegmentOptions.mostSegments).contains(count), (1...count).contains(index) else {
            throw QuantityError("\(name): segment \(index) of \(count) is out of range")
        }
        self.index = index
        self.count = count
        self.run = run
    }

    /// A process that its scheduler counts from 0; `names`: variables that together name the run.
    private static func of(
        _ source: Source,
        _ count: String,
        _ names: [String],
        _ environment: [String: String]
    ) throws(QuantityError) -> SegmentPlace {
        let count = try self.number(count, environment)
        let index = try self.number(source.rawValue, environment)
        let run = names.compactMap { environment[$0] }.joined(separator: ".")
        return try SegmentPlace(index: index + 1, count: count, run: run, of: source.rawValue)
    }

    private static func ofArray(_ environment: [String: String]) throws(QuantityError) -> SegmentPlace {
        let id = try self.number("SLURM_ARRAY_TASK_ID", environment)
        let least = try self.number("SLURM_ARRAY_TASK_MIN", environment)
        let most = try self.number("SLURM_ARRAY_TASK_MAX", environment)
        let step = try self.number("SLURM_ARRAY_TASK_STEP", environment)
        guard step > 0, id >= least, most >= id, (id - least) % step == 0, (most - least) % step == 0 else {
            throw QuantityError(
                "task \(id) is none of \(least) to \(most) in steps of \(step) (SLURM_ARRAY_TASK_MIN, _MAX, _STEP)"
            )
        }
        let count = (most - least) / step + 1
        // Of a list such as 1,5,6 the step says nothing.
        if let tasks = environment["SLURM_ARRAY_TASK_COUNT"], Int(tasks) != count {
            throw QuantityError(
                "the array has \(tasks) tasks (SLURM_ARRAY_TASK_COUNT), and \(least) to \(most) in steps of \(step) are "
                    + "\(count); number them without gaps"
            )
        }
        let run = environment["SLURM_ARRAY_JOB_ID"] ?? ""
        return try SegmentPlace(index: (id - least) / step + 1, count: count, run: run, of: "SLURM_ARRAY_TASK_ID")
    }
}
