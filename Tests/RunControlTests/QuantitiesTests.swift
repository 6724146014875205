import RunControl
import Scenario
import Testing

@Suite("Quantities on the command line")
struct QuantitiesTests {
    @Test(
        "durations carry their unit",
        arguments: [
            ("10s", 10_000_000_000), ("250ms", 250_000_000), ("2m", 120_000_000_000), ("1h", 3_600_000_000_000),
            ("1m30s", 90_000_000_000), ("1.5s", 1_500_000_000), ("5us", 5_000), ("7ns", 7), ("0", 0), ("0s", 0),
            ("365d", 31_536_000_000_000_000),
        ] as [(String, Int64)]
    )
    func durations(_ text: String, _ nanoseconds: Int64) throws {
        #expect(try DurationText.parse(text) == nanoseconds)
    }

    @Test(
        "durations without a sense are refused",
        arguments: ["", "10", "s", "-1s", "1x", "1 s", "1.2.3s", "nan", "366d", "1s2"]
    )
    func wrongDurations(_ text: String) {
        #expect(throws: QuantityError.self) { try DurationText.parse(text) }
    }

    @Test(
        "a duration's text is the shortest exact one",
        arguments: [
            (0, "0s"), (10_000_000_000, "10s"), (90_000_000_000, "90s"), (120_000_000_000, "2m"), (1_500_000, "1500us"),
            (7, "7ns"), (3_600_000_000_000, "1h"),
        ] as [(Int64, String)]
    )
    func texts(_ nanoseconds: Int64, _ text: String) throws {
        #expect(DurationText.text(nanoseconds) == text)
        #expect(try DurationText.parse(text) == nanoseconds)
    }

    @Test("rates are per second", arguments: [("500/s", 500.0), ("500", 500), ("0.5/s", 0.5), ("20000000/s", 2e7)])
    func rates(_ text: String, _ perSecond: Double) throws {
        #expect(try RateText.parse(text) == perSecond)
    }

    @Test(
        "rates without a sense are refused",
        arguments: ["", "0", "0/s", "-5/s", "5/m", "inf", "nan", "0x10", "1e999"]
    )
    func wrongRates(_ text: String) {
        #expect(throws: QuantityError.self) { try RateText.parse(text) }
    }

    @Test(
        "sizes are bytes, in powers of ten or of two",
        arguments: [
            ("256", 256), ("0", 0), ("64KiB", 65_536), ("1KB", 1_000), ("1MB", 1_000_000), ("2MiB", 2_097_152),
            ("3B", 3),
        ]
    )
    func sizes(_ text: String, _ bytes: Int) throws {
        #expect(try SizeText.parse(text) == bytes)
    }

    @Test(
        "a size may be a range",
        arguments: [("256", 256...256), ("64..1KiB", 64...1_024), ("7..7", 7...7), ("0..1MB", 0...1_000_000)]
    )
    func ranges(_ text: String, _ sizes: ClosedRange<Int>) throws {
        #expect(try SizeRangeText.parse(text) == sizes)
    }

    @Test(
        "ranges without a sense are refused",
        arguments: [
            ("1024..64", "'1024..64' begins above its end; write it like 64..1024"),
            ("64..", "'' is not a size; write it like 256, 64KiB or 1MB"),
            ("..64", "'' is not a size; write it like 256, 64KiB or 1MB"),
            ("64...128", "'.128' is not a size; write it like 256, 64KiB or 1MB"),
            ("64-128", "'64-128' is not a size; write it like 256, 64KiB or 1MB"),
        ]
    )
    func wrongRanges(_ text: String, _ words: String) {
        #expect(throws: QuantityError(words)) { try SizeRangeText.parse(text) }
    }

    @Test(
        "sizes without a sense are refused",
        arguments: ["", "KB", "-1", "1k", "9999999999999999999", "9999999999999MiB"]
    )
    func wrongSizes(_ text: String) {
        #expect(throws: QuantityError.self) { try SizeText.parse(text) }
    }

    @Test("shares carry a %", arguments: [("0%", 0.0), ("30%", 0.3), ("100%", 1)])
    func shares(_ text: String, _ share: Double) throws {
        #expect(try PercentText.parse(text) == share)
    }

    @Test("shares without a sense are refused", arguments: ["", "%", "30", "101%", "-1%", "nan%"])
    func wrongShares(_ text: String) {
        #expect(throws: QuantityError.self) { try PercentText.parse(text) }
    }
}
