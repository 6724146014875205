import Glibc
import XMPPCodec

extension Micro {
    private static let header =
        "<?xml version='1.0'?><stream:stream id='5501739245' version='1.0' xml:lang='en' "
        + "xmlns:stream='http://etherx.jabber.org/streams' from='localhost' xmlns='jabber:client'>"

    /// As ejabberd relays it.
    private static let message =
        "<message xml:lang='en' to='user00012@localhost/clamor' from='user00007@localhost/clamor' type='chat' "
        + "id='c7-00001042'><body>Q0xBTQEAAAAqAAAABwAAAAAAAAAAAAQSAAAAGNzXB1o=</body></message>"

    private static let messages = 1024
    /// Walks of the stream between two looks at the clock, which is a system call.
    private static let xmlWalks = 16

    /// Adds up what a receiver of messages looks at, so that no delivery can be left out.
    private struct MessageSink: XMPPReaderSink {
        var messages = 0
        var sum = 0

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            guard element.kind == .message else { return .stop }
            self.messages &+= 1
            self.sum &+= element.withAttribute("from") { $0.count } ?? 0
            self.sum &+= element.withText(ofChild: "body") { $0.count } ?? 0
            return .goOn
        }

        mutating func closed() -> ReadingGoesOn { .stop }
    }

    /// The C program's stream, cut at the same places; with `once-` in front of the form in two walks, for callgrind.
    static func xml(_ form: String) throws -> String {
        let isOnce = form.hasPrefix("once-")
        let walks = isOnce ? 1 : Self.xmlWalks
        let stream = Array(repeatElement(Array(Self.message.utf8), count: Self.messages).joined())
        let ends = try Self.cut(stream.count, isOnce ? String(form.dropFirst(5)) : form)
        // On the heap, as a connection's is.
        let reader = UnsafeMutablePointer<XMPPReader>.allocate(capacity: 1)
        // With memory for what is cut, as each event loop has it for all its connections.
        reader.initialize(to: XMPPReader(memory: XMPPReaderMemory()))
        defer {
            reader.deinitialize(count: 1)
            reader.deallocate()
        }
        var sink = MessageSink()
        try Array(Self.header.utf8).withUnsafeBytes { _ = try reader.pointee.read($0, into: &sink) }
        let result = try stream.withUnsafeBytes { bytes in
            try ends.withUnsafeBufferPointer { ends in
                if isOnce {
                    for _ in 0..<2 { try Self.readAll(bytes, ends, 1, &reader.pointee, &sink) }
                    return (nanoseconds: 1.0, rounds: 1, bytes: UInt64?.none)
                }
                return try Self.time { try Self.readAll(bytes, ends, walks, &reader.pointee, &sink) }
            }
        }
        let measured = Double(result.rounds * walks * Self.messages)
        guard sink.messages == (result.rounds + 1) * walks * Self.messages, sink.sum == sink.messages * (26 + 44) else {
            throw Mismatch("the reader lost messages")
        }
        let figure = result.nanoseconds / Double(walks * Self.messages)
        let allocated = result.bytes.map { ",\"bytes\":\(Double($0) / measured)" } ?? ""
        let rate = Double(Self.message.utf8.count) / figure * 1e3
        return "{\"messages\":\(Int(measured)),\"read_ns\":\(figure),\"megabytes_per_second\":\(rate)\(allocated)}"
    }

    /// A function of its own: what a closure captures is reached by way of memory, for each message.
    @inline(never)
    private static func readAll(
        _ bytes: UnsafeRawBufferPointer,
        _ ends: UnsafeBufferPointer<UInt32>,
        _ walks: Int,
        _ reader: inout XMPPReader,
        _ sink: inout MessageSink
    ) throws {
        for _ in 0..<walks {
            var from = 0
            for end in ends {
                _ = try reader.read(UnsafeRawBufferPointer(rebasing: bytes[from..<Int(end)]), into: &sink)
                from = Int(end)
            }
        }
    }
}
