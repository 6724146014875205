import MQTTCodec
import Measurement
import Testing
import Workloads
import XMPPCodec

@Suite("The decoder benchmark's stanzas")
struct XMPPDecodeTests {
    static let plans = [
        XMPPStreamPlan(sizes: [256]), XMPPStreamPlan(sizes: [0, 1, 2_000]),
        XMPPStreamPlan(sizes: [8, 24, 60, 150, 600], isMix: true, seed: 7), XMPPStreamPlan(sizes: [0, 1], isMix: true),
    ]

    /// Counts the kinds that a reader finds, and adds up the bodies.
    private struct KindSink: XMPPReaderSink {
        var kinds: [StanzaKind: Int] = [:]
        var bodies: Set<Int> = []

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.kinds[element.kind, default: 0] += 1
            if let size = element.withText(ofChild: "body", { $0.count }) { self.bodies.insert(size) }
            return .goOn
        }

        mutating func closed() -> ReadingGoesOn { .goOn }
    }

    @Test("a stream is the same for the same seed, and goes on to the size asked for", arguments: plans)
    func repeatable(_ plan: XMPPStreamPlan) {
        let stream = DecodeStream(plan, atLeast: 100_000)
        #expect(stream.bytes.count >= 100_000)
        #expect(stream.bytes == DecodeStream(plan, atLeast: 100_000).bytes)
        #expect(stream.ends.last == Int32(stream.bytes.count))
        #expect(stream.checksum.packets == UInt64(stream.ends.count))
        #expect(stream.subject == .xmpp(.stream))
        var other = plan
        other.seed = 8
        if plan.isMix { #expect(stream.bytes != DecodeStream(other, atLeast: 100_000).bytes) }
    }

    @Test("a message is the one that the reader is measured by beside libexpat, but for its text")
    func message() {
        let stream = DecodeStream(XMPPStreamPlan(sizes: [44]), atLeast: 1_000)
        #expect(stream.ends.first == 185)
        #expect(
            String(decoding: stream.bytes.prefix(185), as: UTF8.self)
                == "<message xml:lang='en' from='user00001@localhost/clamor' to='user00012@localhost/clamor' type='chat' "
                + "id='c7-00000000'><body>the quick brown fox jumps over the lazy dog </body></message>"
        )
    }

    @Test("a mix has all kinds, bodies of all sizes, and what XML has to decode", arguments: plans.filter(\.isMix))
    func mix(_ plan: XMPPStreamPlan) throws {
        let stream = DecodeStream(plan, atLeast: 200_000)
        var reader = XMPPReader()
        var sink = KindSink()
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        try Array(header.utf8).withUnsafeBytes { _ = try reader.read($0, into: &sink) }
        try stream.bytes.withUnsafeBytes { _ = try reader.read($0, into: &sink) }
        #expect(Set(sink.kinds.keys) == [.message, .presence, .iq, .other])
        #expect(sink.kinds.values.reduce(0, +) == stream.ends.count)
        #expect(sink.bodies == Set(plan.sizes))
        let text = String(decoding: stream.bytes, as: UTF8.self)
        #expect(text.contains("&amp;"))
        for part in ["groupchat", "urn:xmpp:sm:3", "jabber:iq:roster", "urn:xmpp:ping", "<show>", "protocol/caps"] {
            #expect(text.contains(part), "\(part)")
        }
        if plan.sizes.contains(8) { #expect(text.contains("\u{E9}\u{E9}")) }
    }

    @Test("cuts go through every stanza once", arguments: plans)
    func cuts(_ plan: XMPPStreamPlan) {
        let stream = DecodeStream(plan, atLeast: 100_000)
        let pieces = DecodeForm.cuts.pieces(of: stream, seed: 1)
        var start: Int32 = 0
        for (cut, end) in zip(pieces, stream.ends) {
            #expect(cut > start && cut < end)
            start = end
        }
    }

    @Test("what is decoded is what was written, in every form", arguments: DecodeForm.allCases, plans)
    func decoded(_ form: DecodeForm, _ plan: XMPPStreamPlan) throws {
        let stream = DecodeStream(plan, atLeast: 50_000)
        let metrics = DecodeMetrics(DecodeLane(form, .memory, of: "xmpp"))
        for copies in [false, true] {
            let work = DecodeInMemory(stream, metrics: metrics, seed: 5, copies: copies)
            #expect(try work.warmUp(0).measured == 0)
            let interval = try work.measure(0) { false }
            #expect(interval.measured > 0)
            #expect(interval.picoseconds.count == 1)
        }
        #expect(metrics.lane.labels["protocol"] == "xmpp")
        #expect(metrics.lane.name == "memory-\(form.rawValue)")
    }

    // MARK: On live streams

    private func probe(_ reads: [String], of subject: DecodeSubject = .xmpp(.stream)) -> DecodeSample? {
        var probe = DecodeProbe(clients: 3, of: subject)
        for (index, text) in reads.enumerated() {
            Array(text.utf8).withUnsafeBytes { probe.copy($0, atBoundary: index == 0) }
        }
        return probe.take()
    }

    @Test("a client's reads are walked as they were cut, the closing tag too, and a stanza that is not whole")
    func walksReads() throws {
        let whole = ["<message><body>x</bo", "dy></message><presence/>", "</stream:stream>"]
        let open = ["<message><body>x</body></message><mess"]
        for reads in [whole, open] {
            let walked = try #require(self.probe(reads)).measure()
            #expect(walked.bytes == reads.joined().utf8.count)
            #expect(walked.nanoseconds > 0)
        }
        let message = "<message xmlns='jabber:client'/>"
        let webSocket = try #require(self.probe([message, message], of: .xmpp(.webSocket))).measure()
        #expect(webSocket.bytes == 2 * message.utf8.count)
    }

    @Test("in the timed walks no decoder is made: one does them all, or there is one for each that ends in a stanza")
    func preparedDecoders() throws {
        let whole = try #require(self.probe(["<message><body>x</bo", "dy></message>"]))
        #expect(whole.decoders == 1)
        let cut = try #require(self.probe(["<message><body>x</body></message><mess"]))
        #expect(cut.decoders == DecodeProbe.capacity / 38)
        let closed = try #require(self.probe(["<message/></stream:stream>"]))
        #expect(closed.decoders == DecodeProbe.capacity / 26)
        let publish: [UInt8] = [0x30, 0x05, 0x00, 0x01, 0x74, 0x00, 0x61]
        let mqtt = try #require(self.probe([String(decoding: publish, as: UTF8.self)], of: .mqtt(.v5)))
        #expect(mqtt.decoders == 1)
        #expect(mqtt.measure().bytes == publish.count)
    }

    @Test("what a reader of its own cannot follow is no measure: prefixes of an unusual header, a new stream")
    func refusesReads() throws {
        for reads in [["<p:x/>"], ["<?xml version='1.0'?><stream:stream>"]] {
            let walked = try #require(self.probe(reads)).measure()
            #expect(walked.bytes == 0)
            #expect(walked.nanoseconds == 0)
        }
    }

    @Test("copying begins at a boundary, and each second with another client")
    func turns() {
        var probe = DecodeProbe(clients: 3, of: .xmpp(.stream))
        Array("</body></message>".utf8).withUnsafeBytes { probe.copy($0, atBoundary: false) }
        #expect(probe.take() == nil)
        var places = [probe.place]
        for _ in 0..<2 {
            _ = probe.take()
            places.append(probe.place)
        }
        #expect(Set(places) == [0, 1, 2])
    }
}
