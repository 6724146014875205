package enum LoadPayload: Sendable {
    /// Random bytes, with the ledger's header first if it fits. The size is drawn for each message.
    case generated(sizes: ClosedRange<Int>)
    case message(Template)

    package static func generated(size: Int) -> Self { .generated(sizes: size...size) }

    /// Sizes of generated payloads; 0 for templates.
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

    /// Largest payload in bytes, before placeholders are replaced and XML is escaped.
    package var largest: Int { self.template?.literalBytes ?? self.sizes.upperBound }
}
