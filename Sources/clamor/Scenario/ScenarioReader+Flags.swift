// The keys of a group as the flags of its command.
extension ScenarioReader {
    mutating func arguments(_ given: Given, _ job: ScenarioJob, _ sources: inout Sources) -> [String] {
        if given.path == "subscribe", job.command == ["sub"] { return self.filters(given, &sources) }
        if given.path == "subscribe", job.command == ["pubsub"] { return self.subscriptionOptions(given, &sources) }
        if ScenarioJob.sections.contains(given.path), case .nothing = given.value.content,
            sources.keys.contains(where: { $0.path.hasPrefix("\(given.path).") })
        {
            return []
        }
        // A section that is none of this group's is told once, not key by key.
        let section = given.path.prefix { $0 != "." }
        if section.count < given.path.count, !sources.keys.contains(where: { $0.path.hasPrefix("\(section).") }) {
            return []
        }
        if self.pacing(given, &sources) { return [] }
        guard let key = sources.keys.first(where: { $0.path == given.path && !$0.path.hasPrefix("subscribe.") }) else {
            self.report(given.place, self.unknown(given, job, sources))
            return []
        }
        if key.path.hasSuffix(".rate"), key.path != "connect.rate", let rate = self.shape(given, &sources) {
            return rate.isEmpty ? [] : ["--rate=\(rate)"]
        }
        sources.places[key.path] = given.value.place
        return self.arguments(key, given.value, "\(sources.group).\(key.path)")
    }

    private func unknown(_ given: Given, _ job: ScenarioJob, _ sources: Sources) -> String {
        let owners = ScenarioJob.owners(of: given.path)
        if owners.count == 1, let owner = owners.first, owner != job.speech {
            return
                "\(sources.group).\(given.path) is of \(owner.rawValue) groups, and this one speaks \(job.speech.rawValue); leave it out, or change its target"
        }
        let parts = given.path.split(separator: ".").map(String.init)
        let section = parts.count > 1 ? "\(parts[0])." : ""
        let known = sources.keys.map(\.path).filter { $0.hasPrefix(section) }
            .compactMap { $0.dropFirst(section.count).split(separator: ".").first.map(String.init) }
        let others = section != "connect." && known.contains("rate") ? Self.paceKeys : []
        let shared = section.isEmpty ? [Self.templateKey] : []
        let unique = (known + others + shared).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        return "\(sources.group): " + self.unknown(parts.last ?? given.path, known: unique)
    }

    /// What a value is for the flag of its key; `name` is how the key is told of.
    mutating func arguments(_ key: ScenarioKey, _ value: ScenarioValue, _ name: String) -> [String] {
        let flag = key.flags[0]
        if case .list = key.form, case .list(let values) = value.content {
            let texts = values.compactMap { self.text($0, of: name) }
            return texts.count == values.count ? ["\(flag)=\(texts.joined(separator: ","))"] : []
        }
        if case .repeated = key.form, case .list(let values) = value.content {
            return values.compactMap { self.text($0, of: name) }.map { "\(flag)=\($0)" }
        }
        guard let text = self.text(value, of: name) else { return [] }
        switch key.form {
        // Behind `=` the argument parser takes an empty value for none.
        case .text, .list, .repeated: return text.isEmpty ? [flag, ""] : ["\(flag)=\(text)"]
        case .flag(let meaning):
            guard let isSet = ["true": true, "false": false][text] else {
                self.report(value.place, "\(name): '\(text)' is not true or false")
                return []
            }
            return isSet == meaning ? [flag] : []
        case .duration, .seconds:
            do throws(QuantityError) {
                let nanoseconds = try DurationText.parse(text)
                guard case .seconds = key.form else { return ["\(flag)=\(text)"] }
                guard nanoseconds % 1_000_000_000 == 0 else {
                    self.report(value.place, "\(name): '\(text)' is not whole seconds; write it like 60s")
                    return []
                }
                return ["\(flag)=\(nanoseconds / 1_000_000_000)"]
            } catch {
                self.report(value.place, "\(name): \(error)")
                return []
            }
        }
    }

    /// What client ids of a group begin with where it says nothing of them: two groups must not have the same.
    func ownPrefix(_ group: String) -> String {
        let prefix = self.seed.map { OptionReader.prefix(seed: $0) } ?? OptionReader.prefix(self.salt)
        return self.isAlone ? prefix : "\(prefix)-\(group)"
    }

    mutating func arguments(
        target: ScenarioValue,
        _ speech: ScenarioJob.Speech,
        tlsIsGiven: Bool
    ) -> [String] {
        guard let text = self.text(target, of: "target") else { return [] }
        if text == "embedded" { return ["--host=embedded"] }
        guard let scheme = text.firstRange(of: "://"), Self.scheme(target) != nil else {
            self.report(
                target.place,
                "target: '\(text)' is no target; write it like mqtt://127.0.0.1:1883, with mqtts://, ws://, wss://, xmpp:// or xmpps://, or embedded"
            )
            return []
        }
        guard speech == .xmpp else { return ["--url=\(text)"] }
        let authority = text[scheme.upperBound...].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = authority.first, !host.isEmpty, !host.contains("@"),
            authority.count == 1 || authority[1].isEmpty
        else {
            self.report(
                target.place,
                "target: '\(text)' is no XMPP server; write it like xmpp://127.0.0.1:5222, the users in jid"
            )
            return []
        }
        return ["--host=\(host)"] + (text.hasPrefix("xmpps:") && !tlsIsGiven ? ["--tls=direct"] : [])
    }
}
