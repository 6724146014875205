import DataEncodings
package import Measurement

/// Whether runs may be held against each other: the same plan on the same kind of host.
///
/// Never time, nor the names of hosts and directories.
package enum Comparability {
    /// The permitted kinds of difference, and the words that permit them.
    package enum Kind: String, CaseIterable, Sendable {
        case plan, cpu, cores
        /// The product, not its version.
        case server
        case verdict
    }

    package struct Difference: Hashable, Sendable {
        package var kind: Kind
        package var text: String

        package init(kind: Kind, text: String) {
            self.kind = kind
            self.text = text
        }
    }

    /// Where the runs differ, each kind once, the first run being the measure of all.
    package static func differences(_ runs: [ComparedRun]) -> [Difference] {
        guard let first = runs.first else { return [] }
        var found: [Difference] = []
        func add(_ kind: Kind, _ text: @autoclosure () -> String?) {
            if !found.contains(where: { $0.kind == kind }), let text = text() {
                found.append(Difference(kind: kind, text: text))
            }
        }
        for run in runs {
            add(.plan, self.planDifference(first, run))
            add(.cpu, self.difference(first, run, "CPU") { $0.host.cpuModel })
            add(.cores, self.difference(first, run, "number of cores") { $0.host.cores.map(String.init) })
            add(.server, self.serverDifference(first, run))
            add(.verdict, self.verdictProblem(run))
        }
        return found
    }

    /// A side whose only run measured the generator: no assumed noise compensates for that.
    package static func limited(_ side: [ComparedRun]) -> Difference? {
        guard side.count == 1, side[0].record.verdict?.state == .generatorLimited else { return nil }
        return Difference(
            kind: .verdict,
            text:
                "\(side[0].path) was limited by the generator, so it shows little of the server; repeat it"
        )
    }

    private static func difference(
        _ first: ComparedRun,
        _ other: ComparedRun,
        _ name: String,
        _ fact: (RunRecord) -> String?
    ) -> String? {
        // An unknown fact does not count as a difference.
        guard let one = fact(first.record), let two = fact(other.record), one != two else { return nil }
        return OneLine.of("the \(name) differs: \(one) in \(first.path), \(two) in \(other.path)")
    }

    /// The servers of the first group that has different products in the two runs.
    private static func serverDifference(_ first: ComparedRun, _ other: ComparedRun) -> String? {
        for server in first.record.servers ?? [] {
            let same = other.record.servers?.first { $0.group == server.group }
            guard let same, same.product != server.product else { continue }
            let group = server.group.map { " of \($0)" } ?? ""
            return OneLine.of(
                "the server\(group) differs: \(server.product) in \(first.path), \(same.product) in \(other.path)"
            )
        }
        return nil
    }

    private static func verdictProblem(_ run: ComparedRun) -> String? {
        guard let verdict = run.record.verdict, verdict.state == .aborted else { return nil }
        let reason = verdict.reasons.first.map { ": \($0.text)" } ?? ""
        return "\(run.path) was aborted\(reason)"
    }

    private static func planDifference(_ first: ComparedRun, _ other: ComparedRun) -> String? {
        let (one, two) = (PlanIdentity(first.record), PlanIdentity(other.record))
        guard one.facts != two.facts else { return nil }
        let keys = Set(one.facts.keys).union(two.facts.keys).filter { one.facts[$0] != two.facts[$0] }.sorted()
        let words = keys.prefix(3).map { "\($0) \(one.facts[$0] ?? "absent") and \(two.facts[$0] ?? "absent")" }
        let more = keys.count > 3 ? ", and \(keys.count - 3) more" : ""
        return "the plans differ: \(words.joined(separator: ", "))\(more) in \(first.path) and \(other.path)"
    }
}

/// The identity of a plan: all its entries except its name, the server's place, the seed and values derived from it.
struct PlanIdentity {
    private static let incidental: Set = ["targets", "seed", "schedule_hash"]

    /// The entries by their paths: `groups.sensors.rate`.
    private(set) var facts: [String: String] = [:]
    private let without: Set<String>

    init(_ record: RunRecord) {
        self.without = Self.incidental
        self.add(.object(RunTitle.without(record.plan)), "")
        if record.segment.count > 1 { self.facts["segment"] = "\(record.segment.index)/\(record.segment.count)" }
    }

    /// The entries that the segments of one plan share, including the seed.
    init(ofSegments plan: [String: JSONValue]) {
        self.without = Self.incidental.subtracting(["seed"])
        self.add(.object(RunTitle.without(plan)), "")
    }

    /// FNV-1a of all facts in order, in hexadecimal: a name for people, not what decides.
    var hash: String { self.facts.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined().stableHex }

    private mutating func add(_ value: JSONValue, _ path: String) {
        switch value {
        case .object(let members):
            for (key, member) in members where !self.without.contains(key) {
                // Earlier versions recorded a digest of a secret, others that it was given.
                let old =
                    !key.hasSuffix("_sha256")
                    ? key
                    : key.replacing(
                        /^(passwords?|psk|path_query|will_message|token_file|headers_[0-9]+)_sha256$/
                    ) { $0.1 == "passwords" ? "password" : $0.1 }
                self.add(old == key ? member : .bool(true), path.isEmpty ? old : "\(path).\(old)")
            }
        case .array(let members):
            for (index, member) in members.enumerated() { self.add(member, "\(path)[\(index)]") }
        case .null: break
        case .bool(let value): self.facts[path] = "\(value)"
        case .integer(let value): self.facts[path] = "\(value)"
        // A file may have 2 where another has 2.0.
        case .number(let value): self.facts[path] = Words.plain(value)
        case .string(let value): self.facts[path] = "'\(value)'"
        }
    }
}

/// Name and tags of a run, which plans are compared without.
package enum RunTitle {
    /// Keys of the plan record.
    static let keys = ["name", "tags"]

    /// A plan without its titles.
    static func without(_ plan: [String: JSONValue]) -> [String: JSONValue] {
        plan.filter { !self.keys.contains($0.key) }
    }

    /// The title that all plans have; of lists the elements that are in all.
    static func shared(_ values: [JSONValue?]) -> JSONValue? {
        guard case .array(let first)?? = values.first else {
            return values.dropFirst().allSatisfy { $0 == values.first } ? values.first ?? nil : nil
        }
        let shared = first.filter { element in
            values.allSatisfy { if case .array(let all)? = $0 { all.contains(element) } else { false } }
        }
        return shared.isEmpty ? nil : .array(shared)
    }

    package static func words(_ record: RunRecord) -> [String] {
        self.keys.flatMap { key in
            switch record.plan[key] {
            case .string(let text)?: [OneLine.of(text)]
            case .array(let tags)?: tags.compactMap { if case .string(let tag) = $0 { OneLine.of(tag) } else { nil } }
            default: [String]()
            }
        }
    }

    /// The titles that all runs of a side have.
    package static func words(_ runs: [ComparedRun]) -> [String] {
        guard let first = runs.first else { return [] }
        return self.words(first.record).filter { word in runs.allSatisfy { self.words($0.record).contains(word) } }
    }
}
