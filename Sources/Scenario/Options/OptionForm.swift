/// How the texts of an option become a value, and how a value is shown.
///
/// The same form reads the command line and scenario files, so a value means the same in both.
package struct OptionForm<Value: Hashable & Sendable>: Sendable {
    typealias Read = @Sendable (_ texts: [String], _ isFile: Bool) throws(QuantityError) -> Value

    var shape = OptionShape.one
    var schema = OptionSchema.text
    /// The value name in help: `n/s`.
    var unit: String
    let read: Read
    /// A value as a user would write it.
    var shown: @Sendable (Value) -> String = { "\($0)" }
    /// A value in the plan record and the schedule hash.
    var fact: @Sendable (Value) -> PlanFact.Value

    init(_ unit: String, fact: @escaping @Sendable (Value) -> PlanFact.Value, read: @escaping Read) {
        self.unit = unit
        self.fact = fact
        self.read = read
    }

    init(
        _ unit: String,
        schema: OptionSchema = .text,
        fact: @escaping @Sendable (Value) -> PlanFact.Value,
        text read: @escaping @Sendable (String, _ isFile: Bool) throws(QuantityError) -> Value
    ) {
        self.init(unit, fact: fact) { texts, isFile throws(QuantityError) in try read(texts.last ?? "", isFile) }
        self.schema = schema
    }

    /// A form for one text that means the same on the command line and in a file.
    init(
        _ unit: String,
        schema: OptionSchema = .text,
        fact: @escaping @Sendable (Value) -> PlanFact.Value,
        parse: @escaping @Sendable (String) throws(QuantityError) -> Value
    ) {
        self.init(unit, schema: schema, fact: fact) { text, _ throws(QuantityError) in try parse(text) }
    }
}

extension OptionForm {
    /// The same in another shape, or with other texts in a file.
    func with(schema: OptionSchema? = nil, shape: OptionShape) -> Self {
        var form = self
        form.schema = schema ?? form.schema
        form.shape = shape
        return form
    }

    /// The same with its values shown so.
    func showing(_ shown: @escaping @Sendable (Value) -> String) -> Self {
        var form = self
        form.shown = shown
        return form
    }
}

/// How often an option may be given, and with how many values.
package enum OptionShape: Hashable, Sendable {
    case one
    /// Comma-separated; in a file also a YAML list.
    case list
    /// Repeatable; in a file one value or a YAML list.
    case repeated
    /// Repeatable KEY=VALUE; in a file a mapping.
    case pairs
    /// Repeatable, and each takes the words up to the next option.
    case words
    /// No value; in a file `true` or `false`.
    case flag
    /// A value, or nothing for the one named here.
    case toggle(bare: String)
}

/// The kind of a value in a scenario file, for its JSON Schema.
indirect package enum OptionSchema: Hashable, Sendable {
    case text, duration, rate, size, share, boolean
    case number(least: Int64, most: UInt64)
    case choice([String])
    /// A text that a regular expression matches.
    case pattern(String)
    case either(OptionSchema, OptionSchema)
}

extension OptionForm<String> {
    package static var text: Self { .text("text") }

    static func text(_ unit: String) -> Self {
        Self(unit, fact: { .text($0) }, text: { text, _ throws(QuantityError) in text }).showing { $0 }
    }

    /// Refuses characters that would change a terminal or break a line.
    static func checkShown(_ text: String) throws(QuantityError) {
        if text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            throw QuantityError("has a line break or another control character in it; take it out")
        }
    }

    /// A text that must not be empty.
    static func name(_ unit: String, remedy: String) -> Self {
        Self(unit, fact: { .text($0) }) { (text: String, _: Bool) throws(QuantityError) in
            guard !text.isEmpty else { throw QuantityError("is empty; \(remedy)") }
            try Self.checkShown(text)
            return text
        }.showing { $0 }
    }
}

extension OptionForm<[String]> {
    /// Comma-separated texts.
    static func list(_ unit: String) -> Self {
        Self(unit, fact: { .list($0.map { .text($0) }) }) { texts, isFile throws(QuantityError) in
            isFile && texts.count > 1
                ? texts : texts.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
        }.with(shape: .list).showing { $0.joined(separator: ",") }
    }

    static func repeated(_ unit: String) -> Self {
        Self(unit, fact: { .list($0.map { .text($0) }) }) { texts, _ throws(QuantityError) in texts }
            .with(shape: .repeated).showing { $0.joined(separator: ", ") }
    }

    /// `KEY=VALUE`, each key once.
    static var pairs: Self {
        Self("key=value", fact: { .list($0.map { .text($0) }) }) { texts, _ throws(QuantityError) in
            var keys: Set<Substring> = []
            for text in texts {
                try OptionForm<String>.checkShown(text)
                let key = text.prefix { $0 != "=" }
                guard !key.isEmpty, key.count < text.count else {
                    throw QuantityError("'\(text)' is no KEY=VALUE; write it like build=42")
                }
                guard keys.insert(key).inserted else { throw QuantityError("'\(key)' is given twice; leave one out") }
            }
            return texts
        }.with(schema: .pattern("^[^=]+="), shape: .pairs).showing { $0.joined(separator: ", ") }
    }

    static func words(_ unit: String) -> Self { .repeated(unit).with(shape: .words) }
}

