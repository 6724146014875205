import Foundation

/// `--print-scenario`: the file that does what a command line does.
package struct ScenarioPrinter {
    /// A text that may be a secret is in no printed file: its place has a variable.
    private struct Secret {
        var name: String
        var value: String
        /// As the file has it.
        var variable: String { "${\(self.name)}" }
    }

    private let work: ScenarioGroup.Work
    private let command: CommandName
    private var runWords: [String] = []
    private var given: [String: ScenarioLines.Value] = [:]
    private var secrets: [Secret] = []
    private var target: ScenarioLines.Value?

    /// - Returns: the text, or `nil` with the reason in the problems of `given`.
    package static func text(_ work: ScenarioGroup.Work, _ given: inout GivenOptions) -> String? {
        var printer = ScenarioPrinter(work: work, command: given.command)
        for spec in OptionTable.specs(of: given.command) {
            if let found = given.found[spec.id] { printer.add(found) }
        }
        printer.readTarget(given)
        let text = printer.lines(given).text
        printer.check(text, &given)
        return given.problems.isEmpty ? text : nil
    }

    // MARK: - From options to keys

    private mutating func add(_ found: GivenOption) {
        let spec = found.spec
        guard spec.scope == .group, let key = spec.key(in: self.command) else {
            if spec.key == nil, !spec.isHidden, spec.id != OptionTable[\.printScenario].id {
                self.runWords += found.texts.flatMap { spec.shape == .flag ? [spec.name] : [spec.name, $0] }
            }
            return
        }
        if key == "target" || self.isSaidByTarget(key) || spec.id == OptionTable[\.filters].id { return }
        let text = found.texts.last ?? ""
        switch spec.id {
        case OptionTable[\.connectRate].id where found.value as? Double == 0: break
        case OptionTable[\.password].id: self.given[key] = .variable(self.hide(self.password, as: "PASSWORD"))
        case OptionTable[\.preSharedKey].id: self.given[key] = .variable(self.hide(text, as: "PSK"))
        case OptionTable[\.raw].id where !text.hasPrefix("@"):
            self.given[key] = .variable(self.hide(text, as: "RAW"))
        case OptionTable[\.path].id where text.contains("?"): self.given[key] = .variable(self.withoutQuery(text))
        case OptionTable[\.headers].id:
            var headers: [String] = []
            for (index, header) in found.texts.enumerated() { headers.append(self.withoutValue(header, index + 1)) }
            self.given[key] = .variable("[\(headers.joined(separator: ", "))]")
        default: self.given[key] = Self.value(found)
        }
    }

    private static func value(_ found: GivenOption) -> ScenarioLines.Value {
        let text = found.texts.last ?? ""
        switch found.spec.shape {
        case .list:
            let texts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            return texts.count > 1 ? .list(texts) : .text(text)
        case .repeated, .pairs, .words: return .list(found.texts)
        case .one, .flag, .toggle:
            guard found.spec.schema == .duration else { return .text(text) }
            // In a file every duration has its unit.
            if let nanoseconds = found.value as? Int64 { return .text(DurationText.text(nanoseconds)) }
            return .text("\(text)s")
        }
    }

    // MARK: - Secrets

    /// - Returns: the variable in its place.
    private mutating func hide(_ value: String, as name: String) -> String {
        let secret = Secret(name: "CLAMOR_\(name)", value: value)
        self.secrets.append(secret)
        return secret.variable
    }

    /// Signed URLs carry their signature in the query.
    private mutating func withoutQuery(_ path: String) -> String {
        guard let mark = path.firstIndex(of: "?") else { return ScenarioLines.quoted(path) }
        let query = path[path.index(after: mark)...]
        return ScenarioLines.quoted(String(path[...mark]), then: self.hide(String(query), as: "QUERY"))
    }

    /// A header's name stays.
    private mutating func withoutValue(_ header: String, _ number: Int) -> String {
        let name = header.prefix { $0 != ":" }
        let value = header.dropFirst(name.count + 1).drop { $0 == " " }
        return ScenarioLines.quoted("\(name): ", then: self.hide(String(value), as: "HEADER_\(number)"))
    }

    /// The scheme of a real server's URL already implies TLS and WebSocket.
    private func isSaidByTarget(_ path: String) -> Bool {
        guard case .mqtt(let options) = self.work, case .servers = options.target else { return false }
        return ["ssl", "ws", "path"].contains(path)
    }

    // MARK: - The file

    private var options: LoadOptions { self.work.options }

    private mutating func readTarget(_ given: GivenOptions) {
        switch self.options.target {
        case .embedded: self.target = .text("embedded")
        case .service: break
        case .servers(let servers):
            let authority = servers.map { "\($0)" }.joined(separator: ",")
            guard case .mqtt(let options) = self.work else {
                self.target = .text("xmpp://\(authority)")
                break
            }
            let transport = options.transport
            let url = "\(transport.scheme)://\(authority)\(transport.webSocket?.path ?? "")"
            self.target = url.contains("?") ? .variable(self.withoutQuery(url)) : .text(url)
        }
        guard case .mqtt(let options) = self.work else { return }
        if let name = options.username, self.given["username"] == nil { self.given["username"] = .text(name) }
        let isSaid = self.given["password"] != nil || self.given["password_file"] != nil
        if given.isGiven(\.url), options.password != nil, !isSaid {
            self.given["password"] = .variable(self.hide(self.password, as: "PASSWORD"))
        }
    }

    private func lines(_ given: GivenOptions) -> ScenarioLines {
        let options = self.options
        var lines = ScenarioLines()
        let words = Redaction.command(given.arguments).filter { $0 != OptionTable[\.printScenario].name }
            .map(ShellWord.quoted)
        lines.comment("Equivalent command: clamor \(words.joined(separator: " "))")
        let flags = Redaction.command(self.runWords).map { " " + ShellWord.quoted($0) }.joined()
        if !flags.isEmpty { lines.comment("Run options, which no file stores: clamor run FILE\(flags)") }
        lines.add("name", .text(options.title ?? options.name))
        if !options.tags.isEmpty { lines.add("tags", .list(options.tags)) }
        if let target = self.target { lines.add("target", target) }
        if let seed = options.seed { lines.add("seed", .text("\(seed)")) }
        lines.add("duration", .text(options.duration.map { DurationText.text($0) } ?? "0"))
        if options.warmup > 0 { lines.add("warmup", .text(DurationText.text(options.warmup))) }
        lines.add("drain", .text(DurationText.text(options.drain)))
        lines.open("groups", depth: 0)
        lines.open(options.name, depth: 1)
        self.addKeys(to: &lines)
        guard !options.thresholds.isEmpty else { return lines }
        lines.open("thresholds", depth: 0)
        for sentence in options.thresholds { lines.item(ScenarioLines.quoted(sentence), depth: 1) }
        return lines
    }

    private func addKeys(to lines: inout ScenarioLines) {
        var given = self.given
        let keys = self.command.groupKeys.map(\.key)
        let own = self.sections
        // Fixes the group's job, whatever the other keys.
        if own.isEmpty, given["clients"] == nil { given["clients"] = .text("1") }
        if self.command == .pubsub, given["topology"] == nil { given["topology"] = .text("pair") }
        let sections =
            ["connect", "reconnect", "cycle", "reply", "will"] + own + (self.command == .pubsub ? ["subscribe"] : [])
        for key in keys where !key.contains(".") {
            if let value = given[key] { lines.add(key, value, depth: 2) }
        }
        for section in sections {
            let keys = keys.filter { $0.hasPrefix("\(section).") && given[$0] != nil }
            if keys.isEmpty, !own.contains(section) { continue }
            lines.open(section, depth: 2, isEmpty: keys.isEmpty)
            for key in keys {
                if let value = given[key] { lines.add(String(key.dropFirst(section.count + 1)), value, depth: 3) }
            }
        }
        guard case .mqtt(let options) = self.work, options.kind == .sub else { return }
        lines.open("subscribe", depth: 2)
        let qos = options.qualities.map { "\($0)" }.joined(separator: ",")
        // The flag applies to all filters; the file repeats it at each.
        let others = keys.compactMap { key -> String? in
            guard key.hasPrefix("subscribe."), key != OptionTable[\.subscribeQoS].key, let value = given[key] else {
                return nil
            }
            return ", \(key.dropFirst("subscribe.".count)): \(ScenarioLines.words(value))"
        }.joined()
        for subscription in options.subscriptions {
            let words =
                "filter: \(ScenarioLines.quoted(subscription.filter)), qos: \(ScenarioLines.quoted(qos))\(others)"
            lines.item("{ \(words) }", depth: 3)
        }
    }

    /// Mappings by which a group does what the command does.
    private var sections: [String] {
        if let section = self.command.section { return [section] }
        return self.command == .register ? ["registration"] : []
    }

    // MARK: - Proof

    /// Reads the printed text again: it must describe the same run.
    private func check(_ text: String, _ given: inout GivenOptions) {
        let secrets = self.secrets.filter { text.contains($0.variable) }
        let source = ScenarioSource(file: "the file", set: secrets.map { "\($0.name)=\($0.value)" })
        var none = GivenOptions(.run, environment: given.environment)
        switch ScenarioReader.read(text, source, overrides: &none) {
        case .wrong(let lines): given.refuse(\.printScenario, "no file can express this: \(lines.first ?? "")")
        case .scenario(let scenario):
            guard scenario.scheduleHash != ScenarioOptions(self.work).scheduleHash else { return }
            given.refuse(\.printScenario, "no file does the same; write each option apart from its value")
        }
    }

    private var password: String {
        switch self.work {
        case .mqtt(let options): options.password ?? ""
        case .xmpp(let options): options.password
        }
    }
}
