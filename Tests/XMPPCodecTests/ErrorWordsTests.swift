import Testing
import TestSupport
import XMPPCodec

@Suite("Errors of the XMPP codec in words")
struct ErrorWordsTests {
    private static let readErrors: [XMPPReadError] = [
        .stanzaTooLarge(limit: 9), .tooDeep(limit: 9), .tooManyAttributes(limit: 9), .tooManyNamespaces(limit: 9),
        .nameTooLong(limit: 9), .namespaceTooLong(limit: 9), .streamNamespacesTooLarge(limit: 9), .comment,
        .processingInstruction, .documentType, .entityReference, .encoding, .notUTF8, .illegalCharacter(1),
        .illegalReference(1), .reference, .declaration, .misplacedDeclaration, .name, .tag, .lessThanInValue, .endTag,
        .endOfSectionInText, .markup, .duplicateAttribute, .unboundPrefix, .namespaceDeclaration, .textInStream,
        .outsideStream, .rootName, .rootNamespace, .incompleteMessage,
    ]
    private static let writeErrors: [XMPPWriteError] = [
        .illegalCharacter(1), .name("1"), .duplicateAttribute("a"), .namespaces(limit: 9),
    ]
    private static let parts: [JID.Part] = [.local, .domain, .resource]
    private static let jidErrors: [JIDError] =
        parts.flatMap { [.empty($0), .tooLong($0), .character($0, 1), .direction($0)] } + [.domain]
    private static let all: [any Error] =
        readErrors.map { $0 as any Error } + writeErrors.map { $0 as any Error } + jidErrors.map { $0 as any Error }
        + StanzaErrorCondition.allCases.map { StanzaError($0) as any Error }
        + StreamErrorCondition.allCases.map { StreamError($0) as any Error }

    /// Does not compile with a case that the lists above lack.
    private static func isListed(_ error: any Error) -> Bool {
        switch error {
        case let error as XMPPReadError:
            switch error {
            case .stanzaTooLarge, .tooDeep, .tooManyAttributes, .tooManyNamespaces, .nameTooLong, .namespaceTooLong,
                .streamNamespacesTooLarge, .comment, .processingInstruction, .documentType, .entityReference,
                .encoding, .notUTF8, .illegalCharacter, .illegalReference, .reference, .declaration,
                .misplacedDeclaration, .name, .tag, .lessThanInValue, .endTag, .endOfSectionInText, .markup,
                .duplicateAttribute, .unboundPrefix, .namespaceDeclaration, .textInStream, .outsideStream, .rootName,
                .rootNamespace, .incompleteMessage:
                true
            }
        case let error as XMPPWriteError:
            switch error {
            case .illegalCharacter, .name, .duplicateAttribute, .namespaces: true
            }
        case let error as JIDError:
            switch error {
            case .empty, .tooLong, .character, .direction, .domain: true
            }
        default: error is StanzaError || error is StreamError
        }
    }

    @Test("every case is words for people", arguments: all)
    func words(_ error: any Error) {
        #expect(Self.isListed(error))
        #expect(Wording.swift(in: "\(error)") == nil, "\(error)")
    }
}
