extension Tokenizer {
    /// At `<`.
    mutating func markup(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        self.phase = .markup
        guard self.at &+ 1 < end else { return .more }
        switch Characters.byte(base, self.at &+ 1) {
        case UInt8(ascii: "/"): return self.endTag(base, end)
        case UInt8(ascii: "!"), UInt8(ascii: "?"): return self.otherMarkup(base, end)
        default: return self.startTag(base, end)
        }
    }

    @inline(__always)
    private mutating func startTag(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let start = self.at &+ 1
        let nameEnd = self.name(base, start, end)
        guard nameEnd > 0 else { return nameEnd == 0 ? .more : .failed }
        guard self.depth < Int(self.limits.depth) else { return self.fail(.tooDeep(limit: Int(self.limits.depth))) }
        let size = UInt32(truncatingIfNeeded: nameEnd &- start | self.prefixCount &<< 16)
        let index = UInt32(truncatingIfNeeded: self.count)
        self.push(Token(.element, at: start, size: size, second: self.open))
        self.open = index
        self.depth &+= 1
        self.tagDeclarations = 0
        self.tagPrefixes = 0
        self.at = nameEnd
        self.phase = .inTag
        return self.inTag(base, end)
    }

    /// After the name of an element, or after an attribute.
    mutating func inTag(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        while true {
            var at = self.at
            while at < end, Characters.isSpace(Characters.byte(base, at)) { at &+= 1 }
            self.at = at
            guard at < end else { return .more }
            let byte = Characters.byte(base, at)
            if byte == UInt8(ascii: ">") {
                self.at = at &+ 1
                return self.tagEnded(base, isEmpty: false)
            }
            if byte == UInt8(ascii: "/") {
                guard at &+ 1 < end else { return .more }
                guard Characters.byte(base, at &+ 1) == UInt8(ascii: ">") else { return self.fail(.tag) }
                self.at = at &+ 2
                return self.tagEnded(base, isEmpty: true)
            }
            guard Characters.isSpace(Characters.byte(base, at &- 1)) else { return self.fail(.tag) }
            let outcome = self.attribute(base, end)
            guard outcome == .goOn else { return outcome }
        }
    }

    /// At the first byte of an attribute's name.
    @inline(__always)
    private mutating func attribute(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let start = self.at
        let nameEnd = self.name(base, start, end)
        guard nameEnd > 0 else { return nameEnd == 0 ? .more : .failed }
        let first = Int(self.open) &+ 1
        guard self.count &- first < Int(self.limits.attributes) else {
            return self.fail(.tooManyAttributes(limit: Int(self.limits.attributes)))
        }
        let size = UInt32(truncatingIfNeeded: nameEnd &- start | self.prefixCount &<< 16)
        var other = first
        while other < self.count {
            let token = self.tokens[other]
            if token.size == size, Characters.equal(base + token.offset, base + start, nameEnd &- start) {
                return self.fail(.duplicateAttribute)
            }
            other &+= 1
        }
        self.push(Token(.attribute, at: start, size: size))
        self.at = nameEnd
        if nameEnd &+ 1 < end, Characters.byte(base, nameEnd) == UInt8(ascii: "=") {
            let quote = Characters.byte(base, nameEnd &+ 1)
            if quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") {
                self.beginValue(quote, at: nameEnd &+ 2)
                return self.value(base, end)
            }
        }
        self.phase = .equals
        return self.equals(base, end)
    }

    /// Between the name of an attribute and `=`.
    mutating func equals(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        while self.at < end {
            let byte = Characters.byte(base, self.at)
            self.at += 1
            if byte == UInt8(ascii: "=") {
                self.phase = .quote
                return self.openingQuote(base, end)
            }
            guard Characters.isSpace(byte) else { return self.fail(.tag) }
        }
        return .more
    }

    /// Between `=` and the value.
    mutating func openingQuote(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        while self.at < end {
            let byte = Characters.byte(base, self.at)
            self.at += 1
            if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
                self.beginValue(byte, at: self.at)
                return self.value(base, end)
            }
            guard Characters.isSpace(byte) else { return self.fail(.tag) }
        }
        return .more
    }

    @inline(__always)
    private mutating func beginValue(_ quote: UInt8, at start: Int) {
        self.quote = quote
        self.tokens[self.count &- 1].first = UInt32(truncatingIfNeeded: start)
        self.at = start
        self.needsDecoding = false
        self.phase = .value
    }

    mutating func valueThenTag(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let outcome = self.value(base, end)
        return outcome == .goOn ? self.inTag(base, end) : outcome
    }

    /// Inside quotes, where white space is legal and means a space (XML §3.3.3).
    @inline(__always)
    private mutating func value(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        var at = self.at
        let quote = self.quote
        while true {
            at = Characters.firstStop(base, at, end, quote, UInt8(ascii: "<"), UInt8(ascii: "&"))
            if at < end, Characters.byte(base, at) == quote { return self.valueEnded(base, at) }
            at = self.passStop(base, at, end, isValue: true)
            if at < 0 { return at == Self.outOfBytes ? .more : .failed }
        }
    }

    @inline(__always)
    private mutating func valueEnded(_ base: UnsafeRawPointer, _ at: Int) -> Outcome {
        let index = self.count &- 1
        var token = self.tokens[index]
        token.second = UInt32(truncatingIfNeeded: at) &- token.first
        if self.needsDecoding { token.head |= Token.needsDecoding }
        self.tokens[index] = token
        self.at = at &+ 1
        self.phase = .inTag
        // Neither `xmlns` nor a prefix: the usual attribute.
        if token.size > 0xFFFF || token.size == 5 && Characters.byte(base, token.offset) == UInt8(ascii: "x") {
            return self.qualifiedValueEnded(base, token, index)
        }
        return .goOn
    }

    /// After `>`.
    @inline(__always)
    private mutating func tagEnded(_ base: UnsafeRawPointer, isEmpty: Bool) -> Outcome {
        let prefixCount = self.tokens[Int(self.open)].prefixCount
        if prefixCount == 0, self.tagPrefixes == 0 {
            self.tokens[Int(self.open)].first = self.defaultNamespace
        } else if self.resolvePrefixes(base) == .failed {
            return .failed
        }
        if self.stage == .header {
            self.isEmptyTag = isEmpty
            return .whole
        }
        if isEmpty { return self.close(base) }
        self.textStart = self.at
        self.phase = .content
        return .goOn
    }
}
