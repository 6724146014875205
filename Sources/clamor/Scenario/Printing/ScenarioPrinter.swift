import ArgumentParser

/// `--print-scenario`: the file that does what a command line does.
///
/// Flags become the keys that have them, see ``ScenarioKey``; what no key has is refused by its name.
package struct ScenarioPrinter {
    /// Of the run, and so of `clamor run` too.
    private static let runFlags: Set = [
        "--threads", "--read-size", "--per-client", "--out", "--json", "--quiet", "--strict", "--junit", "--summary-md",
        "--start-at",
    ]
    /// What ``LoadOptions`` say in the place of the flags.
    private static let phaseFlags: Set = ["--duration", "--warmup", "--drain", "--seed", "--threshold"]
    private static let ownFlag = "--print-scenario"
    /// What may hold a secret in a place where a file would show it.
    private static let secretFlags: [String: String] = [
        "--psk": "a secret is in no printed file; use --psk-file",
        "--header": "a header may hold a secret, and a scenario file has no key for it; leave it out",
        "--ws-headers": "a header may hold a secret, and a scenario file has no key for it; leave it out",
    ]
    /// What a flag means that stands alone.
    private static let bare = ["--topic-alias": "auto"]
    private static let targetFlags: Set = ["--host", "-h", "--hostname", "--url", "-p", "--port"]
    private static let passwordFlags: Set = ["--password", "-P"]
    private static let passwordVariable = "CLAMOR_PASSWORD"

    private let work: ScenarioGroup.Work
    private let job: ScenarioJob
    private var runWords: [String] = []
    private var given: [String: ScenarioLines.Value] = [:]

    /// What becomes of a flag.
    package enum Meaning: Equatable, Sendable {
        case key(String)
        case run, phase, secret, unsayable
    }

    /// What becomes of a flag of a command.
    package static func meaning(of flag: String, in command: [String]) -> Meaning {
        ScenarioJob.all.first { $0.command == command }.map { self.meaning(of: flag, in: $0) } ?? .unsayable
    }

    private static func meaning(of flag: String, in job: ScenarioJob) -> Meaning {
        if self.runFlags.contains(flag) { return .run }
        if self.phaseFlags.contains(flag) || flag == self.ownFlag { return .phase }
        if self.secretFlags[flag] != nil { return .secret }
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
        printer.checkTarget(&reader)
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
            case .secret: reader.report(word.flag, Self.secretFlags[word.flag] ?? "")
            case .unsayable:
                reader.report(word.flag, "a scenario file has no key for it; leave it out of --print-scenario")
            case .key(let path): self.add(word, path, &reader)
            }
        }
    }

    private mutating func add(_ word: FlagWords.Word, _ path: String, _ reader: inout OptionReader) {
        guard let key = self.job.allKeys.first(where: { $0.path == path }) else { return }
        if Self.targetFlags.contains(word.flag) || self.isSaidByTarget(path) || path == ScenarioJob.filter.path {
            return
        }
        if Self.passwordFlags.contains(word.flag) {
            self.given[path] = .variable("${\(Self.passwordVariable)}")
        } else if path == "raw", word.value?.hasPrefix("@") != true {
            reader.report(word.flag, "what it says may hold a password, which is in no printed file; use @FILE")
        } else {
            self.given[path] = Self.value(word, key, before: self.given[path])
        }
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
        case .duration: return .text(isNumber ? "\(text)ms" : text)
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

    private mutating func checkTarget(_ reader: inout OptionReader) {
        if let path = self.options.transport.webSocket?.path, Redaction.hideQuery(in: path) != path {
            reader.report(
                reader.isGiven(["--path"]) ? "--path" : "--url",
                "its query may be a secret, which is in no printed file; leave it out"
            )
        }
        guard case .mqtt(let options) = self.work else { return }
        // Of the URL.
        if let name = options.username, self.given["username"] == nil { self.given["username"] = .text(name) }
        let isSaid = self.given["password"] != nil || self.given["password_file"] != nil
        if reader.isGiven(["--url"]), options.password != nil, !isSaid {
            self.given["password"] = .variable("${\(Self.passwordVariable)}")
        }
    }

    private var target: String? {
        switch self.options.target {
        case .embedded: return "embedded"
        case .service: return nil
        case .servers(let servers):
            let hosts = servers.map { $0.host.contains(":") ? "[\($0.host)]:\($0.port)" : "\($0.host):\($0.port)" }
            let authority = hosts.joined(separator: ",")
            guard case .mqtt(let options) = self.work else { return "xmpp://\(authority)" }
            let transport = options.transport
            return "\(transport.scheme)://\(authority)\(transport.webSocket?.path ?? "")"
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
        if let target = self.target { lines.add("target", .text(target)) }
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
        let sections = ["connect", "will"] + self.job.sections
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
        for filter in options.filters {
            lines.item("{ filter: \(ScenarioLines.quoted(filter)), qos: \(ScenarioLines.quoted(qos)) }", depth: 3)
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
        let uses = text.contains("${\(Self.passwordVariable)}")
        let outcome = ScenarioReader.read(
            text,
            path: "it",
            given: uses ? ["\(Self.passwordVariable)=\(self.password)"] : [],
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
