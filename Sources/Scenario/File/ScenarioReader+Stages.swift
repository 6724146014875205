// `stages:`, in order.
extension ScenarioReader {
    private static let stageExample = "write it like { name: peak, for: 2m, load: 100% }"
    package static let stageKeys = ["name", "for", "load", "warmup", "reconnect", "offline", "clients"]
    /// Each stage has its own counters and durations, for every group on every loop.
    package static let mostStages = 1_000
    /// As a duration may be, nanoseconds.
    static let longest: Int64 = 365 * 86_400 * 1_000_000_000

    mutating func stages(_ value: ScenarioValue) -> [StageOption] {
        let example = "write a list such as - { name: peak, for: 2m, load: 100% }"
        guard case .list(let values) = value.content, !values.isEmpty else {
            let kind = if case .list = value.content { "empty" } else { value.kind }
            self.report(value.place, "stages is \(kind); \(example)")
            return []
        }
        if values.count > Self.mostStages {
            self.report(
                values[Self.mostStages].place,
                "stages: this is one more than the \(Self.mostStages) that a run may have; leave some out"
            )
            return []
        }
        let before = self.problems.count
        var stages: [StageOption] = []
        var names: Set<String> = []
        var length: Int64 = 0
        for value in values {
            guard let entries = self.mapping(value, "a stage", Self.stageExample),
                let (stage, place) = self.stage(entries, value.place)
            else { continue }
            if !names.insert(stage.name).inserted {
                self.report(place, "stages: '\(stage.name)' occurs twice; give each stage a unique name")
            }
            stages.append(stage)
            length += stage.length
            if length > Self.longest {
                self.report(place, "stages: up to the end of '\(stage.name)' they are longer than a year; shorten them")
                return stages
            }
        }
        if self.problems.count == before, stages.allSatisfy(\.isWarmup) {
            self.report(
                value.place,
                "stages: all of them are warm-up, so nothing would be measured; add one that is not"
            )
        }
        return stages
    }

    private mutating func stage(
        _ entries: [ScenarioValue.Entry],
        _ place: ScenarioPlace
    ) -> (StageOption, ScenarioPlace)? {
        let values = self.values(entries, Self.stageKeys, of: "stages")
        for key in ["name", "for"] where values[key] == nil {
            self.report(place, "stages: \(key) is missing; \(Self.stageExample)")
        }
        let name = values["name"].flatMap { self.stageName($0) }
        let length = values["for"].flatMap { value in
            self.quantity(value, of: "stages.for") { text throws(QuantityError) in
                let length = try DurationText.parse(text)
                if length == 0 { throw QuantityError("'\(text)' is no time; a stage lasts longer than that") }
                return length
            }
        }
        guard let name, let length else { return nil }
        var stage = StageOption(name: name, length: length)
        if let value = values["load"] {
            stage.load = self.quantity(value, of: "stages.load", parse: Self.loadShare) ?? 1
        }
        if let value = values["reconnect"] {
            stage.reconnect = self.quantity(value, of: "stages.reconnect", parse: PercentText.parse) ?? 0
        }
        if let value = values["warmup"] { stage.isWarmup = self.flag(value, of: "stages.warmup") }
        if let value = values["offline"] {
            stage.offline = self.quantity(value, of: "stages.offline", parse: Self.offlineShare) ?? 0
            if stage.offline > 0, stage.reconnect > 0 {
                self.report(value.place, "stages.offline: offline clients cannot reconnect; use separate stages")
            }
        }
        if let value = values["clients"] {
            self.readTurnouts(value, into: &stage)
            if stage.offline > 0, stage.clients != .share(1) || !stage.turnouts.isEmpty {
                self.report(
                    value.place,
                    "stages.clients: absent clients would return with the offline ones; use separate stages"
                )
            }
        }
        return (stage, values["name"]?.place ?? place)
    }

    /// `50%`, `200`, or `{ sensors: 200, backend: 50% }`.
    private mutating func readTurnouts(_ value: ScenarioValue, into stage: inout StageOption) {
        guard case .mapping(let entries) = value.content else {
            stage.clients = self.quantity(value, of: "stages.clients", parse: TurnoutOption.parse) ?? .share(1)
            self.turnoutPlaces[stage.name] = value.place
            return
        }
        for entry in entries {
            let name = "stages.clients.\(entry.key)"
            guard let turnout = self.quantity(entry.value, of: name, parse: TurnoutOption.parse) else { continue }
            stage.turnouts.append(StageOption.GroupTurnout(group: entry.key, clients: turnout))
            self.groupTurnoutPlaces[[stage.name, entry.key]] = (entry.place, entry.value.place)
        }
        stage.turnouts.sort { $0.group < $1.group }
    }

    /// `true` for all of them.
    private static func offlineShare(_ text: String) throws(QuantityError) -> Double {
        switch text {
        case "true": return 1
        case "false": return 0
        default:
            if let share = try? PercentText.parse(text) { return share }
            throw QuantityError("'\(text)' is not true, false or a share; write it like 40%")
        }
    }

    /// As labels of metrics have it.
    private mutating func stageName(_ value: ScenarioValue) -> String? {
        guard let text = self.label(value, of: "stages.name", "stage") else { return nil }
        guard !["connect", "drain"].contains(text) else {
            return self.reported(value.place, "stages.name: every run has its own \(text); give the stage another name")
        }
        return text
    }

