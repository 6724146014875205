/// `templates: { device: { ... } }`: keys that several groups share, each by `template: device`.
///
/// Group keys override template keys, also in a section such as `publish:`. A template may itself have a template.
extension ScenarioReader {
    package static let templateKey = "template"
    /// Keys that templates may bring to all groups together.
    private static let most = 100_000
    /// Templates that are built on each other.
    private static let deepest = 16

    mutating func templated(_ groups: ScenarioValue, by templates: ScenarioValue?) -> ScenarioValue {
        let known = self.templates(templates)
        guard case .mapping(var entries) = groups.content else { return groups }
        var used: Set<String> = []
        var left = Self.most
        for index in entries.indices {
            guard case .mapping(let own) = entries[index].value.content else { continue }
            let whole = self.whole(own, of: entries[index].key, known, &used, &left)
            entries[index].value.content = .mapping(whole)
        }
        for (name, template) in known where !used.contains(name) { self.check(template, name, Array(known.keys)) }
        return ScenarioValue(place: groups.place, content: .mapping(entries))
    }

    private mutating func templates(_ value: ScenarioValue?) -> [String: [ScenarioValue.Entry]] {
        guard let value else { return [:] }
        let remedy = "write a name for each, and the keys that groups get from it below the name"
        var known: [String: [ScenarioValue.Entry]] = [:]
        for entry in self.mapping(value, "templates", remedy) ?? [] {
            let remedy = "write keys of a group below it, such as clients: 100"
            // A template that is invalid exists, so references to it are correct.
            known[entry.key] = self.mapping(entry.value, "templates.\(entry.key)", remedy) ?? []
        }
        return known
    }

    /// The keys of a group or template, its own first, followed by those of its templates.
    private mutating func whole(
        _ own: [ScenarioValue.Entry],
        of group: String,
        _ known: [String: [ScenarioValue.Entry]],
        _ used: inout Set<String>,
        _ left: inout Int
    ) -> [ScenarioValue.Entry] {
        var keys = own
        var chain: [String] = []
        while let place = keys.firstIndex(where: { $0.key == Self.templateKey }) {
            let entry = keys.remove(at: place)
            guard let name = self.text(entry.value, of: "\(chain.last ?? group).\(Self.templateKey)") else { continue }
            guard let template = known[name] else {
                self.report(entry.value.place, Self.missing(name, of: chain.last ?? group, Array(known.keys)))
                continue
            }
            guard !chain.contains(name) else {
                let circle = (chain + [name]).joined(separator: " is built on ")
                self.report(entry.value.place, "\(Self.templateKey): \(circle); leave one of them out")
                continue
            }
            chain.append(name)
            used.insert(name)
            let isWithin = left >= 0
            left -= template.reduce(0) { $0 + $1.value.size }
            guard left >= 0 else {
                let words = "templates bring over \(Self.most) keys; use fewer groups or keys"
                if isWithin { self.report(entry.value.place, words) }
                return keys
            }
            guard chain.count <= Self.deepest else {
                let words = "over \(Self.deepest) templates are built on each other; join some of them"
                self.report(entry.value.place, "\(Self.templateKey): \(words)")
                return keys
            }
            keys = Self.joined(keys, template)
        }
        return keys
    }

    private static func missing(_ name: String, of group: String, _ known: [String]) -> String {
        let known = known.sorted()
        let near = NearestName.question(name, in: known)
        return "\(group).\(self.templateKey): there is no template '\(name)'; "
            + (known.isEmpty ? "write it below templates:" : "\(near)here are \(known.joined(separator: ", "))")
    }

    /// The first mapping overrides the second; sections are joined.
    private static func joined(
        _ own: [ScenarioValue.Entry],
        _ template: [ScenarioValue.Entry]
    ) -> [ScenarioValue.Entry] {
        let places = Dictionary(own.indices.map { (own[$0].key, $0) }, uniquingKeysWith: { first, _ in first })
        var all = own
        for entry in template {
            guard let place = places[entry.key] else {
                all.append(entry)
                continue
            }
            switch (own[place].value.content, entry.value.content) {
            case (.mapping(let mine), .mapping(let theirs)):
                let names = Set(mine.map(\.key))
                all[place].value.content = .mapping(mine + theirs.filter { !names.contains($0.key) })
            // `ping:` without a value: the section is present.
            case (.nothing, .mapping(let theirs)): all[place].value.content = .mapping(theirs)
            default: break
            }
        }
        return all
    }

    /// Looks at the keys of a template that no group reads; its values are not understood.
    private mutating func check(_ template: [ScenarioValue.Entry], _ name: String, _ names: [String]) {
        let paths = self.keys.everyPath
        let top = Set(paths.map { String($0.prefix { $0 != "." }) } + [Self.templateKey]).sorted()
        for entry in template {
            guard top.contains(entry.key) else {
                self.report(entry.place, "\(name): \(self.unknown(entry.key, known: top))")
                continue
            }
            if entry.key == Self.templateKey, case .text(let base) = entry.value.content, !names.contains(base) {
                self.report(entry.value.place, Self.missing(base, of: name, names))
            }
            guard case .mapping(let inner) = entry.value.content else { continue }
            let section = paths.filter { $0.hasPrefix("\(entry.key).") }
            let known = section.map { String($0.dropFirst(entry.key.count + 1)) }.sorted()
            for key in inner where !known.isEmpty && !known.contains(key.key) {
                self.report(key.place, "\(name): \(self.unknown(key.key, known: known))")
            }
        }
    }
}

extension ScenarioValue {
    /// Itself and, of a mapping, its keys.
    fileprivate var size: Int {
        if case .mapping(let entries) = self.content { 1 + entries.count } else { 1 }
    }
}
