/// Splits a stream's bytes into the root's child elements.
///
/// One pass over contiguous bytes: those of the read if the element is complete, those of a carry if a read cut it. Its
/// results are recorded as ``Token``s, in memory that the caller lends for a read, or in its own memory for an element
/// that is cut or has many parts. A name, reference or mark that is cut is scanned again from its beginning, which the
/// limits keep short; all else continues where it stopped. So the same bytes give the same tokens and the same error in
/// any fragmentation, and an error is reported at the byte that breaks the rule.
///
/// Memory per stream: about 180 bytes, and those for a cut element, which are released with it.
@usableFromInline
struct Tokenizer: ~Copyable {
    /// The construct that is expected next in the stream.
    enum Stage: UInt8 {
        /// Byte order mark, XML declaration or header.
        case start
        /// XML declaration or header.
        case afterMark
        /// The header.
        case header
        /// Elements, or the closing tag.
        case open
        /// The header was an empty element.
        case closing
        case closed
        /// Elements alone, each with all its namespaces (RFC 7395).
        case messages
        case failed
    }

    /// The point within the current element at which the bytes ran out.
    enum Phase: UInt8 {
        case prolog, markup, content, section, inTag, equals, quote, value, endSpace
    }

    /// How a piece of parsing ended.
    enum Outcome: UInt8 {
        case goOn
        /// The bytes ran out.
        case more
        case whole
        case failed
    }

    /// The events reported to the caller.
    @usableFromInline
    enum Event: UInt8 {
        case nothing, opened, element, closed, failed
    }

    /// Namespaces of a stream header in bytes at most; they are kept as long as the stream.
    static let streamTableLimit = 512
    let limits: CompactLimits
    let isMessages: Bool
    var stage: Stage
    var phase = Phase.prolog
    var quote: UInt8 = 0
    /// The current text or value needs decoding.
    var needsDecoding = false
    var isEmptyTag = false
    /// A stream preceded this one: a line end after its last element may follow.
    var isRestarted = false
    @usableFromInline
    var error: XMPPReadError?

    /// The current position, and the start of the current text, counted from the element's first byte.
    var at = 0
    var textStart = 0
    var depth = 0
    /// The innermost open element.
    var open = Token.none
    /// Declarations, and prefixes to resolve, of the current tag.
    var tagDeclarations = 0
    var tagPrefixes = 0
    /// Bytes of the prefix of the name just read.
    var prefixCount = 0
    /// Declarations in scope.
    var scope = 0
    /// The default namespace in scope, and that of the stream.
    var defaultNamespace = NamespaceReference.none
    var streamDefault = NamespaceReference.none

    /// Tokens of the current element; lent, or the store's.
    @usableFromInline
    var tokens: UnsafeMutablePointer<Token>
    @usableFromInline
    var count = 0
    var room = 0
    /// Where the element that was completed begins; valid until the next call.
    @usableFromInline
    var base: UnsafeRawPointer
    var store = TokenStore()
    var carry = Carry()
    /// The shared memory for both; without it each allocates its own.
    let shared: XMPPReaderMemory?
    /// Namespaces of the stream header that are not the usual ones, see ``StreamTable``.
    @usableFromInline
    var table: UnsafeMutableRawPointer?

    init(limits: XMPPLimits, isMessages: Bool, shared: XMPPReaderMemory?) {
        self.shared = shared
        self.limits = CompactLimits(limits)
        self.isMessages = isMessages
        self.stage = isMessages ? .messages : .start
        // Never looked at while there are no tokens.
        self.tokens = Self.nowhere.assumingMemoryBound(to: Token.self)
        self.base = UnsafeRawPointer(Self.nowhere)
    }

    @usableFromInline
    deinit { self.table?.deallocate() }

    private static var nowhere: UnsafeMutableRawPointer {
        guard let place = UnsafeMutableRawPointer(bitPattern: 16) else { preconditionFailure("16 is an address") }
        return place
    }

    /// Forgets everything but the limits.
    mutating func restart() {
        self.dropElement()
        self.giveBack()
        self.table?.deallocate()
        self.table = nil
        self.streamDefault = NamespaceReference.none
        self.stage = self.isMessages ? .messages : .start
        self.error = nil
        self.isRestarted = true
    }

    /// Takes bytes from `offset` on, up to the next event.
    ///
    /// - Parameters:
    ///   - bytes: what was read; lies still as long as the element is looked at.
    ///   - count: of the bytes.
    ///   - offset: of the first byte that is not taken yet.
    ///   - scratch: memory for ``scratchTokens`` tokens, the same in all calls for one read.
    /// - Returns: `.nothing` when the bytes are used up.
    @usableFromInline
    mutating func next(
        _ bytes: UnsafeRawPointer,
        _ count: Int,
        _ offset: inout Int,
        _ scratch: UnsafeMutablePointer<Token>
    ) -> Event {
        if self.carry.count > 0 {
            let event = self.resume(bytes, count, &offset)
            if event != .nothing || self.carry.count > 0 { return event }
        }
        while true {
            if self.stage == .closing { return self.end(.closed) }
            offset = self.skipSpace(bytes, offset, count)
            if self.stage == .failed { return .failed }
            guard offset < count else {
                if self.carry.capacity | self.store.room != 0 { self.giveBack() }
                return .nothing
            }
            self.begin(scratch)
            let room = count - offset
            switch self.advance(bytes + offset, min(room, Int(self.limits.stanzaBytes))) {
            case .whole:
                let event = self.completed(bytes + offset)
                offset += self.at
                if event != .nothing { return event }
                self.dropElement()
            case .failed: return .failed
            case .goOn, .more:
                if room > Int(self.limits.stanzaBytes) { return self.tooLarge() }
                self.keep(bytes + offset, room)
                offset = count
                return .nothing
            }
        }
    }

    /// Continues an element that a read has cut.
    ///
    /// It takes the input in growing pieces: the end of the element is not known yet, and bytes after the end would be
    /// copied in vain.
    private mutating func resume(_ bytes: UnsafeRawPointer, _ count: Int, _ offset: inout Int) -> Event {
        var piece = 256
        while offset < count {
            let before = self.carry.count
            // One more than the limit shows that it is passed.
            let added = min(count - offset, piece, Int(self.limits.stanzaBytes) + 1 - before)
            let base = self.carryOn(bytes + offset, added)
            switch self.advance(base, min(before + added, Int(self.limits.stanzaBytes))) {
            case .whole:
                offset += self.at - before
                let event = self.completed(base)
                if event == .nothing { self.dropElement() }
                return event
            case .failed: return .failed
            case .goOn, .more:
                if before + added > Int(self.limits.stanzaBytes) { return self.tooLarge() }
                offset += added
                piece *= 2
            }
        }
        return .nothing
    }

    /// Runs until the bytes up to `end` are used up or the element is whole.
    private mutating func advance(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        while true {
            let outcome =
                switch self.phase {
                case .content: self.content(base, end)
                case .markup: self.markup(base, end)
                case .inTag: self.inTag(base, end)
                case .value: self.valueThenTag(base, end)
                case .equals: self.equals(base, end)
                case .quote: self.openingQuote(base, end)
                case .section: self.section(base, end)
                case .endSpace: self.endSpace(base, end)
                case .prolog: self.prolog(base, end)
                }
            if outcome != .goOn { return outcome }
        }
    }

    /// Bytes that are allocated.
    var ownedBytes: Int {
        self.carry.capacity + self.store.room * MemoryLayout<Token>.stride + (self.table.map(StreamTable.size) ?? 0)
    }
}
