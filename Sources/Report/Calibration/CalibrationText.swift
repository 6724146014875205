import Measurement

/// A calibration for a terminal, printed part by part in progress.
package enum CalibrationText {
    /// One check: what was injected, what was reported, the difference, and whether that is ok.
    package static func line(_ check: CalibrationCheck) -> String {
        func value(_ value: Double?) -> String { value.map { self.text($0, check.unit) } ?? Words.unknown }
        let difference = check.difference.map { ($0 > 0 ? "+" : "") + self.text($0, check.unit) } ?? Words.unknown
        let words = [
            "\(check.ok ? "ok    " : "not ok") \(check.name.paddedRight(to: 22))",
            "injected \(value(check.injected))", "reported \(value(check.reported))", "difference \(difference)",
            "may \(value(check.tolerance))", check.problem,
        ]
        return words.compactMap(\.self).joined(separator: " · ") + "\n"
    }

    package static func line(_ cost: Calibration.Cost) -> String {
        let rate = cost.messagesPerSecond.map { " · \(Words.rate($0)) in closed loop" } ?? ""
        return "       QoS \(cost.qos): \(Words.duration(cost.cpuSecondsPerMessage)) of CPU a message\(rate)\n"
    }

    package static func line(_ limit: Calibration.Limit) -> String {
        let load =
            limit.load.map { limit.varies == "clients" ? Words.counted($0, "client") : Words.rate($0) } ?? "nothing"
        let words =
            switch limit.kind {
            case "generator-limited": "\(load) held before the generator was the limit: \(limit.reason ?? "")"
            case "found": "\(load) held; then the broker was the limit, not the generator"
            case "at-least": "\(load) held, and no more was offered"
            default: "\(limit.kind): \(limit.reason ?? "it found no answer")"
            }
        return "       largest \(limit.varies): \(words)\n"
    }

    /// The last line.
    package static func headline(_ calibration: Calibration) -> String {
        let wrong = calibration.checks.filter { !$0.ok }.map(\.name)
        let count = "\(calibration.checks.count) checks"
        return wrong.isEmpty ? "OK  \(count)" : "NOT OK  \(wrong.count) of \(count): \(wrong.joined(separator: ", "))"
    }

    private static func text(_ value: Double, _ unit: String?) -> String {
        switch unit {
        case "seconds": Words.duration(value)
        case "ratio": Words.percent(value)
        default: Words.number(value)
        }
    }
}
