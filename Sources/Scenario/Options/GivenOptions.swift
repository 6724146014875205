import Foundation

package struct OptionProblem: Hashable, Sendable, CustomStringConvertible {
    /// The option as its place has it: a flag as it was typed, or `group.key`.
    let name: String
    let text: String
    var place: ScenarioPlace?

    package var description: String { "\(self.name): \(self.text)" }
}

/// Values that only a group of a scenario file has.
struct GroupLists {
    /// The streams of `publish`, where it is a list.
    var streams: [PublishStream] = []
    /// The filters of `subscribe`, where they differ or publishers subscribe.
    var subscriptions: [SubscriptionOption] = []
    var p2p: P2POption?
}

package struct GivenOption {
    let spec: OptionSpec
    /// The texts as they were given, one for each time.
    var texts: [String]
    /// The name as it was typed; in a file empty.
    var typed = ""
    var place: ScenarioPlace?
    /// The place of each text in a list of them.
    var places: [ScenarioPlace] = []
    /// `nil`: a problem was reported.
    var value: (any Sendable)?
}

/// The options of one command, or of one group of a scenario: their values, where each was found, and all problems.
package struct GivenOptions {
    let command: CommandName
    /// The name and the place of the group, where a scenario file is read.
    let group: (name: String, place: ScenarioPlace)?
    private(set) var arguments: [String]
    package let environment: [String: String]
    /// Client ids begin with it where no prefix is given.
    ///
    /// Two runs at one broker must not share client ids: each would take over the other's sessions.
    let ownPrefix: String
    private(set) var found: [String: GivenOption] = [:]
    /// Values that only a scenario file has.
    var lists = GroupLists()
    private(set) var problems: [OptionProblem] = []

    var isFile: Bool { self.group != nil }

    package init(
        _ command: CommandName,
        group: (name: String, place: ScenarioPlace)? = nil,
        arguments: [String] = [],
        environment: [String: String] = [:],
        ownPrefix: String? = nil
    ) {
        self.command = command
        self.group = group
        self.arguments = arguments
        self.environment = environment
        self.ownPrefix = ownPrefix ?? Self.prefix(.random(in: 0...UInt16.max))
    }

    static func prefix(_ salt: UInt16) -> String {
        let hex = String(salt, radix: 16)
        return "clamor-\(String(repeating: "0", count: 4 - hex.count))\(hex)"
    }

    /// The same for runs of the same seed.
    static func prefix(seed: UInt64) -> String {
        self.prefix(UInt16(truncatingIfNeeded: seed.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15).high ^ seed))
    }

    // MARK: - Taking options

    mutating func take(_ option: GivenOption) {
        var option = option
        // Recorded first: a problem is stated in the words that were given.
        self.found[option.spec.id] = option
        do throws(QuantityError) {
            option.value = try option.spec.read(option.texts, self.isFile)
            self.found[option.spec.id] = option
        } catch {
            // Of several texts the one that is wrong by itself.
            let index =
                option.spec.shape == .list
                ? nil : option.texts.firstIndex { (try? option.spec.read([$0], self.isFile)) == nil }
            self.refuse(option.spec, OptionWords(error.description), at: index)
        }
    }

    /// Records an option whose problem has been reported.
    mutating func note(_ option: GivenOption) { self.found[option.spec.id] = option }

    /// Gives an option that was not given a value, as if it had been.
    mutating func assume<Value>(_ option: OptionKey<Value>, _ value: Value) {
        let spec = OptionTable[option]
        self.found[spec.id, default: GivenOption(spec: spec, texts: [], place: self.group?.place)].value = value
    }

    /// Refuses options beside those that they exclude, and without those that they need where the command has them.
    mutating func checkNeighbours() {
        for spec in OptionTable.specs(of: self.command) where self.found[spec.id]?.value != nil {
            for (other, words) in spec.exclusions where self.isGiven(other) { self.refuse(spec, words) }
            for (other, words) in spec.needs
            where !self.isGiven(other) && OptionTable[other].commands.contains(self.command) {
                self.refuse(spec, words)
            }
        }
    }

    // MARK: - Values

    subscript<Value>(_ option: OptionKey<Value>) -> Value? { self.found[OptionTable[option].id]?.value as? Value }

    func isGiven(_ option: AnyOptionKey) -> Bool { self.found[OptionTable[option].id] != nil }

    /// Options with a trait whose values were read, in the order of the table.
    func given(with trait: OptionTrait) -> [OptionSpec] {
        OptionTable.specs(of: self.command).filter { $0.traits.contains(trait) && self.found[$0.id]?.value != nil }
    }

    /// The environment's value of an option.
    func inherited(_ option: AnyOptionKey) -> String? {
        OptionTable[option].environment.flatMap { self.environment[$0] }
    }

    /// Stores the values of all options that are stored as they are read.
    func store<Root: OptionsRoot>(into root: inout Root) {
        // In the order of the table, which is that of the properties in a packet.
        for spec in OptionTable.specs(of: self.command) {
            guard let value = self.found[spec.id]?.value, let changed = spec.store?(root, value) as? Root else {
                continue
            }
            root = changed
        }
    }

    // MARK: - Problems

    /// Refuses an option, where it was given or would have been.
    mutating func refuse(_ option: AnyOptionKey, _ words: OptionWords, at index: Int? = nil) {
        self.refuse(OptionTable[option], words, at: index)
    }

    /// Refuses an option whose value nothing stands for.
    mutating func refused<Value>(_ option: AnyOptionKey, _ words: OptionWords) -> Value? {
        self.refuse(option, words)
        return nil
    }

    /// Refuses each of these options that was given.
    mutating func refuse(given options: AnyOptionKey..., because words: OptionWords) {
        for option in options where self.isGiven(option) { self.refuse(option, words) }
    }

    mutating func refuse(with trait: OptionTrait, because words: OptionWords) {
        for spec in self.given(with: trait) { self.refuse(spec, words) }
    }

    /// Refuses the first of these options that was given, or the last one.
    mutating func refuse(first options: AnyOptionKey..., because words: OptionWords) {
        guard let option = options.first(where: { self.isGiven($0) }) ?? options.last else { return }
        self.refuse(option, words)
    }

    /// The value that `read` returns; its error is reported as a problem of the option.
    mutating func reading<Value>(_ option: AnyOptionKey, _ read: () throws(QuantityError) -> Value?) -> Value? {
        do throws(QuantityError) {
            return try read()
        } catch {
            self.refuse(option, OptionWords(error.description))
            return nil
        }
    }

    /// Refuses something that is no option: an argument, or the group as a whole.
    mutating func refuse(argument: String, _ words: OptionWords) {
        self.add(OptionProblem(name: argument, text: self.text(words, isFile: self.isFile), place: self.group?.place))
    }

    /// Refuses a part of an option that is a command line itself.
    mutating func refuse(within option: AnyOptionKey, _ problem: OptionProblem) {
        self.refuse(option, OptionWords(problem.text))
        let last = self.problems.removeLast()
        self.add(OptionProblem(name: "\(last.name) \(problem.name)", text: last.text, place: last.place))
    }

    mutating func add(_ problem: OptionProblem) {
        if !self.problems.contains(problem) { self.problems.append(problem) }
    }

    mutating func refuse(_ option: OptionSpec, _ words: OptionWords, at index: Int? = nil) {
        let found = self.found[option.id]
        let isFile = found.map { $0.place != nil } ?? self.isFile
        guard isFile else {
            let name = self.name(option, isFile: false)
            self.add(OptionProblem(name: name, text: self.text(words, isFile: false)))
            return
        }
        let places = found?.places ?? []
        let place = index.flatMap { $0 < places.count ? places[$0] : nil } ?? found?.place ?? self.group?.place
        let group = self.group.map { $0.name.isEmpty ? "" : "\($0.name)." } ?? ""
        let name = group + self.name(option, isFile: true)
        self.add(OptionProblem(name: name, text: self.text(words, isFile: true), place: place))
    }

    /// A sentence in the words of the command line or of a file.
    private func text(_ words: OptionWords, isFile: Bool) -> String {
        words.text { key, value in
            let option = OptionTable[key]
            let name = self.name(option, isFile: isFile)
            guard let value else { return name }
            if isFile { return "\(name): \(value)" }
            switch option.shape {
            case .flag, .toggle: return value == "true" ? name : "\(name) \(value)"
            case .one, .list, .repeated, .pairs, .words: return "\(name) \(value)"
            }
        }
    }

    private func name(_ option: OptionSpec, isFile: Bool) -> String {
        if isFile { return option.key(in: self.command) ?? option.name }
        return self.found[option.id].flatMap { $0.typed.isEmpty ? nil : $0.typed } ?? option.name
    }

    // MARK: - Two sources

    /// Overrides the options of a file by those of a command line.
    mutating func override(by other: GivenOptions) {
        self.found.merge(other.found) { $1 }
        self.arguments = other.arguments
    }
}

