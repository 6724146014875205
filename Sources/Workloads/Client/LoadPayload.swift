/// What the messages of a load carry.
package enum LoadPayload: Sendable {
    /// Bytes of no meaning, the ledger's header in front if there is room for it; so many, drawn for each message.
    case generated(sizes: ClosedRange<Int>)
    case message(Template)

    package static func generated(size: Int) -> Self { .generated(sizes: size...size) }
}

extension LoadPayload {
    /// Of what is made, none of a message.
    var sizes: ClosedRange<Int> {
        switch self {
        case .generated(let sizes): sizes
        case .message: 0...0
        }
    }

    var template: Template? {
        switch self {
        case .generated: nil
        case .message(let template): template
        }
    }

    /// Bytes, the most; placeholders not yet replaced, and XML not yet escaped.
    var largest: Int { self.template?.literalBytes ?? self.sizes.upperBound }
}
