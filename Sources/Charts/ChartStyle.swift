/// The look of a series, as CSS classes: a hue a quantity, a shade a QoS, a dash or a shape beside them.
package struct ChartStyle: Hashable, Sendable {
    /// The hue: class `s0` to `s7`.
    package var hue: Int
    /// The shade within the hue: class `q0` to `q2`; absent is the hue itself.
    package var shade: Int?
    /// Class `dash`, of lines: `service` beside `response`.
    package var isDashed: Bool

    package init(_ hue: Int, shade: Int? = nil, isDashed: Bool = false) {
        self.hue = hue
        self.shade = shade
        self.isDashed = isDashed
    }

    /// Such as `s3 q1 dash`.
    package var classes: String {
        let shade = self.shade.map { " q\(min(max($0, 0), 2))" } ?? ""
        return "s\(((self.hue % 8) + 8) % 8)\(shade)\(self.isDashed ? " dash" : "")"
    }
}

/// The shape of a point: never a hue alone tells verdicts and sides apart.
package enum ChartShape: String, CaseIterable, Sendable {
    case circle, cross, square, triangle, diamond, ring
}

/// The quantity of an axis, which says how its ticks are written.
package enum ChartUnit: Hashable, Sendable {
    /// Values are seconds; ticks are in µs, ms, s, min or h.
    case duration
    /// Values are 0 to 1; ticks are in percent.
    case share
    /// Values are bytes; ticks are in kB, MB, GB.
    case bytes
    /// Anything that is counted, with its name: `messages/s`; ticks are `2k`, `3M`.
    case count(String)
}

package enum ChartScaling: Sendable {
    /// A scale from 0.
    case linear
    /// A scale in decades.
    case log
}

/// A value that must not be passed.
package struct ChartObjective: Sendable {
    package var value: Double
    /// Such as `p99 < 50 ms`.
    package var label: String

    package init(_ value: Double, label: String) {
        self.value = value
        self.label = label
    }
}
