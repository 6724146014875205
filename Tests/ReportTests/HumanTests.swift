import Measurement
import Report
import Testing

@Suite("Numbers for people")
struct HumanTests {
    @Test(
        "durations have three significant digits and the unit that fits",
        arguments: [
            (0, "0 ns"), (0.000_000_001, "1 ns"), (0.000_000_812, "812 ns"), (0.000_000_999_9, "1.00 µs"),
            (0.000_742, "742 µs"), (0.001_234, "1.23 ms"), (0.012_34, "12.3 ms"), (0.099_96, "100 ms"),
            (0.999_4, "999 ms"), (0.999_6, "1.00 s"), (12.345, "12.3 s"), (600, "600 s"), (1200, "1,200 s"),
            (-0.002, "-2.00 ms"), (.nan, "–"),
        ] as [(Double, String)]
    )
    func durations(_ seconds: Double, _ text: String) { #expect(Human.duration(seconds) == text) }

    @Test(
        "counts are grouped by thousands",
        arguments: [
            (0, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567"),
            (.max, "18,446,744,073,709,551,615"),
        ] as [(UInt64, String)]
    )
    func counts(_ value: UInt64, _ text: String) { #expect(Human.count(value) == text) }

    @Test(
        "bytes and rates carry their unit",
        arguments: [
            (Human.bytes(0), "0 B"), (Human.bytes(999), "999 B"), (Human.bytes(1200), "1.20 kB"),
            (Human.bytes(1_234_567_890), "1.23 GB"), (Human.rate(12_345.6), "12,346/s"), (Human.rate(0.25), "0.25/s"),
            (Human.counted(1, "client"), "1 client"), (Human.counted(12_345, "client"), "12,345 clients"),
            (Human.counted(0, "client"), "0 clients"), (Words.count(1, "stream"), "1 stream"),
            (Words.count(28_232, "stream"), "28,232 streams"),
            (Human.rate(7), "7/s"), (Human.percent(0.0312), "3.12 %"), (Human.percent(1), "100 %"),
        ]
    )
    func units(_ text: String, _ expected: String) { #expect(text == expected) }
}

@Suite("Numbers for machines")
struct PlainNumberTests {
    @Test(
        "are plain decimals that read back the same",
        arguments: [
            (0, "0"), (1, "1"), (-3, "-3"), (0.5, "0.5"), (0.000_012, "0.000012"), (1.5e-9, "0.0000000015"),
            (-2.5e-7, "-0.00000025"), (123_456.75, "123456.75"), (1e20, "100000000000000000000"),
            (1.25e17, "125000000000000000"), (.infinity, ""), (.nan, ""),
        ] as [(Double, String)]
    )
    func text(_ value: Double, _ text: String) {
        #expect(PlainNumber.text(value) == text)
        if !text.isEmpty { #expect(Double(text) == value) }
    }

    @Test("seconds end at the nanosecond")
    func seconds() {
        #expect(PlainNumber.seconds(0.001_234_567_891_234) == "0.001234568")
        #expect(PlainNumber.seconds(600) == "600")
        #expect(PlainNumber.seconds(1e-9) == "0.000000001")
    }
}
