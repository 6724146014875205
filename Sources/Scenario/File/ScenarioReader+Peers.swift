import Workloads

// Messages to single clients: `publish: { p2p: { root: door, to: random } }`.
extension ScenarioReader {
    /// Keys of a section, with its dot, that say who gets messages.
    package static func peerKeys(in section: String) -> [String] { section == "\(self.streamSection)." ? ["p2p"] : [] }

    /// Reads `publish.p2p`.
    ///
    /// - Returns: whether the entry was that.
    mutating func peers(_ entry: Entry, _ sources: inout Sources) -> Bool {
        guard entry.key == "\(Self.streamSection).p2p", sources.command.section == Self.streamSection else {
            return false
        }
        let name = "\(sources.group).\(entry.key)"
        if sources.command == .pubsub {
            self.refusePeers(entry.place, sources)
            return true
        }
        let remedy = "write it like { root: door, to: random }"
        guard let entries = self.mapping(entry.value, name, remedy) else { return true }
        let values = self.values(entries, ["root", "to"], of: name)
        guard let root = values["root"] else {
            self.report(entry.value.place, "\(name): root is missing; \(remedy)")
            return true
        }
        let to = values["to"]
        guard let text = self.text(root, of: "\(name).root"),
            let receiver = to.map({ self.text($0, of: "\(name).to") }) ?? "random"
        else { return true }
        // A level of a topic, the same for all clients.
        guard !text.isEmpty, !text.contains(where: { "/+#%$".contains($0) }), TextCheck.topicName(text) == nil else {
            self.report(
                root.place,
                "\(name).root: '\(text)' is not the first level of a topic; write a word without / and placeholders"
            )
            return true
        }
        let receivers = receiver == "random" ? P2PReceivers.random : .group(receiver)
        sources.given.lists.p2p = P2POption(root: text, to: receivers)
        sources.receivers.append((receivers, to?.place ?? entry.value.place))
        return true
    }

    mutating func refusePeers(_ place: ScenarioPlace, _ sources: Sources) {
        self.report(
            place,
            "\(sources.group).publish.p2p: messages to single clients reach no subscribers; leave subscribers and topology out"
        )
    }

    /// Checks that there are receivers, whose client ids senders can know.
    mutating func checkReceivers(_ groups: [(group: ScenarioGroup, sources: Sources)], isBridged: Bool) {
        for (group, sources) in groups {
            for (to, place) in sources.receivers {
                let name = "\(group.name).publish.p2p.to"
                if case .group(let receiver) = to, !self.groupNames.contains(receiver) {
                    let near = NearestName.question(receiver, in: self.groupNames)
                    let known = self.groupNames.joined(separator: ", ")
                    self.report(place, "\(name): there is no group '\(receiver)'; \(near)here are random, \(known)")
                    continue
                }
                if let problem = self.problem(of: to, for: group, groups.map(\.group), isBridged) {
                    self.report(place, "\(name): \(problem)")
                }
            }
        }
    }

    private func problem(
        of to: P2PReceivers,
        for sender: ScenarioGroup,
        _ groups: [ScenarioGroup],
        _ isBridged: Bool
    ) -> String? {
        var named = groups
        if case .group(let name) = to {
            named = groups.filter { $0.name == name }
            // Its own problems are reported.
            guard let group = named.first else { return nil }
            guard case .mqtt = group.work else { return "'\(name)' has no MQTT clients; name another group" }
            guard isBridged || group.options.targetNames == sender.options.targetNames else {
                return
                    "'\(name)' has another target; give both the same, or write bridged: true where servers forward to each other"
            }
        } else if groups.count < self.groupNames.count {
            return nil
        }
        var count = 0
        for group in named {
            guard case .mqtt(let options) = group.work,
                isBridged || group.options.targetNames == sender.options.targetNames
            else { continue }
            count += options.clients - (group.name == sender.name ? 1 : 0)
            let ids = [options.publisherID, options.subscriberID]
            if ids.contains(where: { Template(parsing: $0).variesPerMessage }) {
                return "nobody knows the client ids of '\(group.name)', which hold %rand_N or %t; use %i"
            }
        }
        return count > 0 ? nil : "there is no other client; raise clients, or name another group"
    }
}
