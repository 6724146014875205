import Measurement

// The streams of a group's publishers: `publish: [{ name: telemetry, topic: "a/%i", rate: 500/s }]`.
extension ScenarioReader {
    /// The section that may be a list.
    static let streamSection = "publish"

    /// Options that a stream of a list may have, by their keys.
    package static var streamKeys: [String] {
        let section = "\(self.streamSection)."
        let own = CommandName.pub.groupKeys.filter { key, spec in
            key.hasPrefix(section) && !spec.traits.contains(.publisher)
        }.map { String($0.key.dropFirst(section.count)) }
        return ["name"] + own + self.peerKeys(in: section) + self.paceKeys.filter { $0 != "think" }
    }

    /// A list of one stream is the mapping that it holds; its name is then no label.
    mutating func streams(_ entry: ScenarioValue.Entry, of group: String) -> [Entry] {
        guard case .list(let values) = entry.value.content, values.count == 1,
            case .mapping(let entries) = values[0].content
        else { return [entry] }
        if let name = entries.first(where: { $0.key == "name" })?.value {
            _ = self.label(name, of: "\(group).publish.name", "stream")
        }
        return Self.paths(of: entry, entries.filter { $0.key != "name" }, at: values[0].place)
    }

    mutating func take(list entry: Entry, _ sources: inout Sources) {
        if entry.key == Self.streamSection {
            self.takeStreams(entry, &sources)
        } else {
            self.takeFilters(entry, &sources)
        }
    }

    private mutating func takeStreams(_ entry: Entry, _ sources: inout Sources) {
        let example = "write it like { topic: \"a/%i\", qos: 1, rate: 500/s }"
        guard case .list(let values) = entry.value.content, !values.isEmpty else {
            return self.report(entry.value.place, "\(sources.group).publish is an empty list; \(example)")
        }
        var streams: [PublishStream] = []
        var places: [ScenarioPlace] = []
        var names: Set<String> = []
        for (index, value) in values.enumerated() {
            guard let entries = self.mapping(value, "\(sources.group).publish: a stream", example) else { continue }
            let named = entries.first { $0.key == "name" }?.value
            let key = "\(sources.group).publish.name"
            let name = named.map { self.label($0, of: key, "stream") } ?? "stream\(index + 1)"
            if let name, !names.insert(name).inserted {
                self.report(
                    named?.place ?? value.place,
                    "\(sources.group).publish: two streams are called '\(name)'; give each a name of its own"
                )
            }
            guard let stream = self.stream(entries, name ?? "", value.place, &sources) else { continue }
            streams.append(stream)
            places.append(value.place)
        }
        guard streams.count == values.count else { return }
        sources.given.lists.streams = streams
        // A fault that is found later is reported at the stream.
        for option: AnyOptionKey in [\OptionTable.topic, \OptionTable.responseTopic, \OptionTable.message] {
            sources.given.note(
                GivenOption(
                    spec: OptionTable[option],
                    texts: streams.map(\.name),
                    place: entry.value.place,
                    places: places
                )
            )
        }
    }

    /// Reads a stream as the mapping of a group that has no other.
    private mutating func stream(
        _ entries: [ScenarioValue.Entry],
        _ name: String,
        _ place: ScenarioPlace,
        _ sources: inout Sources
    ) -> PublishStream? {
        let group = "\(sources.group).\(Self.streamSection)"
        var part = Sources(
            group: sources.group,
            place: place,
            command: .pub,
            keys: CommandName.pub.groupKeys,
            given: self.part(.pub, at: place, of: sources)
        )
        part.given.assume(\.duration, min(self.loadLength ?? 0, Self.longest))
        let keys = Self.streamKeys
        let before = self.problems.count
        for entry in entries where entry.key != "name" {
            let path = "\(Self.streamSection).\(entry.key)"
            if keys.contains(entry.key) {
                self.take(Entry(key: path, place: entry.place, value: entry.value), &part)
            } else if entry.key == "think" {
                let words = "think is for a closed loop, and each stream of several has a pace; leave it out"
                self.report(entry.place, "\(group): \(words)")
            } else if part.keys.contains(where: { $0.key == path }) {
                let words = "is of the publishers, and a list is of their streams; leave it out"
                self.report(entry.place, "\(group): \(entry.key) \(words)")
            } else {
                self.report(entry.place, "\(group): " + self.unknown(entry.key, known: keys))
            }
        }
        guard let read = self.options(&part), case .mqtt(let options) = read.work, self.problems.count == before else {
            return nil
        }
        if options.qualities.count > 1 {
            self.report(
                part.place(of: "\(Self.streamSection).qos") ?? place,
                "\(group).qos: a stream has one QoS; make one stream of each"
            )
        }
        if options.pacing == .closedLoop {
            self.report(
                part.place(of: "\(Self.streamSection).interval") ?? place,
                "\(group): each stream of several needs a pace of its own; add rate: 500/s or every: 60s"
            )
        }
        if options.p2p != nil, sources.command == .pubsub { self.refusePeers(place, sources) }
        sources.receivers += part.receivers
        var stream = PublishStream(name: name, of: options)
        // Two streams of Poisson arrivals have nothing in common.
        if case .poisson = stream.arrivals {
            stream.arrivals = .poisson(number: "\(sources.group).\(name)".stableHash)
        }
        return stream
    }

    /// The options of a part of a group, which is read as a group of its own.
    func part(_ command: CommandName, at place: ScenarioPlace, of sources: Sources) -> GivenOptions {
        let group = (name: sources.group, place: place)
        var given = GivenOptions(command, group: group, environment: self.environment, ownPrefix: "")
        if let version = sources.given[\.protocolVersion] { given.assume(\.protocolVersion, version) }
        if let validates = sources.given[\.validates] { given.assume(\.validates, validates) }
        // Client ids are the group's, and checked there; so is how many clients there are for each QoS.
        given.assume(\.shortIDs, true)
        given.assume(\.count, 3)
        return given
    }
}
