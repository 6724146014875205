package import FaultInjection
package import NIOCore

/// The faults that a broker injects.
///
/// Drop, duplicate, reorder and delay act on outgoing PUBLISH packets, counted per subscription, in this order: drop,
/// reorder, duplicate, delay. They do not affect retained messages for a new subscription, `$SYS`, and acknowledgements
/// to publishers.
package struct FaultPlan: Hashable, Sendable {
    /// Parts per billion of the outgoing PUBLISH packets that are never sent.
    ///
    /// Drops are spread evenly and are not random: of any n messages of one subscription ⌊n·p⌋ or ⌈n·p⌉ are dropped.
    /// Every subscription starts at another phase, so the share also holds over many subscriptions with few messages.
    package var dropPerBillion: UInt64 = 0
    /// Every Nth message is sent twice, the second copy as a message of its own; 0 means off.
    package var duplicateEvery: UInt64 = 0
    /// Every Nth message is held until the next message of the same publisher was sent to the subscription; 0 means
    /// off.
    package var reorderEvery: UInt64 = 0
    /// How long a message chosen by `delayEvery` is held; later ones overtake it.
    package var delay: TimeAmount?
    package var delayEvery: UInt64 = 1
    /// Counted from the first CONNECT.
    package var stall: FaultStall?
    /// Interval after which one connection is reset, round robin over all connections.
    package var disconnectEvery: TimeAmount?
    /// PUBLISH packets read per second, over all clients.
    package var maximumRate: Double?
    /// Bytes per write.
    package var fragment: ClosedRange<Int>?
    /// CONNACK code for every CONNECT; translated for a client of the other family.
    package var refuse: UInt8?

    package init() {}

    /// Whether an outgoing PUBLISH needs more than a copy.
    var touchesPublish: Bool {
        self.dropPerBillion > 0 || self.duplicateEvery > 0 || self.reorderEvery > 0 || self.delay != nil
    }

    /// Whether messages can overtake each other, so that their order must be tracked.
    var touchesOrder: Bool { self.reorderEvery > 0 || self.delay != nil }
}

/// An invalid fault; `description` is one line that names it.
package struct FaultPlanError: Error, Hashable, Sendable, CustomStringConvertible {
    package let name: String
    package let problem: String

    package var description: String { "\(self.name): \(self.problem)" }
}

extension FaultPlan {
    package static let names = [
        "drop", "duplicate", "reorder", "delay", "delay-every", "stall", "disconnect-every", "max-rate", "fragment",
        "refuse",
    ]

    /// Parses faults with their values.
    ///
    /// - Returns: the plan, and an error for each fault with an invalid value.
    package static func read(_ faults: [(name: String, value: String)]) -> (plan: FaultPlan, errors: [FaultPlanError]) {
        var plan = FaultPlan()
        var errors: [FaultPlanError] = []
        for (name, value) in faults {
            if let problem = plan.set(name, value) { errors.append(FaultPlanError(name: name, problem: problem)) }
        }
        let isDelayed = faults.contains { $0.name == "delay" }
        if !isDelayed, faults.contains(where: { $0.name == "delay-every" }) {
            let problem = "says which messages are delayed, not how long; add a delay"
            errors.append(FaultPlanError(name: "delay-every", problem: problem))
        }
        return (plan, errors)
    }

    /// Parses one line of names and values, separated by spaces: `drop 0.1% delay 5ms`.
    ///
    /// - Throws: `FaultPlanError` for the first fault that is unknown, or has a missing or invalid value.
    package static func parse(line: String) throws(FaultPlanError) -> FaultPlan {
        var faults: [(name: String, value: String)] = []
        var words = line.split(whereSeparator: \.isWhitespace).map(String.init)[...]
        while let name = words.popFirst() {
            guard Self.names.contains(name) else {
                throw FaultPlanError(name: name, problem: "is not a fault (\(Self.names.joined(separator: " ")))")
            }
            guard let value = words.popFirst() else { throw FaultPlanError(name: name, problem: "needs a value") }
            faults.append((name, value))
        }
        let (plan, errors) = self.read(faults)
        if let first = errors.first { throw first }
        return plan
    }

