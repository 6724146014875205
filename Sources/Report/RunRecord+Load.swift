package import Measurement

extension RunRecord {
    /// The load that was asked for, by the plan: `mosquitto 2.0.11 · 100 → 100 clients · 1,000/s · QoS 1 · 256 B · 10 s`.
    ///
    /// Parts that are unknown or do not apply are left out; `nil` if all are.
    package var load: String? {
        let (first, groups) = (self.plans.first ?? [:], self.groups ?? [])
        let length = (self.plannedSeconds ?? first["duration_seconds"]?.double).map { "\(Words.decimal($0)) s" }
        let parts = self.loadServer + (groups.count > 1 ? self.loadParts(of: groups) : first.loadParts)
        let known = (parts + [length]).compactMap(\.self)
        return known.isEmpty ? nil : known.joined(separator: " · ")
    }

    /// The names that the servers gave themselves, or else their addresses.
    package var loadServer: [String?] {
        let words = self.serverWords
        return self.targets.isEmpty || words.count == 1 ? words : Array(words.dropFirst())
    }

    private func loadParts(of groups: [GroupRecord]) -> [String] {
        let most = 3
        var plans: [String: JSONValue] = [:]
        if case .object(let all)? = self.plan["groups"] { plans = all }
        let named = groups.prefix(most).map { group in
            var words = "\(group.name): \(Words.count(group.clients, "client"))"
            if case .object(let plan)? = plans[group.name], let sleep = plan.sleepWords { words += ", \(sleep)" }
            return words
        }
        return named + (groups.count > most ? ["and \(groups.count - most) more"] : [])
    }

    /// The planned length of the load, of all stages together.
    package var plannedSeconds: Double? {
        if let seconds = self.plan["duration_seconds"]?.double { return seconds }
        guard case .array(let stages)? = self.plan["stages"] else { return nil }
        return stages.reduce(0) { if case .object(let own) = $1 { $0 + (own["seconds"]?.double ?? 0) } else { $0 } }
    }
}

extension [String: JSONValue] {
    /// `online 2 s of 10 s, due meanwhile: latest`; `nil` of clients that do not sleep.
    fileprivate var sleepWords: String? {
        guard let online = self["cycle_online_seconds"]?.double, let offline = self["cycle_offline_seconds"]?.double
        else { return nil }
        var due = "queue"
        if case .string(let text)? = self["cycle_due"] { due = text }
        let times = "online \(Words.decimal(online)) s of \(Words.decimal(online + offline)) s"
        let isOpen = self["streams"] != nil || self["pacing"] ?? "closed" != "closed"
        return isOpen ? "\(times), due meanwhile: \(due)" : times
    }

    /// The plan of one group, or of a command without groups, in words.
    fileprivate var loadParts: [String?] {
        func text(_ key: String) -> String? { if case .string(let text)? = self[key] { text } else { nil } }
        /// A number, or several.
        func figure(_ key: String, _ words: (Double) -> String = Words.number) -> String? {
            guard case .array(let all)? = self[key] else { return self[key]?.double.map(words) }
            return all.isEmpty ? nil : all.compactMap { $0.double.map(words) }.joined(separator: ", ")
        }
        func span(
            _ low: String,
            _ high: String,
            _ words: (Double) -> String = Words.number,
            _ mark: String = " → "
        ) -> String? {
            figure(low, words).flatMap { low in figure(high, words).map { low + mark + $0 } }
        }
        let command = text("command") ?? ""
        let clients = span("publishers", "subscribers") ?? figure("clients")
        let rate = (span("rate_from", "rate_to") ?? figure("rate_steps") ?? figure("rate")).map { "\($0)/s" }
        let connects = self["window"] == nil ? figure("connect_rate").map { "connects at \($0)/s" } : nil
        let pace = figure("interval_seconds", Words.duration).map { "one a client every \($0)" } ?? connects
        let size = figure("size_bytes", Words.bytes) ?? figure("message_bytes", Words.bytes)
        let sizes = span("size_bytes_min", "size_bytes_max", Words.bytes, " to ") ?? figure("sizes_bytes", Words.bytes)
        var streams: String?
        if case .array(let all)? = self["streams"] { streams = Words.count(all.count, "stream") }
        return [
            command == "decode" ? "decoder of \(text("protocol") ?? "packets")" : nil,
            command.hasPrefix("xmpp-") ? command.replacing("-", with: " ") : nil,
            clients.map { $0 == "1" ? "1 client" : "\($0) clients" }, figure("rooms").map { "\($0) rooms" },
            rate ?? (self["pacing"] == "closed" ? "closed loop" : pace), streams,
            (figure("qos") ?? text("subscribe_qos")).map { "QoS \($0)" }, sizes ?? size,
            figure("limit").map { "at most \($0) operations" }, self.sleepWords,
        ]
    }
}
