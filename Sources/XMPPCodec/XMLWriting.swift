public import NIOCore

extension ByteBuffer {
    /// Appends text with `&`, `<`, `>` and carriage returns as references, without allocating.
    ///
    /// - Parameter bytes: UTF-8.
    /// - Throws: for a character that XML does not have, and for what is not UTF-8; nothing was written then.
    public mutating func writeXMLText(_ bytes: UnsafeRawBufferPointer) throws(XMPPWriteError) {
        try self.writeEscaped(bytes, isValue: false)
    }

    /// Appends the value of an attribute, with references for characters that quotes exclude, without allocating.
    ///
    /// Line ends and tabs are references too; otherwise the reader would see spaces (XML §3.3.3).
    public mutating func writeXMLAttribute(_ bytes: UnsafeRawBufferPointer) throws(XMPPWriteError) {
        try self.writeEscaped(bytes, isValue: true)
    }

    /// The same for a string.
    public mutating func writeXMLText(_ text: String) throws(XMPPWriteError) { try self.writeEscaped(text, false) }

    /// The same for a string.
    public mutating func writeXMLAttribute(_ text: String) throws(XMPPWriteError) { try self.writeEscaped(text, true) }

    private mutating func writeEscaped(_ text: String, _ isValue: Bool) throws(XMPPWriteError) {
        var text = text
        var problem: XMPPWriteError?
        text.withUTF8 { bytes in
            do throws(XMPPWriteError) {
                try self.writeEscaped(UnsafeRawBufferPointer(bytes), isValue: isValue)
            } catch {
                problem = error
            }
        }
        if let problem { throw problem }
    }

    private mutating func writeEscaped(_ bytes: UnsafeRawBufferPointer, isValue: Bool) throws(XMPPWriteError) {
        guard let base = bytes.baseAddress else { return }
        let start = self.writerIndex
        var run = 0
        var at = 0
        while true {
            at = Self.firstSpecial(base, at, bytes.count, isValue: isValue)
            if at == bytes.count { break }
            let byte = Characters.byte(base, at)
            if byte >= 0x80 {
                let scalar = Characters.decode(base, at, bytes.count)
                guard scalar.state == .whole, Characters.isLegal(scalar.value) else {
                    self.moveWriterIndex(to: start)
                    throw .illegalCharacter(scalar.state == .whole ? scalar.value : UInt32(byte))
                }
                at += scalar.count
            } else if let reference = Self.reference(byte, isValue: isValue) {
                self.writeBytes(UnsafeRawBufferPointer(start: base + run, count: at - run))
                self.writeStaticString(reference)
                at += 1
                run = at
            } else if byte == 0x09 || byte == 0x0A || byte >= 0x20 {
                at += 1
            } else {
                self.moveWriterIndex(to: start)
                throw .illegalCharacter(UInt32(byte))
            }
        }
        self.writeBytes(UnsafeRawBufferPointer(start: base + run, count: bytes.count - run))
    }

    @inline(__always)
    private static func firstSpecial(_ base: UnsafeRawPointer, _ at: Int, _ end: Int, isValue: Bool) -> Int {
        let (and, less) = (UInt8(ascii: "&"), UInt8(ascii: "<"))
        if !isValue { return Characters.firstStop(base, at, end, and, less, UInt8(ascii: ">")) }
        return Characters.firstStop(base, at, end, and, less, UInt8(ascii: "'"), UInt8(ascii: "\""))
    }

    private static func reference(_ byte: UInt8, isValue: Bool) -> StaticString? {
        switch byte {
        case UInt8(ascii: "&"): "&amp;"
        case UInt8(ascii: "<"): "&lt;"
        case UInt8(ascii: ">"): isValue ? nil : "&gt;"
        case UInt8(ascii: "'"): isValue ? "&apos;" : nil
        case UInt8(ascii: "\""): isValue ? "&quot;" : nil
        case 0x09: isValue ? "&#9;" : nil
        case 0x0A: isValue ? "&#10;" : nil
        case 0x0D: "&#13;"
        default: nil
        }
    }
}

/// Why something cannot be written as XML; nothing was written.
public enum XMPPWriteError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A character that XML does not have, not even as a reference (XML §2.2).
    case illegalCharacter(UInt32)
    /// A text that is not the name of an element or attribute (XML-NAMES §4).
    case name(String)
    /// An attribute that occurs twice (XML §3.1).
    case duplicateAttribute(String)
    /// So many long namespaces in alternation that their declarations would be most of the output; the limit in bytes.
    case namespaces(limit: Int)

    /// The problem and its remedy.
    public var description: String {
        switch self {
        case .illegalCharacter(let scalar):
            "U+\(codePoint(scalar)) is a character that XML does not have; leave it out or encode the text"
        case .name(let name): "'\(name)' is not a name that XML has"
        case .namespaces(let limit):
            "the element changes its namespace so often that declarations would take more than \(limit) bytes; "
                + "give parts in one namespace one parent"
        case .duplicateAttribute(let name): "the attribute '\(name)' occurs twice; set it once"
        }
    }
}

extension XMPPElement {
    /// Writes the element.
    ///
    /// If namespaces change so often that declarations would be most of the text, repeated ones are declared once, with
    /// prefixes, on the element itself.
    ///
    /// - Parameters:
    ///   - buffer: the element is appended to it; it is unchanged on an error.
    ///   - parent: the default namespace of the parent; the element declares its own only if it differs.
    /// - Throws: for names and characters that XML excludes, and for more declarations than any reader accepts.
    public func write(into buffer: inout ByteBuffer, parent: String = XMPPNamespace.client) throws(XMPPWriteError) {
        let start = buffer.writerIndex
        do throws(XMPPWriteError) {
            var plain = ElementWriter(parent: parent)
            if try plain.write(self, into: &buffer) { return }
            buffer.moveWriterIndex(to: start)
            var sharing = ElementWriter(parent: parent, sharing: SharedNamespaces(of: self))
            if try sharing.write(self, into: &buffer) { return }
            throw .namespaces(limit: ElementWriter.mostDeclared(isSharing: true))
        } catch {
            buffer.moveWriterIndex(to: start)
            throw error
        }
    }

    /// The element as text, for messages and tests.
    public func xml(parent: String = XMPPNamespace.client) throws(XMPPWriteError) -> String {
        var buffer = ByteBuffer()
        try self.write(into: &buffer, parent: parent)
        return String(buffer: buffer)
    }
}
