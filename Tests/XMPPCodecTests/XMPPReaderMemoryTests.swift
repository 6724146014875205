import TestSupport
import Testing
import XMPPCodec

@Suite("Memory of a reader")
struct XMPPReaderMemoryTests {
    private static let stanza =
        "<message to='a' from='b'><body>" + String(repeating: "x", count: 300) + "</body></message>"

    private func size(_ reader: borrowing XMPPReader) -> Int { MemoryLayout<XMPPReader>.size + reader.ownedBytes }

    @Test("idle it is under 1 KiB, also with a header that is not the usual one")
    func idle() throws {
        #expect(MemoryLayout<XMPPReader>.size <= 256)
        var reader = XMPPReader()
        #expect(self.size(reader) <= 256)
        var sink = CollectingSink()
        _ = try reader.read(Array((usualHeader + Self.stanza).utf8), into: &sink)
        #expect(self.size(reader) <= 256)
        var unusual = XMPPReader()
        let namespace = String(repeating: "u", count: 400)
        let header = usualHeader.replacing(" id='1'", with: " id='1' xmlns:p='\(namespace)'")
        _ = try unusual.read(Array((header + Self.stanza).utf8), into: &sink)
        #expect(self.size(unusual) > 600)
        #expect(self.size(unusual) < 1_024)
    }

    @Test("what a cut element needs is bounded by what came of it, and given back with it")
    func cut() throws {
        var reader = XMPPReader()
        var sink = CollectingSink()
        _ = try reader.read(Array(usualHeader.utf8), into: &sink)
        let bytes = Array(Self.stanza.utf8)
        for (head, tail) in bytes.everyCut.dropFirst().dropLast() {
            _ = try reader.read(head, into: &sink)
            let during = self.size(reader)
            #expect(during > 256)
            #expect(during <= 256 + max(512, 2 * head.count) + 16 * 20)
            _ = try reader.read(tail, into: &sink)
            let after = self.size(reader)
            #expect(after <= 256)
        }
    }

    @Test("[RFC 6120 §13.12] deep nesting ends at the limit, whatever follows")
    func nesting() throws {
        for size in [1, 3, 1_000, 1 << 20] {
            let bytes = Array((usualHeader + String(repeating: "<a>", count: 100_000)).utf8)
            let result = read(bytes.prefix(20_000 + size).map { $0 }.pieces(of: size))
            #expect(result.error == .tooDeep(limit: 256))
        }
        let fine = String(repeating: "<a>", count: 256) + String(repeating: "</a>", count: 256)
        let result = read([Array((usualHeader + fine).utf8)])
        var depth = 0
        var element = result.elements.first
        while let here = element {
            depth += 1
            element = here.elements.first
        }
        #expect(depth == 256)
        #expect(try result.elements.first?.xml() == fine.replacing("<a></a>", with: "<a/>"))
    }

    @Test("whitespace between stanzas is not kept, however much comes")
    func whitespace() throws {
        var reader = XMPPReader()
        var sink = CollectingSink()
        _ = try reader.read(Array(usualHeader.utf8), into: &sink)
        for _ in 0..<100 { _ = try reader.read([UInt8](repeating: 0x20, count: 10_000), into: &sink) }
        #expect(self.size(reader) <= 256)
        #expect(sink.events.count == 1)
    }

    @Test(
        "[RFC 6120 §13.12] endless elements, values, names and tags end at the limit, with memory in its bounds",
        arguments: [
            ("<a>x", "x", .stanzaTooLarge(limit: 4_096)), ("<a b='x", "x", .stanzaTooLarge(limit: 4_096)),
            ("<x", "x", .nameTooLong(limit: 1_024)), ("<a ", " ", .stanzaTooLarge(limit: 4_096)),
            ("<a>&#0", "0", .nameTooLong(limit: 1_024)), ("<a><![CDATA[x", "x", .stanzaTooLarge(limit: 4_096)),
            ("", "<a>", .tooDeep(limit: 256)), ("<a></a    ", " ", .stanzaTooLarge(limit: 4_096)),
            ("", "<a b='1'>", .tooDeep(limit: 256)),
        ] as [(String, String, XMPPReadError)]
    )
    func endless(_ start: String, _ more: String, _ expected: XMPPReadError) throws {
        let limit = 4_096
        for size in [1, 7, 1_000, 100_000] {
            var reader = XMPPReader(limits: XMPPLimits(stanzaBytes: limit, depth: 256))
            var sink = CollectingSink()
            _ = try reader.read(Array((usualHeader + start).utf8), into: &sink)
            let piece = Array(String(repeating: more, count: size).utf8)
            var found: XMPPReadError?
            var taken = 0
            while found == nil, taken <= limit + 2 * piece.count {
                do throws(XMPPReadError) {
                    taken += try reader.read(piece, into: &sink)
                    #expect(self.size(reader) <= 256 + limit + 1 + 2 * 16 * limit / 3)
                } catch {
                    found = error
                }
            }
            #expect(found == expected, "pieces of \(size)")
            #expect(self.size(reader) <= 256 + limit + 1 + 2 * 16 * limit / 3)
        }
    }

