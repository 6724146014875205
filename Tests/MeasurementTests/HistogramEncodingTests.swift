import DataEncodings
import Foundation
import TestSupport
import Testing

import Measurement

/// The vectors were written by `hdrhistogram` 0.10.8 of PyPI.
@Suite("HdrHistogram V2 encoding")
struct HistogramEncodingTests {
    /// HdrHistogram(1, 600_000_000_000, 3) with 3, 3 × 1500, 70,000 × 1,000,000, 5 × 2,345,678,
    /// 2 × 2,345,678,901 and 599,999,999,999.
    static let known = "HISTFAAAADd4nJNpmSzMwMAgygABzFCaEYi7N50sYLD/ABFgZVovztY+nfHBUY61wlzH5zOy/K5nAgANewxV"
    /// HdrHistogram(1000, 60_000_000_000, 2) with 10 × 1,000,000, 5 × 5,000,000 and 30,000,000,000.
    static let otherLayout = "HISTFAAAACt4nJNpmSzMwMDAyQABTBCK+QWQ4P3hHsFg/wEi8pxT5CgLV7ckEwCargeN"

    private var sample: Histogram {
        var histogram = Histogram()
        let values: [(Int64, UInt64)] = [
            (3, 1), (1500, 3), (1_000_000, 70_000), (2_345_678, 5), (2_345_678_901, 2), (599_999_999_999, 1),
        ]
        for (value, count) in values { histogram.record(value, count: count) }
        return histogram
    }

    @Test("reads what another implementation wrote, with its percentiles")
    func readsVector() throws {
        let decoded = try Histogram(decodingV2: Self.known)
        #expect(decoded.buckets == self.sample.buckets)
        #expect(decoded.count == 70_012)
        #expect(
            decoded.percentiles([50, 90, 99, 99.9, 99.99, 100])
                == [1_000_447, 1_000_447, 1_000_447, 1_000_447, 2_347_007, 600_221_679_615]
        )
        #expect(abs(try #require(decoded.mean) - 9_636_487.28228018) < 0.001)
        #expect(abs(try #require(decoded.standardDeviation) - 2_267_430_179.0940957) < 1)
    }

    @Test("writes the bytes that another implementation writes")
    func writesVector() throws {
        let ours = self.sample.encodedV2()
        #expect(ours.hasPrefix("HISTFAAAA"))
        // Behind the deflation, which may differ from one zlib to the next.
        #expect(try Self.inflated(ours) == Self.inflated(Self.known))
    }

    @Test("moves another layout's values into its own buckets, within that layout's digits")
    func otherLayout() throws {
        let decoded = try Histogram(decodingV2: Self.otherLayout)
        #expect(decoded.count == 16)
        for (percent, theirs) in [(50.0, 1_003_519.0), (90, 5_013_503), (100, 30_064_771_071)] {
            let found = Double(try #require(decoded.percentile(percent)))
            #expect(abs(found - theirs) <= theirs / 100)
        }
    }

    @Test("comes back as it was", arguments: Distribution.all)
    func roundTrip(_ distribution: Distribution) throws {
        let histogram = Histogram(of: distribution.values(100_000))
        let decoded = try Histogram(decodingV2: histogram.encodedV2())
        #expect(decoded.buckets == histogram.buckets)
        #expect(decoded.count == histogram.count)
        #expect(decoded.mean == histogram.mean)
        #expect(decoded.standardDeviation == histogram.standardDeviation)
    }

    @Test("carries counts of every size", arguments: (0..<63).map { UInt64(1) << UInt64($0) })
    func largeCounts(_ count: UInt64) throws {
        var histogram = Histogram()
        histogram.record(77, count: count)
        histogram.record(80, count: count - 1)
        let decoded = try Histogram(decodingV2: histogram.encodedV2())
        #expect(decoded.buckets[77] == count)
        #expect(decoded.buckets[80] == count - 1)
    }

    /// Cookie, payload length, index offset, 3 digits, lowest value 1, highest value 600,000,000,000, ratio 1.0.
    private static func emptyPayload(counts: [UInt8]) -> [UInt8] {
        [0x1C, 0x84, 0x93, 0x13, 0, 0, 0, UInt8(counts.count), 0, 0, 0, 0, 0, 0, 0, 3]
            + [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x8B, 0xB2, 0xC9, 0x70, 0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0] + counts
    }

    @Test("an empty histogram is encoded with one zero count, as the Java and C encoders write it")
    func encodesEmpty() throws {
        #expect(HistogramPayload.encode(Histogram()) == Self.emptyPayload(counts: [0]))
        #expect(try Histogram(decodingV2: Histogram().encodedV2()).isEmpty)
    }

    /// The Python encoder writes no count at all.
    @Test("an empty histogram is decoded with one zero count, and with none", arguments: [[0], []] as [[UInt8]])
    func decodesEmpty(_ counts: [UInt8]) throws {
        #expect(try HistogramPayload.decode(Self.emptyPayload(counts: counts)).isEmpty)
    }

    @Test("an empty histogram of the Python encoder is decoded")
    func decodesEmptyVector() throws {
        let text = "HISTFAAAAB14nJNpmSzMgADMUJoRiLs3nSxgsP8AEQAAVoME8A=="
        #expect(try Histogram(decodingV2: text).isEmpty)
    }

    @Test(
        "refuses what is not such an encoding",
        arguments: [
            ("", .truncated),
            ("HIS", .notBase64),
            ("HIST*AAA", .notBase64),
            ("HISTFAAA", .truncated),
            ("HISTFAAAADZ4nJNpmSzMwMAg", .truncated),
            ("HISTEwAAAAAAAAAA", .unknownFormat(0x1C84_9313)),
            ("AAAAAAAAAAAAAAAA", .unknownFormat(0)),
            ("HISTFAAAAAR4eHh4", .badCompression),
        ] as [(String, HistogramDecodingError)]
    )
    func refuses(_ text: String, _ error: HistogramDecodingError) {
        #expect(throws: error) { try Histogram(decodingV2: text) }
    }

    @Test("survives any damage without a trap")
    func damage() {
        var dice = SeededDice(seed: 3)
        let text = Array(self.sample.encodedV2().utf8)
        for _ in 0..<2000 {
            var bytes = Base64.decode(text) ?? []
            bytes[Int.random(in: 0..<bytes.count, using: &dice)] ^= UInt8.random(in: 1...255, using: &dice)
            _ = try? Histogram(decodingV2: Base64.encode(bytes))
        }
        // And the same behind the deflation, whose checksum catches most of the above.
        guard let payload = try? Self.inflated(self.sample.encodedV2()) else { return }
        for _ in 0..<5000 {
            var bytes = payload
            for _ in 0..<3 {
                bytes[Int.random(in: 0..<bytes.count, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
            }
            _ = try? HistogramPayload.decode(bytes)
        }
    }

    private static func inflated(_ text: String) throws -> [UInt8] {
        let bytes = try #require(Base64.decode(text.utf8))
        return try #require(Deflate.expand(Array(bytes[8...])))
    }
}
