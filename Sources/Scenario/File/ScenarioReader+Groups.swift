import Workloads

extension ScenarioReader {
    /// A key of a group, with its path below the group: `connect.rate`.
    typealias Entry = ScenarioValue.Entry

    /// The options of a group, with their places.
    struct Sources {
        var group: String
        var place: ScenarioPlace
        var command: CommandName
        /// The options that it may have, with their keys.
        let keys: [(key: String, spec: OptionSpec)]
        var given: GivenOptions
        var pacing = Pacing()
        /// Streams and filters, which are read behind the other keys.
        var lists: [Entry] = []
        /// The receivers of messages to single clients, with the place that names them.
        var receivers: [(to: P2PReceivers, place: ScenarioPlace)] = []

        func place(of key: String) -> ScenarioPlace? {
            self.given.found.values.first { $0.spec.key(in: self.command) == key && !$0.texts.isEmpty }?.place
        }
    }

    mutating func group(_ entry: ScenarioValue.Entry) -> (group: ScenarioGroup, sources: Sources)? {
        let name = entry.key
        guard Self.isLabel(name) else {
            return self.reported(entry.place, "'\(name)' is no name of a group; use letters, digits, _, - and .")
        }
        let remedy = "write its keys below it, such as clients: 100"
        guard let entries = self.mapping(entry.value, name, remedy) else { return nil }
        let given = self.flat(entries, of: name)
        let (speech, target) = self.speech(given)
        guard let command = self.job(speech, given, entry) else { return nil }
        var sources = Sources(
            group: name,
            place: entry.place,
            command: command,
            keys: command.groupKeys,
            given: GivenOptions(
                command,
                group: (name, entry.place),
                environment: self.environment,
                ownPrefix: self.ownPrefix(name)
            )
        )
        // Of the run, for what has to happen before its end; longer stages have been refused already.
        sources.given.assume(\.duration, min(self.loadLength ?? 0, Self.longest))
        for given in given where given.key != "target" { self.take(given, &sources) }
        for list in sources.lists { self.take(list: list, &sources) }
        // A client that thinks has one operation in flight.
        if sources.pacing.think != nil, !given.contains(where: { $0.key.hasSuffix(".window") }) {
            let window: OptionKey<Int> = speech == .mqtt ? \OptionTable.inflight : \.stanzaWindow
            sources.given.assume(window, 1)
        }
        if let target { self.take(target: target, &sources) }
        return self.options(&sources).map { ($0, sources) }
    }

    /// Sections become dotted paths.
    private mutating func flat(_ entries: [ScenarioValue.Entry], of group: String) -> [Entry] {
        entries.flatMap { entry -> [Entry] in
            guard self.keys.sections.contains(entry.key) else { return [entry] }
            switch entry.value.content {
            // `ping:` without a value is valid.
            case .nothing: return [entry]
            case .text where ScenarioKeys.short[entry.key] != nil:
                return [Entry(key: ScenarioKeys.short[entry.key] ?? "", place: entry.place, value: entry.value)]
            case .mapping(let inner): return Self.paths(of: entry, inner, at: entry.value.place)
            case .list where entry.key == Self.streamSection: return self.streams(entry, of: group)
            case .text, .list:
                let example = self.keys.everyPath.contains("\(entry.key).rate") ? ", such as { rate: 500/s }" : ""
                let words = "is \(entry.value.kind); write its keys below it\(example)"
                self.report(entry.value.place, "\(group).\(entry.key) \(words)")
                return []
            }
        }
    }

    /// A section, which is there by itself, and its keys.
    static func paths(of section: Entry, _ inner: [Entry], at place: ScenarioPlace) -> [Entry] {
        let own = Entry(key: section.key, place: section.place, value: ScenarioValue(place: place, content: .nothing))
        return [own] + inner.map { Entry(key: "\(section.key).\($0.key)", place: $0.place, value: $0.value) }
    }

    // MARK: - What it speaks, and what it does

