import Measurement

// The rate shape of a group, for which there is no flag.
extension ScenarioReader {
    /// Settings of a group that are not flags of its command.
    struct Pacing {
        var shape = RateShape.level
        var burst: (size: Int, place: ScenarioPlace)?
        var poisson: ScenarioPlace?
        var think: (time: Int64, place: ScenarioPlace)?
        /// The time between messages of each client.
        var every: (time: Int64, place: ScenarioPlace)?
        /// For a shape: its place, and the minimum length of the load to complete it.
        var need: (place: ScenarioPlace, length: Int64?)?

        /// `group`: the group's name, which seeds its random arrivals, independent of its position in the file.
        func apply(to options: inout LoadOptions, group: String) {
            options.shape = self.shape
            if let burst = self.burst { options.arrivals = .bursts(burst.size) }
            if self.poisson != nil { options.arrivals = .poisson(number: group.stableHash) }
            if let think = self.think { options.think = think.time }
        }
    }

    /// Keys of a section with a pace that are no flags.
    package static let paceKeys = ["every", "arrivals", "burst", "think"]

    /// Reads one of them.
    ///
    /// - Returns: whether it was one.
    mutating func pacing(_ given: Entry, _ sources: inout Sources) -> Bool {
        let parts = given.key.split(separator: ".").map(String.init)
        guard parts.count == 2, sources.command.section == parts[0]
        else { return false }
        let name = "\(sources.group).\(given.key)"
        switch parts[1] {
        case "arrivals":
            guard let text = self.text(given.value, of: name) else { return true }
            if text == "poisson" {
                sources.pacing.poisson = given.place
            } else if text != "even" {
                self.report(given.value.place, "\(name): '\(text)' is not even or poisson")
            }
        case "burst":
            guard let text = self.text(given.value, of: name) else { return true }
            guard let size = Int(text), (1...1_000_000).contains(size) else {
                self.report(given.value.place, "\(name): '\(text)' is not a whole number of 1 to 1000000")
                return true
            }
            sources.pacing.burst = (size, given.place)
        case "every":
            if let time = self.quantity(given.value, of: name, parse: Self.length) {
                sources.pacing.every = (time, given.place)
            }
        case "think":
            if let time = self.quantity(given.value, of: name, parse: Self.length) {
                sources.pacing.think = (time, given.place)
            }
        default: return false
        }
        return true
    }

    /// `rate: { from: 100/s, to: 5000/s, over: 1m }` or `rate: { steps: [1000/s, 2000/s], every: 30s }`.
    ///
    /// - Returns: the highest rate.
    mutating func shape(_ given: Entry, _ sources: inout Sources) -> Double? {
        guard case .mapping(let entries) = given.value.content else { return nil }
        let name = "\(sources.group).\(given.key)"
        let isRamp = entries.contains { ["from", "to", "over"].contains($0.key) }
        let keys = isRamp ? ["from", "to", "over"] : ["steps", "every"]
        let values = self.values(entries, keys, of: name)
        for key in isRamp ? ["from", "to"] : keys where values[key] == nil {
            return self.reported(
                given.value.place,
                "\(name): \(key) is missing; write { from: 100/s, to: 5000/s } or { steps: [1000/s, 2000/s], every: 30s }"
            )
        }
        return isRamp ? self.ramp(values, name, given, &sources) : self.steps(values, name, &sources)
    }

    private mutating func ramp(
        _ values: [String: ScenarioValue],
        _ name: String,
        _ given: Entry,
        _ sources: inout Sources
    ) -> Double? {
        let from = values["from"].flatMap { self.quantity($0, of: "\(name).from", parse: Self.rate) }
        let to = values["to"].flatMap { self.quantity($0, of: "\(name).to", parse: Self.rate) }
        let over = values["over"].flatMap { self.quantity($0, of: "\(name).over", parse: Self.length) }
        guard let from, let to, over != nil || values["over"] == nil else { return nil }
        guard from > 0 || to > 0 else {
            return self.reported(given.value.place, "\(name): from and to are both 0; one of them must be above")
        }
        sources.pacing.shape = .ramp(from: from, to: to, over: over)
        sources.pacing.need = (given.value.place, over)
        return max(from, to)
    }