// MARK: - Files that options name

extension GivenOptions {
    /// A file's bytes; a problem with it is reported as one of the option.
    mutating func contents(of path: String, for option: AnyOptionKey) -> [UInt8]? {
        self.contents(of: path) { $0.refuse(option, OptionWords($1)) }
    }

    mutating func contents(of path: String, report: (inout Self, String) -> Void) -> [UInt8]? {
        do {
            return try [UInt8](Data(contentsOf: URL(filePath: path)))
        } catch {
            let reason = (error as? CocoaError)?.code == .fileReadNoSuchFile ? "no such file" : "not readable"
            report(&self, "cannot read \(path) (\(reason)); check the path and its permissions")
            return nil
        }
    }

    /// The lines that are not empty, with their numbers; without a byte order mark, and without ends of any kind.
    static func lines(of bytes: [UInt8]) -> [(number: Int, bytes: ArraySlice<UInt8>)] {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        return text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated().map { index, line in
            (index + 1, line.last == 0x0D ? line.dropLast() : line)
        }.filter { !$0.1.isEmpty }
    }

    mutating func check(directory: String) {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory) else {
            self.refuse(
                argument: directory,
                "no such directory; give the result directory of a run, such as results/runs/<time>-pub"
            )
            return
        }
        if !isDirectory.boolValue {
            self.refuse(argument: directory, "is not a directory; give the result directory of a run")
        }
    }
}
