import Foundation

/// What is wrong with a flag's value, and what would be right.
struct OptionProblem: Hashable, Sendable, CustomStringConvertible {
    /// As it was typed.
    let flag: String
    let text: String

    var description: String { "\(self.flag): \(self.text)" }
}

/// Turns the texts of the flags into options, and collects everything that is wrong with them.
struct OptionReader {
    let arguments: [String]
    let environment: [String: String]
    let checks: OptionChecks
    private(set) var problems: [OptionProblem] = []
    /// Two runs at one broker must not share client ids: each would take over the other's sessions.
    let ownPrefix: String
    /// In a scenario file every duration has its unit, and there is no `connect.rate: 0`.
    let isFile: Bool

    /// `ownPrefix`: of client ids where none is given; without it one of this run alone.
    init(
        arguments: [String],
        environment: [String: String],
        checks: OptionChecks,
        ownPrefix: String? = nil,
        isFile: Bool = false
    ) {
        self.isFile = isFile
        self.ownPrefix = ownPrefix ?? Self.prefix(.random(in: 0...UInt16.max))
        self.arguments = arguments
        self.environment = environment
        self.checks = checks
    }

    static func prefix(_ salt: UInt16) -> String {
        let hex = String(salt, radix: 16)
        return "clamor-\(String(repeating: "0", count: 4 - hex.count))\(hex)"
    }

    /// The same for runs of the same seed.
    static func prefix(seed: UInt64) -> String {
        self.prefix(UInt16(truncatingIfNeeded: seed.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15).high ^ seed))
    }

    mutating func report(_ flag: String, _ problem: String) {
        self.problems.append(OptionProblem(flag: flag, text: problem))
    }

    /// Whether the user typed one of these names.
    func isGiven(_ names: [String]) -> Bool {
        names.contains { name in self.arguments.contains { self.argument($0, is: name) } }
    }

    /// The name the user typed, so that a problem is stated in their words.
    func typed(_ names: [String]) -> String {
        names.last { name in self.arguments.contains { self.argument($0, is: name) } } ?? names.first ?? ""
    }

    private func argument(_ argument: String, is name: String) -> Bool {
        if name.hasPrefix("--") { return argument == name || argument.hasPrefix("\(name)=") }
        return argument.hasPrefix(name)
    }

    /// Reads the value of a flag that was given; `names` is every name of it, the shortest first.
    mutating func value<Value>(
        _ text: String?,
        _ names: String...,
        parse: (String) throws(QuantityError) -> Value
    ) -> Value? {
        guard let text else { return nil }
        do {
            return try parse(text)
        } catch {
            self.report(self.typed(names), error.description)
            return nil
        }
    }

    /// Reads a whole number within bounds.
    mutating func number<Number: FixedWidthInteger>(
        _ text: String?,
        _ names: String...,
        in range: ClosedRange<Number>
    ) -> Number? {
        guard let text else { return nil }
        if let number = Number(text), range.contains(number) { return number }
        let bounds =
            range.upperBound == .max ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
        self.report(self.typed(names), "'\(text)' is not a whole number of \(bounds)")
        return nil
    }

    mutating func duration(_ text: String?, _ names: String...) -> Int64? {
        guard let text else { return nil }
        do throws(QuantityError) {
            return try DurationText.parse(text, bareUnit: self.isFile ? nil : "s")
        } catch {
            self.report(self.typed(names), error.description)
            return nil
        }
    }

    /// Milliseconds as `emqtt_bench` takes them, or a duration with its unit.
    mutating func milliseconds(_ text: String?, _ names: String...) -> Int64? {
        guard let text else { return nil }
        do throws(QuantityError) {
            return try DurationText.parse(text, bareUnit: "ms")
        } catch {
            self.report(self.typed(names), "'\(text)' is not a number of milliseconds; write it like 100, or 100ms")
            return nil
        }
    }

    /// `true` or `false`, or what the word pair says.
    mutating func boolean(
        _ text: String?,
        _ names: String...,
        words: (yes: String, no: String) = ("true", "false")
    ) -> Bool? {
        switch text {
        case nil: return nil
        case words.yes?: return true
        case words.no?: return false
        case _?:
            // Not echoed: in -rPsecret it would be a secret.
            self.report(
                self.typed(names),
                "takes \(words.yes) or \(words.no); give it alone, not joined with other flags"
            )
            return nil
        }
    }

    mutating func check(directory: String) {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory) else {
            self.report(
                directory,
                "no such directory; give the result directory of a run, such as results/runs/<time>-pub"
            )
            return
        }
        if !isDirectory.boolValue {
            self.report(directory, "is not a directory; give the result directory of a run")
        }
    }
}
