import ArgumentParser

/// `--print-scenario`: the file that does what a command line does.
///
/// Flags become the keys that have them, see ``ScenarioKey``; what no key has is refused by its name.
package struct ScenarioPrinter {
    /// Of the run, and so of `clamor run` too.
    private static let runFlags: Set = [
        "--threads", "--read-size", "--per-client", "--out", "--json", "--quiet", "--no-tty", "--strict", "--junit",
        "--summary-md",
        "--start-at", "--segment", "--processes",
    ]
    /// What ``LoadOptions`` say in the place of the flags.
    private static let phaseFlags: Set = ["--duration", "-d", "--warmup", "--drain", "--seed", "--threshold"]
    private static let ownFlag = "--print-scenario"
    /// What a flag means that stands alone.
    private static let bare = ["--topic-alias": "auto"]
    private static let targetFlags: Set = ["--host", "-h", "--hostname", "--url", "-p", "--port"]

    /// What may be a secret is in no printed file: its place has a variable.
    private struct Secret {
        var name: String
        var value: String
        /// As the file has it.
        var variable: String { "${\(self.name)}" }
    }

    private let work: ScenarioGroup.Work
    private let job: ScenarioJob
    private var runWords: [String] = []
    private var given: [String: ScenarioLines.Value] = [:]
    private var secrets: [Secret] = []
    /// Of WebSocket, as the file has them.
    private var headers: [String] = []
    private var target: ScenarioLines.Value?

    /// What becomes of a flag.
    package enum Meaning: Equatable, Sendable {
        case key(String)
        case run, phase, unsayable
    }

    /// What becomes of a flag of a command.
    package static func meaning(of flag: String, in command: [String]) -> Meaning {
        ScenarioJob.all.first { $0.command == command }.map { self.meaning(of: flag, in: $0) } ?? .unsayable
    }

    private static func meaning(of flag: String, in job: ScenarioJob) -> Meaning {
        if self.runFlags.contains(flag) { return .run }
        if self.phaseFlags.contains(flag) || flag == self.ownFlag { return .phase }
        return job.allKeys.first { $0.flags.contains(flag) }.map { Meaning.key($0.path) } ?? .unsayable
    }

    /// - Returns: the text, or nothing where ``OptionReader/problems`` say why.
    static func text(_ work: ScenarioGroup.Work, _ reader: inout OptionReader) -> String? {
        let name = work.options.name.split(separator: "-").map(String.init)
        guard let job = ScenarioJob.all.first(where: { $0.command == name }) else {
            preconditionFailure("each command that has the flag is the job of a group")
        }
        var printer = ScenarioPrinter(work, job)
        printer.read(FlagWords(reader.arguments.dropFirst(job.command.count)), &reader)
        printer.readTarget(reader)
        guard reader.problems.isEmpty else { return nil }
        let text = printer.lines(reader.arguments).text
        printer.check(text, &reader)
        return reader.problems.isEmpty ? text : nil
    }

    private init(_ work: ScenarioGroup.Work, _ job: ScenarioJob) {
        self.work = work
        self.job = job
    }

    // MARK: - From flags to keys

    private mutating func read(_ flags: FlagWords, _ reader: inout OptionReader) {
        for word in flags.words {
            switch Self.meaning(of: word.flag, in: self.job) {
            case .run: self.runWords += [word.flag] + (word.value.map { [$0] } ?? [])
            case .phase: break
            case .unsayable:
                reader.report(word.flag, "a scenario file has no key for it; leave it out of --print-scenario")
            case .key(let path): self.add(word, path)
            }
        }
    }

    private mutating func add(_ word: FlagWords.Word, _ path: String) {
        guard let key = self.job.allKeys.first(where: { $0.path == path }) else { return }
        if Self.targetFlags.contains(word.flag) || self.isSaidByTarget(path) || path == ScenarioJob.filter.path {
            return
        }
        let value = word.value ?? ""
        if path == "connect.rate", OptionReader.noRates.contains(value) { return }
        switch path {
        case "password": self.given[path] = .variable(self.hide(self.password, as: "PASSWORD"))
        case "psk": self.given[path] = .variable(self.hide(value, as: "PSK"))
        case "raw" where !value.hasPrefix("@"): self.given[path] = .variable(self.hide(value, as: "RAW"))
        case "path" where value.contains("?"): self.given[path] = .variable(self.withoutQuery(value))
        case "headers":
            self.headers.append(self.withoutValue(value))
            self.given[path] = .variable("[\(self.headers.joined(separator: ", "))]")
        default: self.given[path] = Self.value(word, key, before: self.given[path])
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
    private mutating func withoutValue(_ header: String) -> String {
        let name = header.prefix { $0 != ":" }
        let value = header.dropFirst(name.count + 1).drop { $0 == " " }
        return ScenarioLines.quoted(
            "\(name): ",
            then: self.hide(String(value), as: "HEADER_\(self.headers.count + 1)")
        )
    }

    /// A real server's scheme says TLS and WebSocket.
    private func isSaidByTarget(_ path: String) -> Bool {
        guard case .mqtt(let options) = self.work, case .servers = options.target else { return false }
        return ["ssl", "ws", "path"].contains(path)
    }

    private static func value(
        _ word: FlagWords.Word,
        _ key: ScenarioKey,
        before: ScenarioLines.Value?
    ) -> ScenarioLines.Value {
        let text = word.value ?? ""
        let isNumber = !text.isEmpty && text.allSatisfy { $0.isASCII && $0.isNumber }
        switch key.form {
        case .text: return .text(word.value ?? Self.bare[word.flag] ?? "")
        case .list:
            let texts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            return texts.count > 1 ? .list(texts) : .text(text)
        case .seconds: return .text("\(text)s")
        case .duration(let unit): return .text(isNumber ? "\(text)\(unit)" : text)
        case .repeated:
            if case .list(let texts) = before { return .list(texts + [text]) }
            return .list([text])
        case .flag(let meaning):
            // `--no-clean` has no value, `-C` may have one.
            return .text(word.flag == key.flags[0] && word.value == nil ? "\(meaning)" : word.value ?? "true")
        }
    }

    // MARK: - The file

    private var options: LoadOptions { self.work.options }

    /// What a URL says.
    private mutating func readTarget(_ reader: OptionReader) {
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
        if reader.isGiven(["--url"]), options.password != nil, !isSaid {
            self.given["password"] = .variable(self.hide(self.password, as: "PASSWORD"))
        }
    }

    private func lines(_ arguments: [String]) -> ScenarioLines {
        let options = self.options
        var lines = ScenarioLines()
        let words = Redaction.command(arguments).filter { $0 != Self.ownFlag }.map(Self.shown)
        lines.comment("What this does: clamor \(words.joined(separator: " "))")
        let flags = Redaction.command(self.runWords).map { " " + Self.shown($0) }.joined()
        if !flags.isEmpty { lines.comment("Of the run, and in no file: clamor run FILE\(flags)") }
        lines.add("name", .text(options.name))
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
        // So that the group does this and nothing else, whatever else is said.
        if self.job.sections.isEmpty, given["clients"] == nil { given["clients"] = .text("1") }
        if self.job.command == ["pubsub"], given["topology"] == nil { given["topology"] = .text("pair") }
        let sections = ["connect", "will"] + self.job.sections + (self.job.command == ["pubsub"] ? ["subscribe"] : [])
        for key in self.job.allKeys where !key.path.contains(".") {
            if let value = given[key.path] { lines.add(key.path, value, depth: 2) }
        }
        for section in sections {
            let keys = self.job.allKeys.filter { $0.path.hasPrefix("\(section).") && given[$0.path] != nil }
            if keys.isEmpty, !self.job.sections.contains(section) { continue }
            lines.open(section, depth: 2, isEmpty: keys.isEmpty)
            for key in keys {
                if let value = given[key.path] {
                    lines.add(String(key.path.dropFirst(section.count + 1)), value, depth: 3)
                }
            }
        }
        guard case .mqtt(let options) = self.work, options.kind == .sub else { return }
        lines.open("subscribe", depth: 2)
        let qos = options.qualities.map { "\($0)" }.joined(separator: ",")
        // Said of all filters, and in the file at each.
        let others = self.job.allKeys.compactMap { key -> String? in
            guard key.path.hasPrefix("subscribe."), key.path != ScenarioJob.filterQoS.path, let value = given[key.path]
            else { return nil }
            return ", \(key.path.dropFirst("subscribe.".count)): \(ScenarioLines.words(value))"
        }.joined()
        for filter in options.filters {
            let words = "filter: \(ScenarioLines.quoted(filter)), qos: \(ScenarioLines.quoted(qos))\(others)"
            lines.item("{ \(words) }", depth: 3)
        }
    }

    /// As a shell takes it.
    private static func shown(_ word: String) -> String {
        let isPlain =
            !word.isEmpty && word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_./%+-@:=,".contains($0)) }
        return isPlain ? word : "'\(word.replacing("'", with: "'\\''"))'"
    }

    // MARK: - Proof

    /// What is printed is read again: a file that would do something else is none.
    private func check(_ text: String, _ reader: inout OptionReader) {
        guard let flags = try? RunFlags.parse([]) else { preconditionFailure("every flag has a default") }
        let secrets = self.secrets.filter { text.contains($0.variable) }
        let outcome = ScenarioReader.read(
            text,
            path: "it",
            given: secrets.map { "\($0.name)=\($0.value)" },
            flags: flags,
            environment: reader.environment,
            checks: reader.checks,
            flagReader: &reader
        )
        switch outcome {
        case .wrong(let lines): reader.report(Self.ownFlag, "no file says this: \(lines.first ?? "")")
        case .scenario(let scenario):
            guard scenario.scheduleHash != ScenarioOptions(self.work).scheduleHash else { return }
            reader.report(Self.ownFlag, "no file does the same; write each flag apart from its value")
        }
    }

    private var password: String {
        switch self.work {
        case .mqtt(let options): options.password ?? ""
        case .xmpp(let options): options.password
        }
    }
}

extension ScenarioJob {
    /// Mappings by which a group has this job.
    fileprivate var sections: [String] {
        let sections = self.keys.compactMap { key in key.path.contains(".") ? key.path.prefix { $0 != "." } : nil }
        return sections.reduce(into: [String]()) { found, section in
            if section != "subscribe", !found.contains(String(section)) { found.append(String(section)) }
        }
    }
}

extension ScenarioOptions {
    /// A short command as the scenario that it is.
    package init(_ work: ScenarioGroup.Work) {
        let group = ScenarioGroup(name: work.options.name, work: work)
        self.init(name: work.options.name, common: work.options, groups: [group])
    }
}
