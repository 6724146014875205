/// One option, and everything that the program knows about it.
///
/// The command line, scenario files, help, references, redaction, arguments of child processes and the plan record are
/// made from the entries of the ``OptionTable``. A value is read as `given[\.rate]`, see ``GivenOptions``.
package struct OptionEntry<Value: Hashable & Sendable>: Sendable {
    package private(set) var spec: OptionSpec
    private let form: OptionForm<Value>

    /// - Parameters:
    ///   - names: as they are typed, separated by blanks; the first is shown.
    ///   - negation: a flag that means `false`: `--no-clean`.
    ///   - key: in a scenario group, `connect.clean`; `*.rate` is in the mapping of the group's operations. `nil`: no
    ///     file has it.
    ///   - form: how its texts are read.
    ///   - commands: those that take it.
    ///   - file: where the entry stands, with `line` its identity.
    ///   - line: of the file.
    package init(
        _ names: String,
        negation: String? = nil,
        key: String? = nil,
        _ form: OptionForm<Value>,
        of commands: Set<CommandName>,
        file: String = #fileID,
        line: Int = #line
    ) {
        self.form = form
        self.spec = OptionSpec(
            id: "\(file):\(line)",
            names: names.split(separator: " ").map(String.init),
            negation: negation,
            key: key,
            shape: form.shape,
            schema: form.schema,
            unit: form.unit,
            commands: commands,
            plan: commands.isDisjoint(with: .runs) ? .none("the command has no plan") : .composed,
            read: { texts, isFile throws(QuantityError) in try form.read(texts, isFile) }
        )
    }

    /// The line in the help.
    package func help(_ text: String) -> Self { self.with { $0.help = text } }

    /// The default in words, where no property holds it.
    package func usual(_ words: String) -> Self { self.with { $0.usual = words } }
    package func example(_ text: String) -> Self { self.with { $0.example = text } }

    /// Where the default of another program differs.
    func elsewhere(_ text: String) -> Self { self.with { $0.elsewhere = text } }

    /// Stores the value as it is read; the default is the property's.
    ///
    /// An option of several commands has a property of each.
    package func into<Root: OptionsRoot>(
        _ path: any WritableKeyPath<Root, Value> & Sendable,
        plan: PlanPlace? = nil
    ) -> Self {
        let (form, usual) = (self.form, Root.usual[keyPath: path])
        var entry = self.stored(plan) { (root: inout Root, value: Value) in
            root[keyPath: path] = value
        } fact: { (root: Root) in
            (form.fact(root[keyPath: path]), root[keyPath: path] == usual)
        }
        if entry.spec.usual == nil, form.shape != .flag { entry.spec.usual = form.shown(usual) }
        entry.spec.isOnByDefault = usual as? Bool ?? false
        return entry
    }

    /// Stores the value as it is read; the default is its absence.
    package func into<Root: OptionsRoot>(
        _ path: any WritableKeyPath<Root, Value?> & Sendable,
        plan: PlanPlace? = nil
    ) -> Self {
        let form = self.form
        return self.stored(plan) { (root: inout Root, value: Value) in
            root[keyPath: path] = value
        } fact: { (root: Root) in
            root[keyPath: path].map { (form.fact($0), false) }
        }
    }

    private func stored<Root: OptionsRoot>(
        _ plan: PlanPlace?,
        _ write: @escaping @Sendable (_ root: inout Root, _ value: Value) -> Void,
        fact: @escaping @Sendable (_ root: Root) -> (value: PlanFact.Value, isUsual: Bool)?
    ) -> Self {
        self.with { spec in
            let (store, others) = (spec.store, spec.fact)
            spec.plan = plan ?? spec.plan
            spec.store = { root, value in
                guard var typed = root as? Root, let value = value as? Value else { return store?(root, value) }
                write(&typed, value)
                return typed
            }
            spec.fact = { root in
                guard let typed = root as? Root else { return others?(root) }
                return fact(typed)
            }
        }
    }

    package func plan(_ plan: PlanPlace) -> Self { self.with { $0.plan = plan } }

    /// Whether `--help` lists it; `--help-all` lists all options.
    package var basic: Self { self.with { $0.isBasic = true } }
    var hidden: Self { self.with { $0.isHidden = true } }

    /// Its value may begin with a dash.
    var unconditional: Self { self.with { $0.isUnconditional = true } }
    package func secret(_ secrecy: Secrecy) -> Self { self.with { $0.secrecy = secrecy } }

    /// The value where neither the command line nor the file has one.
    func environment(_ name: String) -> Self { self.with { $0.environment = name } }
    func scope(_ scope: OptionScope) -> Self { self.with { $0.scope = scope } }
    func part(of trait: OptionTrait) -> Self { self.with { $0.traits.insert(trait) } }

    /// Refuses the option beside another.
    func excluding(_ other: AnyOptionKey, _ words: OptionWords) -> Self {
        self.with { $0.exclusions.append((other, words)) }
    }

    /// Refuses the option without another.
    func needing(_ other: AnyOptionKey, _ words: OptionWords) -> Self {
        self.with { $0.needs.append((other, words)) }
    }

    private func with(_ change: (inout OptionSpec) -> Void) -> Self {
        var entry = self
        change(&entry.spec)
        return entry
    }
}

