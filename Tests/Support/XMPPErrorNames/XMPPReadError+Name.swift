package import XMPPCodec

extension XMPPReadError {
    /// The case's name, for vectors and counts.
    package var name: String {
        switch self {
        case .stanzaTooLarge: "stanzaTooLarge"
        case .tooDeep: "tooDeep"
        case .tooManyAttributes: "tooManyAttributes"
        case .tooManyNamespaces: "tooManyNamespaces"
        case .nameTooLong: "nameTooLong"
        case .namespaceTooLong: "namespaceTooLong"
        case .streamNamespacesTooLarge: "streamNamespacesTooLarge"
        case .comment: "comment"
        case .processingInstruction: "processingInstruction"
        case .documentType: "documentType"
        case .entityReference: "entityReference"
        case .encoding: "encoding"
        case .notUTF8: "notUTF8"
        case .illegalCharacter: "illegalCharacter"
        case .illegalReference: "illegalReference"
        case .reference: "reference"
        case .declaration: "declaration"
        case .misplacedDeclaration: "misplacedDeclaration"
        case .name: "name"
        case .tag: "tag"
        case .lessThanInValue: "lessThanInValue"
        case .endTag: "endTag"
        case .endOfSectionInText: "endOfSectionInText"
        case .markup: "markup"
        case .duplicateAttribute: "duplicateAttribute"
        case .unboundPrefix: "unboundPrefix"
        case .namespaceDeclaration: "namespaceDeclaration"
        case .textInStream: "textInStream"
        case .outsideStream: "outsideStream"
        case .rootName: "rootName"
        case .rootNamespace: "rootNamespace"
        case .incompleteMessage: "incompleteMessage"
        }
    }
}