    private mutating func steps(
        _ values: [String: ScenarioValue],
        _ name: String,
        _ sources: inout Sources
    ) -> Double? {
        guard let list = values["steps"], case .list(let steps) = list.content, !steps.isEmpty else {
            let place = values["steps"]?.place ?? sources.place
            return self.reported(place, "\(name).steps: is no list of rates; write it like [1000/s, 2000/s]")
        }
        let rates = steps.compactMap { self.quantity($0, of: "\(name).steps", parse: Self.rate) }
        let every = values["every"].flatMap { self.quantity($0, of: "\(name).every", parse: Self.length) }
        guard let every, rates.count == steps.count else { return nil }
        guard let highest = rates.max(), highest > 0 else {
            return self.reported(list.place, "\(name).steps: all are 0; one of them must be above")
        }
        let (length, overflow) = every.multipliedReportingOverflow(by: Int64(rates.count))
        guard !overflow, length <= Self.longest else {
            return self.reported(list.place, "\(name).steps: together they are longer than a year; shorten them")
        }
        sources.pacing.shape = .steps(rates, every: every)
        // The last one has to begin, and stays.
        sources.pacing.need = (list.place, length - every + 1)
        return highest
    }

    /// A rate that may be 0.
    private static func rate(_ text: String) throws(QuantityError) -> Double {
        ["0", "0/s"].contains(text) ? 0 : try RateText.parse(text)
    }

    private static func length(_ text: String) throws(QuantityError) -> Int64 {
        let length = try DurationText.parse(text)
        if length == 0 { throw QuantityError("'\(text)' is no time; write it like 30s") }
        return length
    }

    /// `every: 60s` is the interval of each client, in other words.
    mutating func assumeInterval(_ sources: inout Sources) {
        guard let every = sources.pacing.every, let section = sources.command.section else { return }
        for (name, isGiven) in [
            ("rate", sources.given.isGiven(\.rate)), ("interval", sources.given.isGiven(\.messageInterval)),
        ] where isGiven {
            return self.report(
                every.place,
                "\(sources.group).\(section).every: \(section).\(name) sets the pace too; leave one of the two out"
            )
        }
        sources.given.assume(\.messageInterval, every.time)
    }

    // MARK: - With the rest of the group

    /// Reports settings that contradict each other, with the remedy.
    mutating func check(_ pacing: Pacing, _ options: LoadOptions, _ sources: Sources) {
        let group = sources.group
        if options.pacing == .closedLoop {
            let remedy = "add rate: 500/s, say; without one an operation is due when its client can send it"
            if let place = pacing.poisson { self.report(place, "\(group): arrivals goes with a rate; \(remedy)") }
            if let burst = pacing.burst { self.report(burst.place, "\(group): burst goes with a rate; \(remedy)") }
            if let think = pacing.think, let window = options.inflight, window != 1 {
                self.report(
                    think.place,
                    "\(group): a client with a think time has one operation in flight, but window is \(window); leave window out"
                )
            }
        } else if let think = pacing.think {
            self.report(
                think.place,
                "\(group): think is for a closed loop, and this group has a rate; leave one of the two out"
            )
        }
        if let place = pacing.poisson, pacing.burst != nil {
            self.report(place, "\(group): arrivals: poisson and burst do not go together; leave one of the two out")
        }
        if let place = pacing.poisson, self.loadLength == nil {
            self.report(place, "\(group): arrivals: poisson needs an end of the load; give a duration")
        }
        self.checkLength(pacing, group)
    }

    /// A rate that begins after the end of the load would never apply.
    private mutating func checkLength(_ pacing: Pacing, _ group: String) {
        guard let need = pacing.need else { return }
        guard let length = self.loadLength else {
            guard need.length == nil else { return }
            return self.report(need.place, "\(group): a load without an end has no ramp; add over: 1m, say")
        }
        guard let wanted = need.length, wanted > length else { return }
        self.report(
            need.place,
            "\(group): the load ends after \(DurationText.text(length)), before this rate is reached; make it longer"
        )
    }
}
