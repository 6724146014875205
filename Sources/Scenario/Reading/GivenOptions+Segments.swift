import Foundation
import LoadEngine
import Workloads

// The part of the load that is this process's, and loads that can be divided.
extension GivenOptions {
    /// Behind thresholds and seed.
    mutating func readSegments(into options: inout LoadOptions) {
        options.segment.isChild = self[\.isChild] ?? false
        if options.segment.isChild {
            options.segment.realtimeOffset = self.environment["CLAMOR_REALTIME_OFFSET"].flatMap { Int64($0) }
        }
        // So that tests have clocks of several hosts on one.
        options.segment.clockAhead = self.environment["CLAMOR_CLOCK_AHEAD"].flatMap { Int64($0) } ?? 0
        options.segment.clockGain = self.environment["CLAMOR_CLOCK_GAIN"].flatMap { Int64($0) } ?? 0
        if let text = self[\.startAt] { options.segment.startAt = self.startAt(text) }
        if let count = self[\.processes] {
            options.segment.processes = SegmentOptions.Processes(count: count, arguments: self.arguments)
        }
        if let text = self[\.segment] { self.read(segment: text, into: &options) }
        options.segment.expected = self[\.segmentCount]
        self.readCoordinator(into: &options)
        if self.isGiven(\.processes), self.isGiven(\.segment), !self.isGiven(\.coordinator) {
            self.refuse(
                \.processes,
                "starts the segments itself; leave \(\.segment) out, or join a coordinator with \(\.coordinator)"
            )
        }
        guard options.segment.part != nil, !options.segment.isLed else { return }
        for (index, sentence) in options.thresholds.enumerated() where sentence.split(separator: " ").last == "abort" {
            self.refuse(
                \.thresholds,
                "'\(sentence)': abort asks of the whole run what a segment sees in part; leave it out",
                at: index
            )
        }
    }

    private mutating func read(segment text: String, into options: inout LoadOptions) {
        let place = text == "auto" ? self.segmentOfEnvironment : SegmentPlace(text)
        guard let place else {
            if text != "auto" {
                self.refuse(\.segment, "'\(text)' is no segment; write it like 2/4, from 1/4 to 4/4, or auto")
            }
            return
        }
        options.segment.part = PlanSegment(index: place.index - 1, of: place.count)
        options.segment.run = self.environment["CLAMOR_RUN"] ?? place.run
        if options.seed == nil, !self.isGiven(\.coordinator) {
            self.refuse(\.segment, "needs \(\.seed, "N"), the same for all segments, so that they have one plan")
        }
    }

    private var segmentOfEnvironment: SegmentPlace? {
        mutating get {
            do throws(QuantityError) {
                return try SegmentPlace(environment: self.environment)
            } catch {
                return self.refused(\.segment, "auto: \(error.description)")
            }
        }
    }

    private mutating func startAt(_ text: String) -> Int64? {
        self.reading(\.startAt) { () throws(QuantityError) in
            try StartText.parse(text, now: Int64(Date().timeIntervalSince1970 * 1e9))
        }
    }

    // MARK: - Loads that can be divided

    /// Refuses a load that cannot be divided.
    mutating func checkSegments(_ options: MQTTOptions) { self.refuse(options.segmentProblems()) }
    mutating func checkSegments(_ options: XMPPOptions) { self.refuse(options.segmentProblems) }

    private mutating func refuse(_ problems: [OptionWords]) {
        for words in problems { self.refuse(self.dividing, words) }
    }

    private static let mixed: OptionWords =
        "requests are balanced inside a segment, and messages of other groups cross segments; give each kind a run of its own"

    private var dividing: AnyOptionKey {
        if self.command == .coordinate { return \OptionTable.segmentCount }
        return self.isGiven(\.processes) ? \OptionTable.processes : \OptionTable.segment
    }

    /// The same for each group of a scenario.
    mutating func checkSegments(_ scenario: ScenarioOptions, isSeries: Bool) {
        let segment = scenario.common.segment
        guard segment.count != nil else { return }
        let option = self.dividing
        if isSeries, segment.part != nil {
            self.refuse(
                option,
                "a segment does not know the others' runs; divide them with \(\.processes), or leave it out"
            )
        }
        // Those of the command line come first, and are checked already.
        for sentence in scenario.common.thresholds.dropFirst(self[\.thresholds]?.count ?? 0)
        where segment.part != nil && !segment.isLed && sentence.split(separator: " ").last == "abort" {
            self.refuse(
                option,
                "the file's threshold '\(sentence)': abort asks of the whole run what a segment sees in part; leave it out"
            )
        }
        let hasMessages = scenario.hasFollowedMessages
        let spans = scenario.spansSegments
        for group in scenario.groups {
            let problems =
                switch group.work {
                case .mqtt(let options):
                    options.segmentProblems(server: \OptionTable.target)
                        + (spans && options.answersSegments ? [Self.mixed] : [])
                        + (hasMessages && options.hearsGroups
                            ? options.common.sharingProblems(server: \OptionTable.target) : [])
                case .xmpp(let options): options.segmentProblems
                }
            for words in problems { self.refuse(option, "\(group.name): \(words)") }
        }
    }
}

extension SegmentOptions.Processes {
    /// `arguments`: of the process that starts the segments; what it decides for them, and what only it has, are left out.
    package init(count: Int, arguments: [String]) {
        let specs = CommandName(arguments: arguments).map { OptionTable.specs(of: $0) } ?? []
        let options = CommandLineWords(arguments, specs).options.reversed()
        func without(_ scopes: Set<OptionScope>) -> [String] {
            var words = arguments
            for option in options where scopes.contains(option.spec.scope) { words.removeSubrange(option.range) }
            return words
        }
        let own: Set<OptionScope> = [.process, .command]
        self.init(count: count, first: without(own), others: without(own.union([.single])))
    }
}