    /// Sets one fault.
    ///
    /// - Returns: what is wrong with `value` and the correct form, or nil.
    private mutating func set(_ name: String, _ value: String) -> String? {
        switch name {
        case "drop":
            guard let share = FaultValue.share(value) else {
                return "'\(value)' is not a share above 0%; write it like 0.1%"
            }
            self.dropPerBillion = share
        case "duplicate", "reorder", "delay-every":
            guard let every = UInt64(value), every > 0 else {
                return "'\(value)' is not a whole number of 1 or more; write it like 100"
            }
            switch name {
            case "duplicate": self.duplicateEvery = every
            case "reorder": self.reorderEvery = every
            default: self.delayEvery = every
            }
        case "delay", "disconnect-every":
            guard let time = FaultValue.time(value), time > .zero else {
                return "'\(value)' is not a time above 0; write it like 5ms or 1m30s"
            }
            if name == "delay" { self.delay = time } else { self.disconnectEvery = time }
        case "stall":
            let parts = value.split(separator: "@", omittingEmptySubsequences: false)
            guard parts.count == 2, let length = FaultValue.time(String(parts[0])), length > .zero,
                let after = FaultValue.time(String(parts[1]))
            else { return "'\(value)' is not LENGTH@AFTER, each a time; write it like 2s@10s" }
            self.stall = FaultStall(length: length, after: after)
        case "max-rate":
            guard let rate = FaultValue.rate(value) else {
                return "'\(value)' is not a rate above 0, at most 1000000000/s; write it like 1000/s"
            }
            self.maximumRate = rate
        case "fragment":
            guard let range = FaultValue.range(value) else {
                return "'\(value)' is not a range of 1 to 65536 bytes; write it like 1-7"
            }
            self.fragment = range
        default:
            guard let code = FaultValue.byte(value), ConnectRefusal.isKnown(code) else {
                return "'\(value)' is not a CONNACK code that refuses; write one like 0x87 (MQTT 5) or 5 (MQTT 3)"
            }
            self.refuse = code
        }
        return nil
    }
}

/// Parsers of fault values; nil for invalid text.
enum FaultValue {
    /// As the options of all commands are read: `5ms`, `1m30s`, 0; a year at most.
    static func time(_ text: String) -> TimeAmount? {
        let units: [Substring: Double] = [
            "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3_600e9, "d": 86_400e9,
        ]
        var total = 0.0
        var rest = text == "0" ? "0s" : text[...]
        repeat {
            let number = rest.prefix { $0.isNumber || $0 == "." }
            let unit = rest[number.endIndex...].prefix { !$0.isNumber && $0 != "." }
            guard let value = Self.number(number), let factor = units[unit] else { return nil }
            total += value * factor
            rest = rest[unit.endIndex...]
        } while !rest.isEmpty
        return total <= 365 * 86_400e9 ? .nanoseconds(Int64(total.rounded())) : nil
    }

    static func share(_ text: String) -> UInt64? {
        guard text.hasSuffix("%"), let percent = Self.number(text.dropLast()), percent > 0, percent <= 100 else {
            return nil
        }
        return UInt64((percent * 1e7).rounded())
    }

    static func rate(_ text: String) -> Double? {
        let number = Self.number(text.hasSuffix("/s") ? text.dropLast(2) : text[...])
        return number.flatMap { (Double.leastNonzeroMagnitude...1e9).contains($0) ? $0 : nil }
    }

    static func range(_ text: String) -> ClosedRange<Int>? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count <= 2, let low = Int(parts[0]), let high = Int(parts[parts.count - 1]) else { return nil }
        return low >= 1 && low <= high && high <= 65_536 ? low...high : nil
    }

    static func byte(_ text: String) -> UInt8? {
        text.hasPrefix("0x") ? UInt8(text.dropFirst(2), radix: 16) : UInt8(text)
    }

    private static func number(_ text: Substring) -> Double? {
        guard let first = text.first, first.isASCII, first.isNumber, text.allSatisfy({ $0.isNumber || $0 == "." })
        else {
            return nil
        }
        return Double(text)
    }
}

/// CONNACK codes of refusals, translated between the two families.
///
/// Spec: MQTT 5.0 §3.2.2.2, MQTT 3.1.1 §3.2.2.3.
enum ConnectRefusal {
    private static let version5: Set<UInt8> = [
        0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B,
        0x9C, 0x9D, 0x9F,
    ]
    private static let pairs: [(v3: UInt8, v5: UInt8)] = [(1, 0x84), (2, 0x85), (3, 0x88), (4, 0x86), (5, 0x87)]

    static func isKnown(_ code: UInt8) -> Bool { (1...5).contains(code) || self.version5.contains(code) }

    /// The code for a client of MQTT 5, or of 3.1 and 3.1.1; codes unknown to 3.1.1 become 3, server unavailable.
    static func code(_ code: UInt8, version5: Bool) -> UInt8 {
        if version5 { return self.pairs.first { $0.v3 == code }?.v5 ?? code }
        return code < 0x80 ? code : self.pairs.first { $0.v5 == code }?.v3 ?? 3
    }
}
