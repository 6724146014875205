import Measurement
import Testing

@Suite("Numbers for people")
struct WordsTests {
    @Test(
        "durations have three significant digits and the unit that fits",
        arguments: [
            (0, "0 ns"), (0.000_000_001, "1 ns"), (0.000_000_812, "812 ns"), (0.000_000_999_9, "1.00 µs"),
            (0.000_742, "742 µs"), (0.001_234, "1.23 ms"), (0.012_34, "12.3 ms"), (0.099_96, "100 ms"),
            (0.999_4, "999 ms"), (0.999_6, "1.00 s"), (12.345, "12.3 s"), (600, "600 s"), (1200, "1,200 s"),
            (-0.002, "-2.00 ms"), (.nan, "–"),
        ] as [(Double, String)]
    )
    func durations(_ seconds: Double, _ text: String) { #expect(Words.duration(seconds) == text) }

    @Test(
        "counts are grouped by thousands",
        arguments: [
            (0, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567"),
            (.max, "18,446,744,073,709,551,615"),
        ] as [(UInt64, String)]
    )
    func counts(_ value: UInt64, _ text: String) { #expect(Words.count(value) == text) }

    @Test(
        "bytes and rates carry their unit",
        arguments: [
            (Words.bytes(0), "0 B"), (Words.bytes(999), "999 B"), (Words.bytes(1200), "1.20 kB"),
            (Words.bytes(1_234_567_890), "1.23 GB"), (Words.rate(12_345.6), "12,346/s"), (Words.rate(0.25), "0.25/s"),
            (Words.counted(1, "client"), "1 client"), (Words.counted(12_345, "client"), "12,345 clients"),
            (Words.counted(0, "client"), "0 clients"), (Words.count(1, "stream"), "1 stream"),
            (Words.count(28_232, "stream"), "28,232 streams"),
            (Words.rate(7), "7/s"), (Words.percent(0.0312), "3.12 %"), (Words.percent(1), "100 %"),
        ]
    )
    func units(_ text: String, _ expected: String) { #expect(text == expected) }
}

@Suite("Numbers with at most so many decimals")
struct DecimalTests {
    @Test(
        "have groups, a sign, and no zeros at their end",
        arguments: [
            (Words.decimal(0), "0"), (Words.decimal(1_234.5), "1,234.5"), (Words.decimal(99.999), "100"),
            (Words.decimal(0.004), "0"), (Words.decimal(-0.004), "0"), (Words.decimal(-1.25, digits: 1), "-1.3"),
            (Words.decimal(100, digits: 0), "100"), (Words.fixed(1_012.4, digits: 0), "1,012"),
            (Words.decimal(1e14, digits: 3), "100,000,000,000,000"),
            (Words.decimal(.infinity), "inf"), (Words.percent(0.0312, digits: 1), "3.1 %"),
            (Words.percent(1, digits: 2), "100 %"), (Words.milliseconds(1_500_000), "1.5 ms"),
            (Words.binaryBytes(1_536), "1.5 KiB"), (Words.binaryBytes(3 << 30), "3 GiB"),
            (Words.count(-1_234), "-1,234"), (Words.count(Int64.min), "-9,223,372,036,854,775,808"),
        ]
    )
    func text(_ text: String, _ expected: String) { #expect(text == expected) }
}

@Suite("Numbers for machines")
struct PlainWordsTests {
    @Test(
        "are plain decimals that read back the same",
        arguments: [
            (0, "0"), (1, "1"), (-3, "-3"), (0.5, "0.5"), (0.000_012, "0.000012"), (1.5e-9, "0.0000000015"),
            (-2.5e-7, "-0.00000025"), (123_456.75, "123456.75"), (1e20, "100000000000000000000"),
            (1.25e17, "125000000000000000"), (.infinity, ""), (.nan, ""),
        ] as [(Double, String)]
    )
    func text(_ value: Double, _ text: String) {
        #expect(Words.plain(value) == text)
        if !text.isEmpty { #expect(Double(text) == value) }
    }

    @Test("seconds end at the nanosecond")
    func seconds() {
        #expect(Words.plainSeconds(0.001_234_567_891_234) == "0.001234568")
        #expect(Words.plainSeconds(600) == "600")
        #expect(Words.plainSeconds(1e-9) == "0.000000001")
    }
}
