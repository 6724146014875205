public import NIOCore

/// Why something cannot be written as XML; nothing was written.
public enum XMPPWriteError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A character that XML does not have, not even as a reference (XML §2.2).
    case illegalCharacter(UInt32)
    /// Not the name of an element or attribute (XML-NAMES §4).
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