/// An option of the table: `\.rate`.
typealias OptionKey<Value: Hashable & Sendable> = any KeyPath<OptionTable, OptionEntry<Value>> & Sendable
package typealias AnyOptionKey = any PartialKeyPath<OptionTable> & Sendable

protocol AnyOptionEntry {
    var spec: OptionSpec { get }
}

extension OptionEntry: AnyOptionEntry {}

/// An option without the type of its value.
package struct OptionSpec: Sendable {
    /// The place of its entry; unique.
    package let id: String
    package let names: [String]
    package let negation: String?
    package let key: String?
    package let shape: OptionShape
    package let schema: OptionSchema
    package let unit: String
    package let commands: Set<CommandName>
    package var help = ""
    package var usual: String?
    package var example: String?
    package var elsewhere: String?
    package var plan: PlanPlace
    let read: @Sendable (_ texts: [String], _ isFile: Bool) throws(QuantityError) -> any Sendable
    /// Writes a value into options of its type; `nil` for those of another.
    var store: (@Sendable (_ root: any Sendable, _ value: any Sendable) -> (any Sendable)?)?
    /// The value that options of its type hold, and whether it is the default.
    var fact: (@Sendable (_ root: any Sendable) -> (value: PlanFact.Value, isUsual: Bool)?)?
    package var isBasic = false
    package var isHidden = false
    package var isUnconditional = false
    /// The default of a flag.
    var isOnByDefault = false
    package var secrecy = Secrecy.none
    package var environment: String?
    package var scope = OptionScope.group
    var traits: Set<OptionTrait> = []
    var exclusions: [(other: AnyOptionKey, words: OptionWords)] = []
    var needs: [(other: AnyOptionKey, words: OptionWords)] = []

    /// The key in a group of that command.
    package func key(in command: CommandName) -> String? {
        guard let key = self.key, !key.hasPrefix("*.") || command.section != nil else { return nil }
        return command.key(key)
    }

    /// Every name, with that of its negation.
    package var allNames: [String] { self.names + (self.negation.map { [$0] } ?? []) }

    /// The name for messages; of an option that only files have its key.
    package var name: String { self.allNames.first ?? self.key ?? "" }
}

/// To which part of a run an option applies.
package enum OptionScope: Hashable, Sendable {
    /// To the clients of one group.
    case group
    /// To the run as a whole.
    case run
    /// To the run; a parent decides it for each of its segments.
    case process
    /// To the run; of several segments on a host the first one has it.
    case single
    /// To this invocation alone: no child process is given it.
    case command
}

/// How much of a value is secret.
package enum Secrecy: Sendable {
    case none
    case whole
    /// The function hides the secret part.
    case part(@Sendable (String) -> String)
}

/// A property that several options share and that decides where they are allowed.
package enum OptionTrait: Hashable, Sendable {
    /// MQTT 5 only.
    case version5
    case tls, webSocket
    /// Part of the CONNECT packet.
    case connectPacket
    /// The option is one of publishers as a whole, not of one of their streams.
    case publisher
    case will
    /// Alibaba Cloud's.
    case aliyun
}

/// The place of an option in the plan of `run.json` and in the schedule hash.
package struct PlanPlace: Sendable {
    /// The reason why the option is not of the plan.
    package var reason: String?
    /// The path in the schedule hash, where the value differs from the default; `*.` is the section of the command.
    var hashed: String?
    /// The path in the record, where the value differs from the default; it gets a unit.
    var path: String?
    /// A key in the record, as it is written.
    var key: String?
    /// Whether ``key`` is written for the default as well.
    var isAlways = false
    /// Whether people name runs by it, and comparisons leave it out.
    var isTitle = false

    /// It is not of the plan, for the reason given here.
    package static func none(_ reason: String) -> Self { Self(reason: reason) }
    /// By a key of its own in the record, which comparisons leave out.
    package static func title(_ key: String) -> Self { Self(reason: "people name runs by it", key: key, isTitle: true) }
    /// Together with other options, by `planRecord(seed:)` or `facts` of the options that hold it.
    static let composed = Self()
    /// By one path in record and hash.
    package static func fact(_ path: String) -> Self { Self(hashed: path, path: path) }
    static func hashed(_ path: String) -> Self { Self(hashed: path) }
    /// By a path in the record alone.
    static func recorded(_ path: String) -> Self { Self(path: path) }
    /// By a key of its own in the record.
    static func key(_ key: String, hashed: String? = nil, always: Bool = false) -> Self {
        Self(hashed: hashed, key: key, isAlways: always)
    }
}
