/// The reason why bytes from the peer are not XMPP, or exceed the limits.
///
/// One case per broken rule; the stream cannot continue after any of them. Missing bytes are no error: the reader
/// waits.
public enum XMPPReadError: Error, Hashable, Sendable {
    /// An element below the root, or the stream header, of more bytes than the limit (RFC 6120 §13.12).
    case stanzaTooLarge(limit: Int)
    /// Elements nested deeper than the limit.
    case tooDeep(limit: Int)
    /// An element with more attributes than the limit.
    case tooManyAttributes(limit: Int)
    /// More namespace declarations in scope than an element may have attributes.
    case tooManyNamespaces(limit: Int)
    /// A name or reference of more bytes than the limit.
    case nameTooLong(limit: Int)
    /// A namespace of more bytes than a name may have.
    case namespaceTooLong(limit: Int)
    /// The namespaces of the stream header, kept as long as the stream, exceed the limit.
    case streamNamespacesTooLarge(limit: Int)

    /// A comment (RFC 6120 §11.1).
    case comment
    /// A processing instruction (RFC 6120 §11.1).
    case processingInstruction
    /// A document type declaration or a part of one (RFC 6120 §11.1).
    case documentType
    /// A reference to an entity that is not one of the five predefined ones (RFC 6120 §11.1).
    case entityReference

    /// An XML declaration with another encoding than UTF-8 (RFC 6120 §11.6).
    case encoding
    /// Bytes that are no UTF-8: broken, overlong, a surrogate, or above U+10FFFF (RFC 6120 §11.6).
    case notUTF8
    /// A character that XML does not have (XML §2.2).
    case illegalCharacter(UInt32)
    /// A character reference to a character that XML does not have (XML §4.1).
    case illegalReference(UInt32)
    /// `&` that begins no reference (XML §4.1).
    case reference

    /// A broken XML declaration (XML §2.8).
    case declaration
    /// An XML declaration that is not at the very start (RFC 6120 §11.5).
    case misplacedDeclaration
    /// An invalid name, or a name with a colon where none is allowed (XML-NAMES §4).
    case name
    /// A tag that is put together wrongly: an attribute without value, quotes or space before it (XML §3.1).
    case tag
    /// `<` in the value of an attribute (XML §3.1).
    case lessThanInValue
    /// An end tag that does not match the start tag (XML §3).
    case endTag
    /// `]]>` outside a CDATA section (XML §2.4).
    case endOfSectionInText
    /// `<!` that begins nothing that XML has.
    case markup
    /// The same attribute twice, by its name or by its namespace (XML §3.1, XML-NAMES §6.3).
    case duplicateAttribute
    /// A prefix that nothing is bound to (XML-NAMES §5).
    case unboundPrefix
    /// A namespace declaration that XML-NAMES §2.2 and §3 forbid.
    case namespaceDeclaration

    /// Text other than whitespace between stanzas.
    case textInStream
    /// Characters other than whitespace before the stream header or after the closing tag.
    case outsideStream
    /// A root element other than `stream` (RFC 6120 §4.8.1).
    case rootName
    /// A root element in another namespace than the streams' (RFC 6120 §4.8.1).
    case rootNamespace
    /// A WebSocket message that ends inside an element (RFC 7395 §3.3).
    case incompleteMessage

    /// The stream error that answers it (RFC 6120 §4.9.3).
    public var condition: StreamErrorCondition {
        switch self {
        case .stanzaTooLarge, .tooDeep, .tooManyAttributes, .tooManyNamespaces, .nameTooLong, .namespaceTooLong,
            .streamNamespacesTooLarge:
            .policyViolation
        case .comment, .processingInstruction, .documentType, .entityReference: .restrictedXML
        case .encoding, .notUTF8: .unsupportedEncoding
        case .unboundPrefix: .badNamespacePrefix
        case .rootNamespace: .invalidNamespace
        case .textInStream, .rootName, .incompleteMessage: .badFormat
        default: .notWellFormed
        }
    }