    /// Gives a reader a text in pieces of 1 to 7 bytes.
    private func fragments(
        _ text: String,
        _ reader: inout XMPPReader,
        _ sink: inout CollectingSink,
        _ random: inout SeededGenerator
    ) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...7, using: &random))
            rest = rest.dropFirst(piece.count)
            _ = try reader.read(Array(piece), into: &sink)
        }
    }

    @Test("in fragments nothing is allocated for an element, and nothing is kept by who is idle")
    func sharedMemory() throws {
        let memory = XMPPReaderMemory()
        var reader = XMPPReader(memory: memory)
        var other = XMPPReader(memory: memory)
        var sink = CollectingSink()
        var random = SeededGenerator(seed: 1)
        _ = try reader.read(Array(usualHeader.utf8), into: &sink)
        _ = try other.read(Array(usualHeader.utf8), into: &sink)
        let sizes = [0, 100, 400, 5_000, 40_000]
        let all = sizes.map { size in
            "<message from='a'><body>" + String(repeating: "x", count: size) + "</body></message>"
        }.joined()
        for _ in 0..<2 { try self.fragments(all, &reader, &sink, &random) }
        let made = memory.made
        // 512 bytes to 64 KiB for the bytes, 512 for the tokens.
        #expect(made <= 10)
        for _ in 0..<20 {
            try self.fragments(all, &reader, &sink, &random)
            try self.fragments(all, &other, &sink, &random)
        }
        #expect(memory.made == made)
        #expect(sink.events.count == 2 + 42 * sizes.count)
        let idle = (self.size(reader), self.size(other))
        #expect(idle.0 <= 256)
        #expect(idle.1 <= 256)
    }

    @Test("what readers share of memory is bounded, however many were cut at once")
    func boundedMemory() throws {
        let memory = XMPPReaderMemory()
        let count = 2_000
        let readers = UnsafeMutablePointer<XMPPReader>.allocate(capacity: count)
        defer { readers.deallocate() }
        var sink = CollectingSink()
        for index in 0..<count {
            (readers + index).initialize(to: XMPPReader(memory: memory))
            _ = try readers[index].read(Array((usualHeader + "<message><body>x").utf8), into: &sink)
        }
        #expect(memory.made == 2 * count)
        #expect(memory.rest == 0)
        for index in 0..<count {
            _ = try readers[index].read(Array("</body></message>".utf8), into: &sink)
            let owned = readers[index].ownedBytes
            #expect(owned == 0)
            (readers + index).deinitialize(count: 1)
        }
        #expect(sink.events.count == 2 * count)
        #expect(memory.rest == XMPPReaderMemory.largestRest)
    }

    @Test("a large element leaves little behind in a flow that goes on")
    func largeInFlow() throws {
        var reader = XMPPReader(memory: XMPPReaderMemory())
        var sink = CollectingSink()
        _ = try reader.read(Array((usualHeader + "<a><b>").utf8), into: &sink)
        let much = "<c/>" + String(repeating: "x", count: 500_000) + String(repeating: "<c/>", count: 20_000) + "</b>"
        for piece in Array(much.utf8).pieces(of: 60_000) { _ = try reader.read(piece, into: &sink) }
        let during = self.size(reader)
        #expect(during > 700_000)
        // The next element is cut as well, so the flow is never at rest.
        _ = try reader.read(Array("</a><d".utf8), into: &sink)
        let after = self.size(reader)
        #expect(after <= 256 + 1_024)
        #expect(sink.events.count == 2)
    }

    @Test("shared memory changes nothing of what is read, wherever it is cut")
    func sameWithMemory() throws {
        let memory = XMPPReaderMemory()
        let bytes = Array((usualHeader + Self.stanza + "<iq><p:a xmlns:p='u' p:b='&lt;'/></iq>" + Self.stanza).utf8)
        let expected = read([bytes]).events
        for (head, tail) in bytes.everyCut {
            var reader = XMPPReader(memory: memory)
            var sink = CollectingSink()
            _ = try reader.read(head, into: &sink)
            _ = try reader.read(tail, into: &sink)
            #expect(sink.events == expected, "cut at \(head.count)")
        }
    }
}
