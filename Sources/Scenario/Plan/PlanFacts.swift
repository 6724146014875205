import Crypto
import DataEncodings
import Foundation
import Measurement

/// One option that differs from its default, by the key that a scenario file has for it.
struct PlanFact {
    enum Value {
        case text(String)
        case integer(Int64)
        /// Operations per second, or a share from 0 to 1.
        case number(Double)
        case nanoseconds(Int64)
        case flag(Bool)
        /// Bytes that are secret or large; only their SHA-256 is written.
        case digest([UInt8])
        case list([Value])
    }

    enum Place: Hashable {
        /// In the schedule hash and in the plan of `run.json`.
        case both
        /// In the schedule hash alone: the plan has a key of another form for it.
        case schedule
        /// In the plan alone: it says how clients reach a server, not who does what when.
        case record
        /// In both; the plan has this key for it.
        case key(String)
    }

    /// Below the group: `connect.session_expiry`.
    var path: String
    var value: Value
    var place: Place

    var isScheduled: Bool { self.place != .record }
    var isRecorded: Bool { self.place != .schedule }

    // MARK: - As lines of the schedule hash

    /// `path=value`, one for each element of a list.
    func lines(below prefix: String) -> [String] { Self.lines(prefix + self.path, self.value) }

    private static func lines(_ path: String, _ value: Value) -> [String] {
        if case .list(let values) = value {
            return values.enumerated().flatMap { index, value in self.lines("\(path)[\(index)]", value) }
        }
        return ["\(path)=\(self.word(value))"]
    }

    private static func word(_ value: Value) -> String {
        switch value {
        case .text(let text):
            text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").replacing("\r", with: "\\r")
        case .integer(let number), .nanoseconds(let number): String(number)
        case .number(let number): Words.plain(number)
        case .flag(let isSet): String(isSet)
        case .digest(let bytes): SHA256.hash(data: bytes).hex
        case .list: ""
        }
    }
}

/// The options of one group that differ from their defaults.
///
/// The schedule hash and the plan record are both made from this list. Its paths are a contract, see
/// `results/README.md`: they follow the keys of scenario files and never the names of Swift properties.
struct PlanFacts {
    private(set) var facts: [PlanFact] = []

    mutating func text(_ path: String, _ value: String?, unless usual: String? = nil, _ place: PlanFact.Place = .both) {
        if let value, value != usual { self.add(path, .text(value), place) }
    }

    mutating func integer(
        _ path: String,
        _ value: (some BinaryInteger)?,
        unless usual: Int64? = nil,
        _ place: PlanFact.Place = .both
    ) {
        guard let value else { return }
        let number = Int64(clamping: value)
        if number != usual { self.add(path, .integer(number), place) }
    }

    mutating func number(_ path: String, _ value: Double?, unless usual: Double? = nil, _ place: PlanFact.Place = .both)
    {
        if let value, value != usual { self.add(path, .number(value), place) }
    }

    mutating func nanoseconds(
        _ path: String,
        _ value: Int64?,
        unless usual: Int64? = nil,
        _ place: PlanFact.Place = .both
    ) {
        if let value, value != usual { self.add(path, .nanoseconds(value), place) }
    }

    mutating func flag(_ path: String, _ value: Bool, unless usual: Bool = false, _ place: PlanFact.Place = .both) {
        if value != usual { self.add(path, .flag(value), place) }
    }

    mutating func digest(_ path: String, _ value: (some Sequence<UInt8>)?, _ place: PlanFact.Place = .both) {
        if let value { self.add(path, .digest(Array(value)), place) }
    }

    /// That a secret was given; a hash without salt would let a reader of the record try words.
    mutating func secret(_ path: String, isGiven: Bool) {
        if isGiven { self.add(path, .flag(true), .record) }
    }

    /// A file by its contents; one of each client by its name, since folders differ between hosts.
    mutating func file(_ path: String, _ file: String?, _ place: PlanFact.Place = .both) {
        guard let file else { return }
        let contents = file.contains("%i") ? nil : try? Data(contentsOf: URL(filePath: file))
        let name = URL(filePath: file).lastPathComponent
        self.digest(path, contents.map { Array($0) } ?? Array(name.utf8), place)
    }

    mutating func texts(_ path: String, _ values: [String], _ place: PlanFact.Place = .both) {
        if !values.isEmpty { self.add(path, .list(values.map { .text($0) }), place) }
    }

    mutating func add(_ path: String, _ value: PlanFact.Value, _ place: PlanFact.Place) {
        self.facts.append(PlanFact(path: path, value: value, place: place))
    }

    // MARK: - From the option table

    /// Options of a command that the table has a place in the plan for.
    mutating func add(_ root: some OptionsRoot, of command: CommandName) {
        for spec in OptionTable.specs(of: command) {
            guard let path = spec.plan.hashed ?? spec.plan.path, let fact = spec.fact?(root), !fact.isUsual else {
                continue
            }
            let place: PlanFact.Place =
                spec.plan.hashed == nil ? .record : spec.plan.path == nil ? .schedule : .both
            self.add(command.key(path), fact.value, place)
        }
    }

    // MARK: - As keys of the plan record

    /// `connect.session_expiry` becomes `connect_session_expiry_seconds`.
    func add(to plan: inout [String: JSONValue]) {
        for fact in self.facts where fact.isRecorded {
            if case .key(let key) = fact.place {
                plan[key] = Self.json(fact.value)
            } else {
                plan[fact.path.replacing(".", with: "_") + Self.unit(fact.value)] = Self.json(fact.value)
            }
        }
    }

    private static func unit(_ value: PlanFact.Value) -> String {
        switch value {
        case .nanoseconds: "_seconds"
        case .digest: "_sha256"
        case .list(let values): values.first.map(self.unit) ?? ""
        case .text, .integer, .number, .flag: ""
        }
    }

    static func json(_ value: PlanFact.Value) -> JSONValue {
        switch value {
        case .text(let text): .string(text)
        case .integer(let number): .integer(number)
        case .number(let number): .number(number)
        case .nanoseconds(let number): .number(Double(number) / 1e9)
        case .flag(let isSet): .bool(isSet)
        case .digest(let bytes): .string(SHA256.hash(data: bytes).hex)
        case .list(let values): .array(values.map(self.json))
        }
    }
}

extension [String: JSONValue] {
    /// Adds the options of a command that the table has a key of their own for; `isTitle`: only what people name runs by.
    mutating func add(_ root: some OptionsRoot, of command: CommandName, isTitle: Bool = false) {
        for spec in OptionTable.specs(of: command) where !isTitle || spec.plan.isTitle {
            guard let key = spec.plan.key, let fact = spec.fact?(root), spec.plan.isAlways || !fact.isUsual else {
                continue
            }
            self[key] = PlanFacts.json(fact.value)
        }
    }
}
