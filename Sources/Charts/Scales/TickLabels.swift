/// Texts of ticks, three significant digits at most, and the unit that stands once at the axis.
package struct TickLabels: Sendable {
    package let texts: [String]
    /// Empty if each text has its own unit.
    package let unit: String

    /// One unit for all, which the largest tick chooses.
    package init(_ ticks: [Double], unit: ChartUnit) {
        let highest = ticks.reduce(0) { max($0, abs($1)) }
        let step = zip(ticks, ticks.dropFirst()).map { $1 - $0 }.min() ?? highest
        let (factor, suffix, name) = Self.scale(highest, unit: unit)
        self.unit = name
        self.texts = ticks.map { tick in
            tick == 0 ? "0" : Self.plain(tick / factor, step: step / factor) + suffix
        }
    }

    /// A unit at each, as a logarithmic axis of several decades needs it.
    package init(each ticks: [Double], unit: ChartUnit) {
        let common =
            switch unit {
            case .duration, .bytes: ""
            case .share: "%"
            case .count(let name): name
            }
        let isCommon = unit != .duration && unit != .bytes
        self.unit = common
        self.texts = ticks.map { tick in
            let (factor, suffix, name) = Self.scale(abs(tick), unit: unit)
            let number = Self.exact(tick / factor)
            return isCommon ? number + suffix : "\(number) \(name)"
        }
    }

    /// The factor of a unit, what follows each number, and the name at the axis.
    private static func scale(_ highest: Double, unit: ChartUnit) -> (factor: Double, suffix: String, name: String) {
        switch unit {
        case .duration:
            // A tick of 1000 of a unit is one of the next.
            let units: [(Double, String)] = [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1, "s")]
            let (factor, name) = units.last { highest >= $0.0 * (1 - 1e-9) } ?? (1e-9, "ns")
            if highest >= 36_000 { return (3600, "", "h") }
            return highest >= 600 ? (60, "", "min") : (factor, "", name)
        case .share: return (0.01, "", "%")
        case .bytes:
            let units: [(Double, String)] = [(1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")]
            let (factor, name) = units.last { highest >= $0.0 * (1 - 1e-9) } ?? (1, "B")
            return (factor, "", name)
        case .count(let name):
            // Up to 9999 the number itself is shorter to read.
            guard highest >= 9999.5, highest < 1e15 else { return (1, "", name) }
            let units: [(Double, String)] = [(1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")]
            let (factor, suffix) = units.last { highest >= $0.0 * (1 - 1e-9) } ?? (1e3, "k")
            return (factor, suffix, name)
        }
    }

    private static func plain(_ value: Double, step: Double) -> String {
        let magnitude = abs(value)
        guard magnitude.isFinite, magnitude < 1e6, abs(step) >= 0.000_999 else { return NumberText.exponential(value) }
        let digits = -Int(min(Logarithm.log10(abs(step)) + 1e-9, 0).rounded(.down))
        return NumberText.fixed(value, digits: min(digits, 3))
    }

    /// The number with as many decimals as the tick needs: 1.5 beside 1 and 2 is not another 2.
    private static func exact(_ value: Double) -> String {
        let magnitude = abs(value)
        guard magnitude.isFinite, magnitude < 1e6, magnitude >= 0.000_999 else { return NumberText.exponential(value) }
        let digits = (0...5).first { digits in
            let scaled = magnitude * Logarithm.pow10(digits)
            return abs(scaled - scaled.rounded()) < scaled * 1e-6
        }
        return digits.map { NumberText.fixed(value, digits: $0) } ?? NumberText.significant(value)
    }

    /// The text of a time tick: `30 s`, `5 min`, `2 h`, `1:30 h`, `1:05 min`.
    package static func time(_ second: Double, step: Double) -> String {
        guard second.isFinite, abs(second) < 1e12 else { return "" }
        guard second != 0 else { return "0" }
        let sign = second < 0 ? "−" : ""
        let magnitude = abs(second)
        if step < 1 { return sign + self.plain(magnitude, step: step) + " s" }
        let seconds = Int(magnitude.rounded())
        if seconds < 120, step < 60 { return "\(sign)\(seconds) s" }
        let minutes = seconds / 60 % 60
        if step < 60, seconds >= 7200 {
            return "\(sign)\(seconds / 3600):\(self.two(minutes)):\(self.two(seconds % 60)) h"
        }
        if step < 60 { return "\(sign)\(seconds / 60):\(self.two(seconds % 60)) min" }
        if seconds < 7200, step < 3600 { return "\(sign)\(seconds / 60) min" }
        return minutes == 0 ? "\(sign)\(seconds / 3600) h" : "\(sign)\(seconds / 3600):\(self.two(minutes)) h"
    }

    private static func two(_ value: Int) -> String { value < 10 ? "0\(value)" : String(value) }

    /// A value for people, with its unit: `12.3 ms`, `1.24k messages/s`.
    package static func value(_ value: Double, unit: ChartUnit) -> String {
        guard value.isFinite else { return "–" }
        let (factor, suffix, name) = Self.scale(abs(value), unit: unit)
        let number = NumberText.significant(value / factor) + suffix
        return name.isEmpty ? number : "\(number) \(name)"
    }
}
