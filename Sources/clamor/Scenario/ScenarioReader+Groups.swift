import ArgumentParser
import Workloads

extension ScenarioReader {
    /// A key of a group as it stands in the file.
    struct Given {
        /// Below the group: `connect.rate`.
        var path: String
        var place: ScenarioPlace
        var value: ScenarioValue
    }

    /// Where what is wrong with a flag stands in the file.
    struct Sources {
        var group: String
        var place: ScenarioPlace
        var keys: [ScenarioKey]
        var places: [String: ScenarioPlace] = [:]
        /// Of `subscribe`, each where it stands.
        var filters: [(text: String, place: ScenarioPlace)] = []
        var pacing = Pacing()
    }

    /// Reads one group.
    mutating func group(_ entry: ScenarioValue.Entry) -> (group: ScenarioGroup, sources: Sources)? {
        let name = entry.key
        guard !name.isEmpty, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) })
        else {
            self.report(entry.place, "'\(name)' is no name of a group; use letters, digits, _, - and .")
            return nil
        }
        guard case .mapping(let entries) = entry.value.content else {
            self.report(
                entry.value.place,
                "\(name) is \(entry.value.kind); write its keys below it, such as clients: 100"
            )
            return nil
        }
        let given = self.flat(entries, of: name)
        let (speech, target) = self.speech(given)
        guard let job = self.job(speech, given, entry) else { return nil }
        var sources = Sources(
            group: name,
            place: entry.place,
            keys: job.allKeys
        )
        // Of the run, for what has to happen before its end; stages that are longer than one may be have been told of.
        var arguments = ["--duration=\(DurationText.text(min(self.loadLength ?? 0, Self.longest)))"]
        for given in given where given.path != "target" {
            arguments += self.arguments(given, job, &sources)
        }
        // Who thinks has one operation under way.
        if sources.pacing.think != nil, !given.contains(where: { $0.path.hasSuffix(".window") }) {
            arguments.append("--inflight=1")
        }
        if let target {
            sources.places["target"] = target.place
            arguments += self.arguments(target: target, speech, tlsIsGiven: given.contains { $0.path == "tls" })
        }
        return self.group(job, arguments, sources).map { ($0, sources) }
    }

    /// Sections become dotted paths.
    private mutating func flat(_ entries: [ScenarioValue.Entry], of group: String) -> [Given] {
        entries.flatMap { entry -> [Given] in
            guard ScenarioJob.sections.contains(entry.key) else {
                return [Given(path: entry.key, place: entry.place, value: entry.value)]
            }
            switch entry.value.content {
            // `ping:` alone says enough.
            case .nothing: return [Given(path: entry.key, place: entry.place, value: entry.value)]
            case .mapping(let inner):
                let own = Given(
                    path: entry.key,
                    place: entry.place,
                    value: ScenarioValue(place: entry.value.place, content: .nothing)
                )
                return [own]
                    + inner.map { Given(path: "\(entry.key).\($0.key)", place: $0.place, value: $0.value) }
            case .text, .list:
                self.report(
                    entry.value.place,
                    "\(group).\(entry.key) is \(entry.value.kind); write its keys below it, such as { rate: 500/s }"
                )
                return []
            }
        }
    }

    // MARK: - What it speaks, and what it does

    /// By its own target, else by its keys, else by the target of the file; and the target that is then meant.
    private func speech(_ given: [Given]) -> (ScenarioJob.Speech, ScenarioValue?) {
        let own = given.first { $0.path == "target" }?.value
        let shared = self.target.flatMap(Self.scheme)
        var speech = own.flatMap(Self.scheme)
        if speech == nil {
            // Keys that only one of them has; where they disagree, the first decides and the others are told.
            speech = given.lazy.map { ScenarioJob.owners(of: $0.path) }.first { $0.count == 1 }?.first
        }
        let spoken = speech ?? shared ?? .mqtt
        return (spoken, own ?? (shared == spoken || shared == nil ? self.target : nil))
    }

    static func scheme(_ target: ScenarioValue) -> ScenarioJob.Speech? {
        guard case .text(let text) = target.content else { return nil }
        switch text.prefix(while: { $0 != ":" }) {
        case "xmpp", "xmpps": return .xmpp
        case "mqtt", "mqtts", "ws", "wss", "embedded": return .mqtt
        default: return nil
        }
    }

    private mutating func job(
        _ speech: ScenarioJob.Speech,
        _ given: [Given],
        _ entry: ScenarioValue.Entry
    ) -> ScenarioJob? {
        let marked = ScenarioJob.all.filter { job in
            job.speech == speech && given.contains { job.marks.contains($0.path) }
        }
        // Who publishes and has subscribers does one thing: pubsub. How these subscribe may be said, but not to what.
        let others = given.contains(where: Self.isListOfFilters) ? [["pub"]] : [["pub"], ["sub"]]
        let jobs = marked.first?.command == ["pubsub"] ? marked.filter { !others.contains($0.command) } : marked
        if jobs.count > 1 {
            let names = jobs.compactMap { job in given.first { job.marks.contains($0.path) }?.path }
            self.report(
                entry.place,
                "\(entry.key) has \(names.joined(separator: " and ")), and a group does one thing; "
                    + (speech == .mqtt
                        ? "write subscribers: beside publish: for those who read it, or make two groups"
                        : "make two groups")
            )
            return nil
        }
        if jobs.first?.command == ["pubsub"], !marked.contains(where: { $0.command == ["pub"] }) {
            let name = given.first { jobs[0].marks.contains($0.path) }
            self.report(
                name?.place ?? entry.place,
                "\(entry.key).\(name?.path ?? "") goes with publish: in the same group; add that, or subscribe: alone"
            )
            return nil
        }
        return jobs.first ?? ScenarioJob.all.first { $0.speech == speech && $0.marks.isEmpty }
    }

    // MARK: - Flags as options

    private mutating func group(_ job: ScenarioJob, _ arguments: [String], _ sources: Sources) -> ScenarioGroup? {
        let before = self.problems.count
        do {
            guard let command = try Clamor.parseAsRoot(job.command + arguments) as? any OptionsCommand else {
                return nil
            }
            var reader = OptionReader(
                arguments: arguments,
                environment: self.environment,
                checks: self.checks,
                ownPrefix: self.ownPrefix(sources.group),
                isFile: true
            )
            let invocation = command.invocation(&reader)
            for problem in reader.problems { self.report(problem, sources) }
            self.checkDepartures(sources)
            switch invocation {
            case .run(var options):
                self.check(sources.pacing, options.common, sources)
                sources.pacing.apply(to: &options.common, group: sources.group)
                if self.problems.count == before { self.check(options, sources) }
                return self.problems.count == before ? ScenarioGroup(name: sources.group, work: .mqtt(options)) : nil
            case .xmpp(var options):
                self.check(sources.pacing, options.common, sources)
                sources.pacing.apply(to: &options.common, group: sources.group)
                if !self.isAlone { Self.setResource(of: &options, arguments, sources.group) }
                return self.problems.count == before ? ScenarioGroup(name: sources.group, work: .xmpp(options)) : nil
            default: return nil
            }
        } catch {
            let words = Clamor.message(for: error).split(separator: "\n").first ?? "is not understood"
            self.report(sources.place, "\(sources.group): \(words)")
            return nil
        }
    }

    /// Two groups of the same users would push each other off the server.
    private static func setResource(of options: inout XMPPOptions, _ arguments: [String], _ group: String) {
        if let jid = arguments.last(where: { $0.hasPrefix("--jid=") }), !jid.contains("/") { options.resource = group }
        for index in options.users.indices where options.users[index].resource == "clamor" {
            options.users[index].resource = group
        }
    }

    /// What a short command finds out when its run begins.
    private mutating func check(_ options: MQTTOptions, _ sources: Sources) {
        if options.validates, let problem = options.load(run: 0, seed: options.seed ?? 0).problem() {
            self.report(sources.place, "\(sources.group): \(problem)")
        }
    }

    private mutating func report(_ problem: OptionProblem, _ sources: Sources) {
        let text = Self.translate(problem.text, sources.keys)
        guard let key = sources.keys.first(where: { $0.flags.contains(problem.flag) }) else {
            return self.report(sources.place, "\(sources.group): \(problem.flag): \(text)")
        }
        let filter =
            key.path == ScenarioJob.filter.path
            ? sources.filters.first { problem.text.hasPrefix("'\($0.text)'") } ?? sources.filters.first : nil
        let place = filter?.place ?? sources.places[key.path] ?? sources.place
        self.report(place, "\(sources.group).\(key.path): \(text)")
    }

    /// A remedy names flags; here they are keys.
    private static func translate(_ text: String, _ keys: [ScenarioKey]) -> String {
        let keys = keys + [ScenarioKey("duration", "--duration"), ScenarioKey("warmup", "--warmup")]
        return text.split(separator: " ", omittingEmptySubsequences: false).map { word in
            let bare = word.trimmingPrefix("(").prefix { !",;:.)'".contains($0) }
            guard bare.hasPrefix("-"), let key = keys.first(where: { $0.flags.contains(String(bare)) }) else {
                return String(word)
            }
            return String(word).replacing(bare, with: key.path, maxReplacements: 1)
        }.joined(separator: " ")
    }
}
