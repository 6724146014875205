import NIOCore
import XMPPCodec

extension Work {
    static let xmppCodec =
        [("in 64 KiB", 65_536), ("one a read", message.utf8.count), ("in 7-byte cuts", 7)].map { form, size in
            read("message, 185 bytes, read \(form)", message, elements: 1_000, pieces: size)
        } + [
            read("presence, 152 bytes, read", presence, elements: 1_000),
            read("roster of 100, read", roster, elements: 10),
            read("message with references and CDATA, read", escaped, elements: 1_000),
            tree, writing, literalWriting,
            Work(.xmppCodec, "address, ASCII, prepared", operations: 100) {
                {
                    for _ in 0..<100 {
                        do { keep(try JID("User00012@localhost/clamor")) } catch { fatalError("\(error)") }
                    }
                }
            },
        ]

    // MARK: What is read

    private static let header =
        "<?xml version='1.0'?><stream:stream id='5501739245' version='1.0' xml:lang='en' "
        + "xmlns:stream='http://etherx.jabber.org/streams' from='localhost' xmlns='jabber:client'>"

    private static let message =
        "<message xml:lang='en' to='user00012@localhost/clamor' from='user00007@localhost/clamor' type='chat' "
        + "id='c7-00001042'><body>Q0xBTQEAAAAqAAAABwAAAAAAAAAAAAQSAAAAGNzXB1o=</body></message>"

    private static let presence =
        "<presence to='user00012@localhost/clamor' from='user00007@localhost/clamor'><c xmlns='http://jabber.org/protocol/caps' "
        + "hash='sha-1' ver='x'/></presence>"

    private static let roster =
        "<iq type='result' id='r1' to='a@localhost/x'><query xmlns='jabber:iq:roster' ver='7'>"
        + (0..<100).map {
            "<item jid='user\($0)@localhost' name='User \($0)' subscription='both'><group>All</group></item>"
        }
        .joined() + "</query></iq>"

    private static let escaped =
        "<message to='a@localhost' id='1&amp;2'><body>1 &lt; 2 &amp;&amp; 3 &gt; 2 &#x20AC;\r\n<![CDATA[<b>]]></body></message>"

    // MARK: How it is measured

    /// Looks at what a receiver of messages looks at.
    private struct LookingSink: XMPPReaderSink {
        var elements = 0
        var bytes = 0

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.elements &+= element.kind == .other ? 0 : 1
            self.bytes &+= element.withAttribute("from") { $0.count } ?? 0
            self.bytes &+= element.withText(ofChild: "body") { $0.count } ?? 0
            return .goOn
        }

        mutating func closed() -> ReadingGoesOn { .goOn }
    }

    private static func reader() -> Place<XMPPReader> {
        let reader = Place(XMPPReader(memory: XMPPReaderMemory()))
        var sink = LookingSink()
        Array(self.header.utf8).withUnsafeBytes { bytes in
            do { _ = try reader.pointer.pointee.read(bytes, into: &sink) } catch { fatalError("\(error)") }
        }
        return reader
    }

    /// So many of one element, given to a reader in pieces.
    private static func read(_ name: String, _ xml: String, elements: Int, pieces size: Int = 65_536) -> Work {
        Work(.xmppCodec, name, operations: elements) {
            let stream = Array(repeatElement(Array(xml.utf8), count: elements).joined())
            let reader = Self.reader()
            return {
                var sink = LookingSink()
                stream.withUnsafeBytes { bytes in
                    for start in stride(from: 0, to: bytes.count, by: size) {
                        let piece = bytes[start..<min(start + size, bytes.count)]
                        do {
                            _ = try reader.pointer.pointee.read(UnsafeRawBufferPointer(rebasing: piece), into: &sink)
                        } catch {
                            fatalError("\(name): \(error)")
                        }
                    }
                }
                precondition(sink.elements == elements, "the reader lost elements")
                keep(sink)
            }
        }
    }

    /// Makes trees.
    private struct TreeSink: XMPPReaderSink {
        var last = XMPPElement("", namespace: "")

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.last = element.element()
            return .goOn
        }

        mutating func closed() -> ReadingGoesOn { .goOn }
    }

    private static let tree = Work(.xmppCodec, "message, 185 bytes, as a tree", operations: 100) {
        let stream = Array(repeatElement(Array(Self.message.utf8), count: 100).joined())
        let reader = Self.reader()
        return {
            var sink = TreeSink()
            stream.withUnsafeBytes { bytes in
                do { _ = try reader.pointer.pointee.read(bytes, into: &sink) } catch { fatalError("\(error)") }
            }
            precondition(sink.last.attributes.count == 5, "the reader lost elements")
            keep(sink.last)
        }
    }

    private static let writing = Work(.xmppCodec, "message, 185 bytes, written from a tree", operations: 100) {
        var message = XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: [
                "to": "user00012@localhost/clamor", "from": "user00007@localhost/clamor", "type": "chat",
                "id": "c7-00001042",
            ]
        )
        message.language = "en"
        message.add(
            XMPPElement(
                "body",
                namespace: XMPPNamespace.client,
                text: "Q0xBTQEAAAAqAAAABwAAAAAAAAAAAAQSAAAAGNzXB1o="
            )
        )
        let element = message
        let buffer = Place(ByteBuffer())
        return {
            for _ in 0..<100 {
                buffer.pointer.pointee.clear()
                do { try element.write(into: &buffer.pointer.pointee) } catch { fatalError("\(error)") }
            }
            precondition(buffer.pointer.pointee.readableBytes == Self.message.utf8.count, "other bytes")
            keep(buffer.pointer.pointee)
        }
    }

    private static let literalWriting = Work(.xmppCodec, "text of 100 bytes, escaped into a buffer", operations: 1_000)
    {
        let text = Array((String(repeating: "some words ", count: 8) + "& <b>, \"ü\".").utf8)
        let buffer = Place(ByteBuffer())
        return {
            for _ in 0..<1_000 {
                buffer.pointer.pointee.clear()
                text.withUnsafeBytes { bytes in
                    do {
                        try buffer.pointer.pointee.writeXMLText(bytes)
                        try buffer.pointer.pointee.writeXMLAttribute(bytes)
                    } catch {
                        fatalError("\(error)")
                    }
                }
            }
            keep(buffer.pointer.pointee)
        }
    }
}