    /// By its own target, else by users of XMPP, else by the target of the file, else by its keys; and the target that
    /// is then meant.
    private func speech(_ given: [Entry]) -> (Speech, ScenarioValue?) {
        let own = given.first { $0.key == "target" }?.value
        let shared = self.target.flatMap(Self.scheme)
        // Without a server of their own, DNS has that of these users.
        let users: Speech? = given.contains { ["jid", "users"].contains($0.key) } ? .xmpp : nil
        // Keys that only one of them has; where they disagree, the first decides and the others are refused.
        let keys = given.lazy.map { self.keys.owners(of: $0.key) }.first { $0.count == 1 }?.first
        let spoken = own.flatMap(Self.scheme) ?? users ?? shared ?? keys ?? .mqtt
        return (spoken, own ?? (shared == spoken || shared == nil ? self.target : nil))
    }

    static func scheme(_ target: ScenarioValue) -> Speech? {
        guard case .text(let text) = target.content else { return nil }
        switch text.prefix(while: { $0 != ":" }) {
        case "xmpp", "xmpps": return .xmpp
        case "mqtt", "mqtts", "ws", "wss", "embedded": return .mqtt
        default: return nil
        }
    }

    private mutating func job(_ speech: Speech, _ given: [Entry], _ entry: ScenarioValue.Entry) -> CommandName? {
        let marked = speech.jobs.filter { job in given.contains { job.marks.contains($0.key) } }
        // Publishers may subscribe, and a topology has both.
        let jobs = speech == .mqtt ? Array(marked.prefix(1)) : marked
        if jobs.count > 1 {
            let names = jobs.compactMap { job in given.first { job.marks.contains($0.key) }?.key }
            return self.reported(
                entry.place,
                "\(entry.key) has \(names.joined(separator: " and ")), and a group does one thing; make two groups"
            )
        }
        if jobs.first == .pubsub, !marked.contains(.pub) {
            let name = given.first { jobs[0].marks.contains($0.key) }
            return self.reported(
                name?.place ?? entry.place,
                "\(entry.key).\(name?.key ?? "") goes with publish: in the same group; add that, or subscribe: alone"
            )
        }
        return jobs.first ?? speech.jobs.last
    }

    // MARK: - Options

    mutating func take(_ entry: Entry, _ sources: inout Sources) {
        if entry.key == "subscribe", sources.command == .pubsub { return self.takeSubscription(entry, &sources) }
        if entry.key == "subscribe", [.pub, .sub].contains(sources.command) { return sources.lists.append(entry) }
        if case .list = entry.value.content, entry.key == Self.streamSection, sources.command.section == entry.key {
            return sources.lists.append(entry)
        }
        let keys = sources.keys
        let hasSection = { (section: Substring) in keys.contains { $0.key.hasPrefix("\(section).") } }
        if case .nothing = entry.value.content, self.keys.sections.contains(entry.key), hasSection(entry.key[...]) {
            return
        }
        // An unknown section is refused once, not key by key.
        let section = entry.key.prefix { $0 != "." }
        if section.count < entry.key.count, !hasSection(section) { return }
        if self.pacing(entry, &sources) || self.peers(entry, &sources) { return }
        guard let spec = keys.first(where: { $0.key == entry.key && !$0.key.hasPrefix("subscribe.") })?.spec else {
            return self.report(entry.place, self.unknown(entry, sources))
        }
        if spec.id == OptionTable[\.rate].id, case .mapping = entry.value.content {
            guard let rate = self.shape(entry, &sources) else { return }
            return sources.given.take(GivenOption(spec: spec, texts: ["\(rate)"], place: entry.value.place))
        }
        self.take(spec, entry.value, &sources)
    }

    private func unknown(_ entry: Entry, _ sources: Sources) -> String {
        let owners = self.keys.owners(of: entry.key)
        let own = sources.command.speech
        if owners.count == 1, let owner = owners.first, owner != own {
            return
                "\(sources.group).\(entry.key) is for \(owner.rawValue) groups, and the target of this group is \(own.rawValue); leave it out, or change the target"
        }
        let parts = entry.key.split(separator: ".").map(String.init)
        let section = parts.count > 1 ? "\(parts[0])." : ""
        let known = sources.keys.map(\.key).filter { $0.hasPrefix(section) }
            .compactMap { $0.dropFirst(section.count).split(separator: ".").first.map(String.init) }
        let others = section != "connect." && known.contains("rate") ? Self.paceKeys + Self.peerKeys(in: section) : []
        let shared = section.isEmpty ? [Self.templateKey] : []
        let unique = (known + others + shared).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        return "\(sources.group): " + self.unknown(parts.last ?? entry.key, known: unique)
    }

