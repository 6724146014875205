import TestSupport
import XMPPCodec

/// The events of a reader, in order.
enum ReaderEvent: Hashable, Sendable {
    case opened(StreamHeader)
    case element(XMPPElement)
    case closed
}

/// Keeps what it is given, and stops behind so many events.
struct CollectingSink: XMPPReaderSink {
    var events: [ReaderEvent] = []
    var kinds: [StanzaKind] = []
    var limit = Int.max

    mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { self.add(.opened(header)) }

    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
        self.kinds.append(element.kind)
        return self.add(.element(element.element()))
    }

    mutating func closed() -> ReadingGoesOn { self.add(.closed) }

    private mutating func add(_ event: ReaderEvent) -> ReadingGoesOn {
        self.events.append(event)
        return self.events.count < self.limit ? .goOn : .stop
    }
}

/// The result of reading bytes in pieces.
struct Reading: Hashable {
    var events: [ReaderEvent] = []
    var error: XMPPReadError?
    var isBetweenElements = true

    var elements: [XMPPElement] {
        self.events.compactMap { if case .element(let element) = $0 { element } else { nil } }
    }
}

/// Each piece from memory of its own, so that reading past its end is seen by a sanitizer.
func read(
    _ pieces: [[UInt8]],
    framing: XMPPReader.Framing = .stream,
    limits: XMPPLimits = XMPPLimits()
) -> Reading {
    var reader = XMPPReader(framing: framing, limits: limits)
    var sink = CollectingSink()
    var result = Reading()
    for piece in pieces {
        do throws(XMPPReadError) {
            let taken = try reader.read(piece, into: &sink)
            precondition(taken == piece.count, "\(taken) of \(piece.count) bytes taken")
        } catch {
            result.error = error
            break
        }
    }
    result.events = sink.events
    result.isBetweenElements = reader.isBetweenElements
    return result
}

extension XMPPReader {
    mutating func read(_ bytes: [UInt8], into sink: inout CollectingSink) throws(XMPPReadError) -> Int {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        return try self.read(UnsafeRawBufferPointer(copy), into: &sink)
    }
}

/// A stream header as servers send it.
let usualHeader =
    "<?xml version='1.0'?><stream:stream id='1' version='1.0' xml:lang='en' "
    + "xmlns:stream='http://etherx.jabber.org/streams' from='localhost' xmlns='jabber:client'>"

extension XMPPElement {
    /// In one line, namespaces written out: `{urn:x}name a="1" {urn:y}b="2" ["text", {urn:x}child]`.
    var canonical: String {
        let attributes = self.attributes.map { attribute in
            let namespace = attribute.namespace.isEmpty ? "" : "{\(attribute.namespace)}"
            return " \(namespace)\(attribute.name)=\(attribute.value.quoted)"
        }
        let children = self.children.map { child in
            switch child {
            case .element(let element): element.canonical
            case .text(let text): text.quoted
            }
        }
        let content = children.isEmpty ? "" : " [" + children.joined(separator: ", ") + "]"
        return "{\(self.namespace)}\(self.name)" + attributes.joined() + content
    }
}

extension String {
    /// In quotes, with what would break a line as an escape.
    var quoted: String {
        let escaped = self.unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return "\"\(escaped)\""
    }
}
