extension Tokenizer {
    /// Tokens that are lent for a read: 1,024 bytes lie on the stack, more would be allocated.
    @usableFromInline
    static var scratchTokens: Int { 64 }

    /// Whitespace between elements is taken where it lies, and never kept (RFC 6120 §4.6.1).
    mutating func skipSpace(_ bytes: UnsafeRawPointer, _ start: Int, _ count: Int) -> Int {
        var at = start
        while at < count, Characters.isSpace(Characters.byte(bytes, at)) { at &+= 1 }
        // A declaration is allowed only at the very start. After a restart, the old stream's line end may come before
        // it.
        if at > start, self.stage == .start && !self.isRestarted || self.stage == .afterMark { self.stage = .header }
        guard at < count else { return at }
        let byte = Characters.byte(bytes, at)
        if self.stage == .closed {
            _ = self.fail(.outsideStream)
        } else if byte >= 0xFE, self.stage == .start {
            // The byte order mark of UTF-16.
            _ = self.fail(.encoding)
        } else if byte != UInt8(ascii: "<"), self.stage != .start || byte != 0xEF {
            _ = self.fail(self.stage == .open || self.stage == .messages ? .textInStream : .outsideStream)
        }
        return at
    }

    mutating func begin(_ scratch: UnsafeMutablePointer<Token>) {
        if self.store.room > 0 {
            self.tokens = self.store.tokens(scratch)
            self.room = self.store.room
        } else {
            self.tokens = scratch
            self.room = Self.scratchTokens
        }
        self.at = 0
        self.phase = self.stage == .start || self.stage == .afterMark ? .prolog : .markup
        self.defaultNamespace = self.streamDefault
    }

    /// The event of the element that is now complete.
    mutating func completed(_ base: UnsafeRawPointer) -> Event {
        self.base = base
        switch self.stage {
        case .open: return self.count == 0 ? self.end(.closed) : .element
        case .header: return self.count == 0 ? .nothing : self.opened()
        case .messages: return self.count == 0 ? .nothing : self.messageEvent()
        default: return .nothing
        }
    }

    mutating func end(_ event: Event) -> Event {
        self.stage = .closed
        return event
    }

    /// The element was looked at; its memory stays for the next one of the same read.
    @usableFromInline
    mutating func dropElement() {
        self.count = 0
        self.depth = 0
        self.open = Token.none
        self.scope = 0
        self.needsDecoding = false
        self.carry.clear()
        // In a flow the next element is cut too, but not every one is as large as the largest.
        if self.carry.capacity > Self.largestKept || self.store.room > Self.mostKept { self.giveBack() }
    }

    /// Bytes, and tokens, that stay between two elements of a flow.
    private static var largestKept: Int { 65_536 }
    private static var mostKept: Int { 4_096 }

    /// At the end of a read without an open element, no memory is held.
    @inline(never)
    mutating func giveBack() {
        self.carry.giveBack(to: self.shared)
        self.store.giveBack(to: self.shared)
    }

    /// Adds to what is carried.
    ///
    /// - Returns: where all of it lies, until the next change.
    @inline(__always)
    mutating func carryOn(_ bytes: UnsafeRawPointer, _ count: Int) -> UnsafeRawPointer {
        if !self.carry.holds(count) { self.growCarry(count) }
        return self.carry.append(bytes, count)
    }

    @inline(never)
    private mutating func growCarry(_ added: Int) {
        let limit = Int(self.limits.stanzaBytes) + 1
        self.carry.grow(toHold: self.carry.count + added, limit: limit, from: self.shared)
    }

    mutating func keep(_ bytes: UnsafeRawPointer, _ count: Int) {
        _ = self.carryOn(bytes, count)
        if self.store.room == 0 { self.moveTokens(room: max(16, self.count + self.count / 2)) }
    }

    /// Room for more tokens, in memory of our own.
    @inline(never)
    mutating func moveTokens(room: Int) {
        self.tokens = self.store.grow(from: self.tokens, count: self.count, room: room, shared: self.shared)
        self.room = self.store.room
    }

    @inline(__always)
    mutating func push(_ token: Token) {
        if self.count == self.room { self.moveTokens(room: self.room * 2) }
        (self.tokens + self.count).initialize(to: token)
        self.count &+= 1
    }

    @inline(never)
    mutating func fail(_ error: XMPPReadError) -> Outcome {
        self.error = error
        self.stage = .failed
        return .failed
    }

    mutating func tooLarge() -> Event {
        _ = self.fail(.stanzaTooLarge(limit: Int(self.limits.stanzaBytes)))
        return .failed
    }
}