    private mutating func take(_ spec: OptionSpec, _ value: ScenarioValue, _ sources: inout Sources) {
        let name = "\(sources.group).\(spec.key(in: sources.command) ?? spec.name)"
        let before = self.problems.count
        if let found = self.found(spec, value, name) {
            sources.given.take(found)
        } else if self.problems.count > before {
            // Recorded as given although it is invalid, so that no other check reports it as missing.
            sources.given.note(GivenOption(spec: spec, texts: [], place: value.place))
        }
    }

    /// An option with its texts; `nil` if the value is equal to its absence.
    mutating func found(_ spec: OptionSpec, _ value: ScenarioValue, _ name: String) -> GivenOption? {
        var values = [value]
        if spec.shape == .pairs, case .mapping(let entries) = value.content {
            values = entries.map { entry in
                if entry.key.isEmpty || entry.key.contains("=") {
                    self.report(entry.place, "\(name): '\(entry.key)' is no key; write a word without =")
                }
                guard case .text(let text) = entry.value.content else { return entry.value }
                return ScenarioValue(place: entry.place, content: .text("\(entry.key)=\(text)"))
            }
        }
        if [.list, .repeated, .pairs].contains(spec.shape), case .list(let all) = value.content { values = all }
        let texts = values.compactMap { self.text($0, of: name) }
        guard texts.count == values.count, !texts.isEmpty else { return nil }
        if spec.schema == .boolean, texts == ["\(spec.isOnByDefault)"] { return nil }
        return GivenOption(spec: spec, texts: texts, place: value.place, places: values.map(\.place))
    }

    private mutating func take(target: ScenarioValue, _ sources: inout Sources) {
        guard let text = self.text(target, of: "target") else { return }
        func take(_ option: AnyOptionKey, _ texts: [String]) {
            sources.given.take(GivenOption(spec: OptionTable[option], texts: texts, place: target.place))
        }
        let speech = sources.command.speech
        if text == "embedded" { return speech == .mqtt ? take(\.host, [text]) : take(\.xmppHost, [text]) }
        guard let scheme = text.firstRange(of: "://"), Self.scheme(target) != nil else {
            return self.report(
                target.place,
                "target: '\(text)' is no target; write it like mqtt://127.0.0.1:1883, with mqtts://, ws://, wss://, xmpp:// or xmpps://, or embedded"
            )
        }
        guard speech == .xmpp else { return take(\.url, [text]) }
        let authority = text[scheme.upperBound...].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = authority.first, !host.isEmpty, !host.contains("@"),
            authority.count == 1 || authority[1].isEmpty
        else {
            return self.report(
                target.place,
                "target: '\(text)' is no XMPP server; write it like xmpp://127.0.0.1:5222, the users in jid"
            )
        }
        take(\.xmppHost, host.split(separator: ",", omittingEmptySubsequences: false).map(String.init))
        if text.hasPrefix("xmpps:"), !sources.given.isGiven(\.xmppTLS) { sources.given.assume(\.xmppTLS, .direct) }
    }

    mutating func options(_ sources: inout Sources) -> ScenarioGroup? {
        let before = self.problems.count
        self.assumeInterval(&sources)
        sources.given.checkNeighbours()
        var work: ScenarioGroup.Work
        switch sources.command.speech {
        case .mqtt:
            guard let kind = MQTTOptions.Kind(rawValue: sources.command.word) else { return nil }
            work = .mqtt(sources.given.mqtt(kind))
        case .xmpp:
            guard let kind = XMPPLoad.Work(rawValue: sources.command.word) else { return nil }
            var options = sources.given.xmpp(kind)
            if !self.isAlone { Self.setResource(of: &options, sources) }
            work = .xmpp(options)
        }
        self.check(sources.pacing, work.options, sources)
        sources.pacing.apply(to: &work.options, group: sources.group)
        for problem in sources.given.problems { self.report(problem.place ?? sources.place, problem.description) }
        self.checkDepartures(sources)
        self.checkCycle(sources)
        guard self.problems.count == before else { return nil }
        // A short command finds it out when its run begins.
        if case .mqtt(let options) = work, options.validates,
            let problem = options.load(run: 0, seed: options.seed ?? 0).problem()
        {
            return self.reported(sources.place, "\(sources.group): \(problem)")
        }
        return ScenarioGroup(name: sources.group, work: work)
    }
}