    /// A share that may be above 100 %.
    private static func loadShare(_ text: String) throws(QuantityError) -> Double {
        let number = text.dropLast()
        guard text.hasSuffix("%"), !number.isEmpty, number.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }),
            let value = Double(number), value <= 10_000
        else { throw QuantityError("'\(text)' is no part of a load; write it like 50%, from 0% to 10000%") }
        return value / 100
    }

    // MARK: - With the rest of the file

    /// Checks stages against other settings of the load's length.
    mutating func checkStages(_ values: [String: ScenarioValue], _ overrides: inout GivenOptions) {
        for key in ["duration", "warmup"] where values[key] != nil {
            let words =
                key == "duration"
                ? "the stages say how long the load lasts; leave duration out"
                : "with stages a warm-up is one of them; write warmup: true on it"
            if let value = values[key] { self.report(value.place, "\(key): \(words)") }
        }
        let words: OptionWords = "the stages of \(self.files[0]) say how long the load lasts; leave it out"
        if overrides.isGiven(\.duration) { overrides.refuse(\.duration, words) }
        if overrides.isGiven(\.warmup) { overrides.refuse(\.warmup, words) }
    }

    /// Clients that leave for two reasons: one would wait for the other.
    mutating func checkDepartures(_ sources: Sources) {
        for (key, cause) in [("storm", "reconnect"), ("storm", "offline"), ("churn", "offline")] {
            guard let place = sources.place(of: key),
                self.plannedStages.contains(where: { (cause == "offline" ? $0.offline : $0.reconnect) > 0 })
            else { continue }
            self.report(
                place,
                "\(sources.group).\(key): a stage says \(cause), and the two would interfere; leave one out"
            )
        }
    }

    /// Stages with fewer clients would wake clients that sleep.
    mutating func checkCycle(_ sources: Sources) {
        guard let place = sources.place(of: "cycle.online"),
            self.plannedStages.contains(where: { $0.offline > 0 || $0.clients != .share(1) })
        else { return }
        let words = "a stage says how many clients there are, and the two would interfere; leave one out"
        self.report(place, "\(sources.group).cycle: \(words)")
    }

    /// Checks the stages with absent clients, and the sessions kept for them.
    mutating func checkAbsences(_ stages: ScenarioValue, _ groups: [(group: ScenarioGroup, sources: Sources)]) {
        guard let longest = self.plannedStages.filter({ $0.offline > 0 }).max(by: { $0.length < $1.length }) else {
            return
        }
        let away = groups.filter(\.group.keepsSubscriptions)
        if away.isEmpty, self.problems.isEmpty {
            self.report(
                stages.place,
                "stages: offline is for MQTT subscribers with connect: { clean: false, session_expiry: 10m }, whose sessions "
                    + "are kept, and no group has any; add one, or leave offline out"
            )
        }
        for (group, sources) in away {
            guard case .mqtt(let options) = group.work, options.protocolLevel == 5, let expiry = options.sessionExpiry,
                Int64(expiry) * 1_000_000_000 <= longest.length
            else { continue }
            self.report(
                sources.place(of: "connect.session_expiry") ?? sources.place,
                "\(group.name).connect.session_expiry: stage '\(longest.name)' is longer, so nothing would be kept; raise it"
            )
        }
    }

    /// Numbers of clients that there are not.
    mutating func checkTurnouts(_ groups: [(group: ScenarioGroup, sources: Sources)]) {
        for stage in self.plannedStages {
            for turnout in stage.turnouts { self.check(turnout, of: stage, groups.map(\.group)) }
        }
        let groups = groups.map(\.group).filter { !$0.options.makesAccounts }
        for stage in self.plannedStages where stage.clients != .share(1) {
            guard let place = self.turnoutPlaces[stage.name] else { continue }
            if groups.isEmpty, self.problems.isEmpty {
                self.report(place, "stages.clients: accounts are created once, whatever the stage; leave it out")
            }
            guard case .count(let count) = stage.clients, let group = groups.first else { continue }
            if groups.count > 1 {
                self.report(
                    place,
                    "stages.clients: a number is that of one group, and there are \(groups.count); write it like 50%, or "
                        + "{ \(group.name): \(count) }"
                )
            } else {
                self.check(count, of: group, place)
            }
        }
    }

    private mutating func check(_ count: Int, of group: ScenarioGroup, _ place: ScenarioPlace) {
        let members = group.options.members
        guard count > members else { return }
        self.report(
            place,
            "stages.clients: \(group.name) has \(members) client\(members == 1 ? "" : "s"), and \(count) are more; write fewer, "
                + "or raise \(group.name).clients"
        )
    }

    private mutating func check(_ turnout: StageOption.GroupTurnout, of stage: StageOption, _ groups: [ScenarioGroup]) {
        guard let places = self.groupTurnoutPlaces[[stage.name, turnout.group]] else { return }
        guard self.groupNames.contains(turnout.group) else {
            let meant = NearestName.question(turnout.group, in: self.groupNames)
            return self.report(
                places.key,
                "stages.clients: there is no group '\(turnout.group)'; \(meant)here are "
                    + self.groupNames.joined(separator: ", ")
            )
        }
        guard let group = groups.first(where: { $0.name == turnout.group }) else { return }
        if group.options.makesAccounts {
            self.report(places.key, "stages.clients: accounts are created once, whatever the stage; leave it out")
        } else if case .count(let count) = turnout.clients {
            self.check(count, of: group, places.value)
        }
    }

    /// Reports loads of stages that no group can produce.
    mutating func checkLoads(_ stages: ScenarioValue, _ options: ScenarioOptions) {
        let isScaled = options.common.stages.contains { $0.load != 1 }
        guard isScaled, self.problems.isEmpty, !options.groups.contains(where: \.work.own.isOpenLoop) else { return }
        self.report(
            stages.place,
            "stages: load scales rates, and no group has one; give a group publish: { rate: 500/s }, say, or leave load out"
        )
    }
}
