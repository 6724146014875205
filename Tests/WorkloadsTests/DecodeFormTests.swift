import MQTTCodec
import Measurement
import Testing
import Workloads
import XMPPCodec

@Suite("The decoder benchmark's streams and forms")
struct DecodeFormTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let plan: DecodeStreamPlan
    }

    static let cases = ProtocolVersion.allCases.flatMap { version in
        [false, true].map { isMix in
            Case(
                testDescription: "\(version)\(isMix ? ", mix" : "")",
                plan: DecodeStreamPlan(
                    version: version,
                    topic: Template(parsing: "t/%i"),
                    sizes: [0, 64, 1_500],
                    qualities: [.atMostOnce, .atLeastOnce, .exactlyOnce],
                    isMix: isMix,
                    seed: 7
                )
            )
        }
    }

    @Test("a stream is the same for the same seed, and goes on to the size asked for", arguments: cases)
    func repeatable(_ one: Case) {
        let stream = DecodeStream(one.plan, atLeast: 100_000)
        #expect(stream.bytes.count >= 100_000)
        #expect(stream.bytes == DecodeStream(one.plan, atLeast: 100_000).bytes)
        #expect(stream.ends.last == Int32(stream.bytes.count))
        #expect(stream.checksum.packets == UInt64(stream.ends.count))
        var other = one.plan
        other.seed = 8
        if one.plan.isMix { #expect(stream.bytes != DecodeStream(other, atLeast: 100_000).bytes) }
    }

    @Test("an 88-byte PUBLISH is reached exactly")
    func eightyEight() {
        let plan = DecodeStreamPlan(
            version: .v311,
            topic: Template(parsing: "bench/topic/abcdefgh"),
            sizes: [64],
            qualities: [.atMostOnce]
        )
        let stream = DecodeStream(plan, atLeast: 10_000)
        #expect(stream.ends.first == 88)
        #expect(stream.bytes.count == 88 * stream.ends.count)
    }

    @Test("each size comes as often at each QoS")
    func evenly() {
        let stream = DecodeStream(Self.cases[0].plan, atLeast: 20_000)
        #expect(stream.ends.count % 9 == 0)
        #expect(stream.checksum.payloadBytes == UInt64(stream.ends.count / 9 * 3 * (64 + 1_500)))
    }

    @Test("the pieces of every form make up the stream", arguments: DecodeForm.allCases, cases)
    func whole(_ form: DecodeForm, _ one: Case) {
        let stream = DecodeStream(one.plan, atLeast: 200_000)
        let pieces = form.pieces(of: stream, seed: 3)
        #expect(pieces.last == Int32(stream.bytes.count))
        var from: Int32 = 0
        var joined: [UInt8] = []
        for end in pieces {
            #expect(end > from)
            joined += stream.bytes[Int(from)..<Int(end)]
            from = end
        }
        #expect(joined == stream.bytes)
    }

    @Test("contiguous reads are 64 KiB and segments 1,460 bytes, but for the last")
    func even() {
        let stream = DecodeStream(Self.cases[0].plan, atLeast: 200_000)
        for (form, size) in [(DecodeForm.pipelined, 65_536), (.segments, 1_460)] {
            let sizes = Self.sizes(form.pieces(of: stream, seed: 1))
            #expect(sizes.dropLast().allSatisfy { $0 == size })
            #expect(sizes.last.map { $0 <= size } == true)
        }
    }

    @Test("fragments have 1 to 7 bytes, all of these, and follow the seed")
    func fragments() {
        let stream = DecodeStream(Self.cases[0].plan, atLeast: 100_000)
        let pieces = DecodeForm.fragments.pieces(of: stream, seed: 1)
        #expect(Set(Self.sizes(pieces)) == Set(1...7))
        #expect(pieces == DecodeForm.fragments.pieces(of: stream, seed: 1))
        #expect(pieces != DecodeForm.fragments.pieces(of: stream, seed: 2))
    }

    @Test("cuts go through every packet once, and through all its places", arguments: cases)
    func cuts(_ one: Case) {
        let stream = DecodeStream(one.plan, atLeast: 200_000)
        let pieces = DecodeForm.cuts.pieces(of: stream, seed: 1)
        #expect(pieces.count == stream.ends.count + 1)
        var start: Int32 = 0
        var offsets: Set<Int32> = []
        for (cut, end) in zip(pieces, stream.ends) {
            #expect(cut > start && cut < end)
            if end - start == 4 { offsets.insert(cut - start) }
            start = end
        }
        // Four bytes have three places to cut: acknowledgements are that long.
        if one.plan.isMix { #expect(offsets == [1, 2, 3]) }
    }

    @Test("what is decoded is what was encoded, in every form", arguments: DecodeForm.allCases, cases)
    func decoded(_ form: DecodeForm, _ one: Case) throws {
        let stream = DecodeStream(one.plan, atLeast: 50_000)
        let metrics = DecodeMetrics(DecodeLane(form, .memory))
        for copies in [false, true] {
            let work = DecodeInMemory(stream, metrics: metrics, seed: 5, copies: copies)
            #expect(try work.warmUp(0).measured == 0)
            let interval = try work.measure(0) { false }
            #expect(interval.measured > 0)
            #expect(interval.picoseconds.count == 1)
        }
    }

    /// Each field one off.
    static let wrong: [any WritableKeyPath<DecodeChecksum, UInt64> & Sendable] = [
        \.packets, \.nameBytes, \.nameEnds, \.payloadBytes, \.identifiers,
    ]

    @Test("a decoder that delivers something else is found out, whatever it is", arguments: wrong.indices)
    func foundOut(_ index: Int) {
        let streams = [
            DecodeStream(Self.cases[0].plan, atLeast: 10_000),
            DecodeStream(XMPPStreamPlan(sizes: [44], isMix: true), atLeast: 10_000),
        ]
        for stream in streams {
            var sum = stream.checksum
            sum[keyPath: Self.wrong[index]] += 1
            let metrics = DecodeMetrics(DecodeLane(.pipelined, .memory))
            let work = DecodeInMemory(stream.claiming(sum), metrics: metrics, seed: 5, copies: false)
            #expect(throws: DecodeFault.mismatch(stream.subject, encoded: sum, decoded: stream.checksum)) {
                try work.warmUp(0)
            }
        }
    }

    @Test("a decoder with a wrong result is reported, in the protocol's words")
    func mismatch() {
        var (encoded, decoded) = (DecodeChecksum(), DecodeChecksum())
        (encoded.packets, encoded.nameBytes, encoded.payloadBytes) = (7, 30, 500)
        decoded = encoded
        decoded.payloadBytes = 507
        #expect(
            "\(DecodeFault.mismatch(.mqtt(.v5), encoded: encoded, decoded: decoded))"
                == "7 packets with 30 bytes of topic, 500 of payload and sums of 0 for the topics' ends and 0 for the "
                + "identifiers were encoded, but 7 packets with 30 bytes of topic, 507 of payload and sums of 0 for the "
                + "topics' ends and 0 for the identifiers decoded"
        )
        #expect(
            "\(DecodeFault.mismatch(.xmpp(.stream), encoded: encoded, decoded: decoded))"
                == "7 stanzas with 30 bytes of senders, 500 of text and sums of 0 for the senders' ends and 0 for kinds and "
                + "ids were encoded, but 7 stanzas with 30 bytes of senders, 507 of text and sums of 0 for the senders' "
                + "ends and 0 for kinds and ids decoded"
        )
    }

    private static func sizes(_ pieces: [Int32]) -> [Int] {
        zip(pieces, [0] + pieces).map { Int($0 - $1) }
    }
}