extension OptionForm where Value: FixedWidthInteger {
    /// A whole number within bounds.
    static func number(_ range: ClosedRange<Value>, _ unit: String = "n") -> Self {
        Self(
            unit,
            schema: .number(least: Int64(clamping: range.lowerBound), most: UInt64(clamping: range.upperBound)),
            fact: { .integer(Int64(clamping: $0)) },
            text: { text, _ throws(QuantityError) in try Self.whole(text, range) }
        )
    }

    /// Whole seconds: a bare number on the command line, a duration such as `60s` in a file.
    static func seconds(_ range: ClosedRange<Value>) -> Self {
        Self("s", schema: .duration, fact: { .nanoseconds(Int64($0) * 1_000_000_000) }) {
            text,
            isFile throws(QuantityError) in
            guard isFile else { return try Self.whole(text, range) }
            let nanoseconds = try DurationText.parse(text)
            guard nanoseconds % 1_000_000_000 == 0 else {
                throw QuantityError("'\(text)' is not whole seconds; write it like 60s")
            }
            guard let seconds = Value(exactly: nanoseconds / 1_000_000_000), range.contains(seconds) else {
                throw QuantityError("'\(text)' is not \(Self.words(range)) seconds")
            }
            return seconds
        }
    }

    private static func words(_ range: ClosedRange<Value>) -> String {
        Value.bitWidth == 64 && range.upperBound == .max
            ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
    }

    private static func whole(_ text: String, _ range: ClosedRange<Value>) throws(QuantityError) -> Value {
        if let number = Value(text), range.contains(number) { return number }
        throw QuantityError("'\(text)' is not a whole number of \(Self.words(range))")
    }
}

extension OptionForm<Int64> {
    /// Nanoseconds.
    ///
    /// A bare number is seconds on the command line; in a file a duration has its unit.
    package static var duration: Self { .duration(bare: "s") }

    /// Nanoseconds.
    ///
    /// A bare number is milliseconds on the command line, as in `emqtt_bench`.
    static var milliseconds: Self {
        Self("ms", schema: .duration, fact: { .nanoseconds($0) }) { text, isFile throws(QuantityError) in
            if isFile { return try DurationText.parse(text) }
            guard let time = try? DurationText.parse(text, bareUnit: "ms") else {
                throw QuantityError("'\(text)' is not a number of milliseconds; write it like 100, or 100ms")
            }
            return time
        }.showing(DurationText.text)
    }

    private static func duration(bare: String) -> Self {
        Self("duration", schema: .duration, fact: { .nanoseconds($0) }) {
            text,
            isFile throws(QuantityError) in
            try DurationText.parse(text, bareUnit: isFile ? nil : bare)
        }.showing(DurationText.text)
    }

    /// The same above 0; `remedy` says why 0 is none, and what to write.
    func aboveZero(_ remedy: String) -> Self {
        var form = Self(self.unit, fact: self.fact) { texts, isFile throws(QuantityError) in
            let time = try self.read(texts, isFile)
            guard time > 0 else { throw QuantityError("'\(texts.last ?? "0")' \(remedy)") }
            return time
        }
        (form.schema, form.shown) = (self.schema, self.shown)
        return form
    }
}

extension OptionForm<Double> {
    /// Per second.
    static var rate: Self { Self("n/s", schema: .rate, fact: { .number($0) }, parse: RateText.parse) }
}

extension OptionForm<Bool> {
    static var flag: Self { .toggle.with(shape: .flag) }

    /// `true` or `false`; alone it is `true`.
    static var toggle: Self { .toggle(yes: "true", no: "false", bare: "true") }

    static func toggle(yes: String, no: String, bare: String? = nil) -> Self {
        let isPlain = yes == "true"
        var form = Self("\(yes)|\(no)", fact: { isPlain ? .flag($0) : .text($0 ? yes : no) }) {
            (text: String, isFile: Bool) throws(QuantityError) in
            switch text {
            case yes: return true
            case no: return false
            default:
                // On the command line not echoed: in -rPsecret it would be a secret.
                throw QuantityError(
                    isFile
                        ? "'\(text)' is not \(yes) or \(no)"
                        : "takes \(yes) or \(no)" + (bare == nil ? "" : "; give it alone, not joined with other flags")
                )
            }
        }
        form.schema = isPlain ? .boolean : .choice([yes, no])
        if let bare { form.shape = .toggle(bare: bare) }
        return form.showing { $0 ? yes : no }
    }
}

extension OptionForm where Value: RawRepresentable<String> & CaseIterable {
    static func choice(_ unit: String) -> Self {
        let words = Value.allCases.map(\.rawValue)
        return Self(unit, schema: .choice(words), fact: { .text($0.rawValue) }) { text, _ throws(QuantityError) in
            if let value = Value(rawValue: text) { return value }
            throw QuantityError("'\(text)' is not one of \(words.joined(separator: ", "))")
        }.showing { $0.rawValue }
    }
}

extension OptionForm<ClosedRange<Int>> {
    /// Bytes: a size, or a range of sizes.
    static var sizes: Self {
        Self("bytes", schema: .size, fact: { .text("\($0)") }, parse: SizeRangeText.parse)
            .showing { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)..\($0.upperBound)" }
    }
}

extension OptionForm<String> {
    static func words(_ words: [String], _ unit: String) -> Self {
        Self(unit, schema: .choice(words), fact: { .text($0) }) { text, _ throws(QuantityError) in
            if words.contains(text) { return text }
            throw QuantityError("'\(text)' is not one of \(words.joined(separator: ", "))")
        }.showing { $0 }
    }
}
