import Charts
import Testing

@Suite struct TickLabelsTests {
    @Test(
        "One unit stands at the axis, and the largest tick chooses it",
        arguments: [
            ([0, 0.02, 0.04], .duration, ["0", "20", "40"], "ms"),
            ([0, 0.5, 1], .duration, ["0", "0.5", "1.0"], "s"),
            ([0, 2e-6, 4e-6], .duration, ["0", "2", "4"], "µs"),
            ([0, 600, 1200], .duration, ["0", "10", "20"], "min"),
            ([0, 0.25, 0.5], .share, ["0", "25", "50"], "%"),
            ([0.99, 0.995, 1], .share, ["99.0", "99.5", "100.0"], "%"),
            ([0, 500, 1000], .count("messages/s"), ["0", "500", "1000"], "messages/s"),
            ([0, 5000, 10_000], .count("messages/s"), ["0", "5k", "10k"], "messages/s"),
            ([0, 5e5, 1e6], .count(""), ["0", "0.5M", "1.0M"], ""),
            ([0, 1e17, 2e17], .count(""), ["0", "1e17", "2e17"], ""),
            ([0, 1e-7, 2e-7], .count(""), ["0", "1e-7", "2e-7"], ""),
            ([0, 5e8, 1e9], .bytes, ["0", "0.5", "1.0"], "GB"),
            ([-0.1, 0, 0.1], .share, ["−10", "0", "10"], "%"),
        ] as [([Double], ChartUnit, [String], String)]
    )
    func common(ticks: [Double], unit: ChartUnit, texts: [String], name: String) {
        let labels = TickLabels(ticks, unit: unit)
        #expect(labels.texts == texts)
        #expect(labels.unit == name)
    }

    @Test("Ticks of a logarithmic axis carry their units")
    func each() {
        #expect(
            TickLabels(each: [1e-6, 1e-4, 3e-3, 0.5, 1, 20], unit: .duration).texts
                == ["1 µs", "100 µs", "3 ms", "500 ms", "1 s", "20 s"]
        )
        #expect(TickLabels(each: [1, 1000, 1e5], unit: .count("1/s")).texts == ["1", "1000", "100k"])
    }

    @Test(
        "A value has three significant digits and its unit",
        arguments: [
            (0.0123, .duration, "12.3 ms"), (1.5, .duration, "1.5 s"), (0, .duration, "0 ns"),
            (12_345, .count("messages/s"), "12.3k messages/s"), (0.117, .share, "11.7 %"),
            (1e-9, .count(""), "1e-9"), (.infinity, .duration, "–"), (1e300, .count("x"), "1e300 x"),
        ] as [(Double, ChartUnit, String)]
    )
    func value(value: Double, unit: ChartUnit, text: String) {
        #expect(TickLabels.value(value, unit: unit) == text)
    }
}