    /// The clause of the broken rule.
    public var clause: String { self.rule.clause }
}

extension XMPPReadError: CustomStringConvertible {
    /// The words for people: what was wrong, its clause, and the stream error that answers it.
    public var description: String {
        let (words, clause) = self.rule
        return "\(words) (\(clause)); answered with \(self.condition.rawValue)"
    }

    /// The fault, and the clause that forbids it.
    private var rule: (words: String, clause: String) {
        switch self {
        case .stanzaTooLarge(let limit): ("an element of more than \(limit) bytes", "RFC 6120 §13.12")
        case .tooDeep(let limit): ("elements nested deeper than \(limit)", "RFC 6120 §13.12")
        case .tooManyAttributes(let limit): ("an element with more than \(limit) attributes", "RFC 6120 §13.12")
        case .tooManyNamespaces(let limit): ("more than \(limit) namespace declarations in scope", "RFC 6120 §13.12")
        case .nameTooLong(let limit): ("a name of more than \(limit) bytes", "RFC 6120 §13.12")
        case .namespaceTooLong(let limit): ("a namespace of more than \(limit) bytes", "RFC 6120 §13.12")
        case .streamNamespacesTooLarge(let limit):
            ("namespaces of the stream header of more than \(limit) bytes", "RFC 6120 §13.12")
        case .comment: ("a comment", "RFC 6120 §11.1")
        case .processingInstruction: ("a processing instruction", "RFC 6120 §11.1")
        case .documentType: ("a document type declaration", "RFC 6120 §11.1")
        case .entityReference: ("a reference to an entity that XML does not define itself", "RFC 6120 §11.1")
        case .encoding: ("an encoding other than UTF-8", "RFC 6120 §11.6")
        case .notUTF8: ("bytes that are not UTF-8", "RFC 6120 §11.6")
        case .illegalCharacter(let scalar):
            ("the character U+\(codePoint(scalar)), which XML does not have", "XML §2.2")
        case .illegalReference(let scalar):
            ("a reference to U+\(codePoint(scalar)), which XML does not have", "XML §4.1")
        case .reference: ("a & that begins no reference", "XML §4.1")
        case .declaration: ("a broken XML declaration", "XML §2.8")
        case .misplacedDeclaration: ("an XML declaration that is not at the start of the stream", "RFC 6120 §11.5")
        case .name: ("an invalid name", "XML-NAMES §4")
        default: self.ruleOfTags
        }
    }

    /// The rules of tags, namespaces and the stream.
    private var ruleOfTags: (words: String, clause: String) {
        switch self {
        case .tag: ("a broken tag", "XML §3.1")
        case .lessThanInValue: ("a < in the value of an attribute", "XML §3.1")
        case .endTag: ("an end tag that does not match its start tag", "XML §3")
        case .endOfSectionInText: ("]]> in text", "XML §2.4")
        case .markup: ("<! that begins nothing XML has", "XML §3")
        case .duplicateAttribute: ("an attribute that occurs twice", "XML §3.1, XML-NAMES §6.3")
        case .unboundPrefix: ("a namespace prefix that is not declared", "XML-NAMES §5")
        case .namespaceDeclaration: ("a namespace declaration that is not allowed", "XML-NAMES §2.2, §3")
        case .textInStream: ("text between stanzas", "RFC 6120 §4.9.3.1")
        case .outsideStream: ("something outside the stream's root element", "XML §2.1")
        case .rootName: ("a root element other than <stream/>", "RFC 6120 §4.8.1")
        case .rootNamespace: ("a root element in another namespace than that of streams", "RFC 6120 §4.8.1")
        default: ("a message that ends inside an element", "RFC 7395 §3.3")
        }
    }
}

/// As Unicode's tables have it: four digits at least.
func codePoint(_ scalar: UInt32) -> String {
    let digits = String(scalar, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
}
