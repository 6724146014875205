extension Tokenizer {
    /// Results of ``passStop(_:_:_:isValue:)`` when it cannot continue.
    static var outOfBytes: Int { -1 }
    private static var refused: Int { -2 }

    /// Between the tags of an element.
    mutating func content(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        var at = self.at
        while true {
            at = Characters.firstStop(base, at, end, UInt8(ascii: "<"), UInt8(ascii: "&"), UInt8(ascii: "]"))
            if at < end, Characters.byte(base, at) == UInt8(ascii: "<") {
                if at > self.textStart { self.endText(at, flags: 0) }
                self.at = at
                return self.markup(base, end)
            }
            at = self.passStop(base, at, end, isValue: false)
            if at < 0 { return at == Self.outOfBytes ? .more : .failed }
        }
    }

    @inline(__always)
    private mutating func endText(_ end: Int, flags: UInt32) {
        var token = Token(.text, at: self.textStart, size: UInt32(truncatingIfNeeded: end &- self.textStart))
        token.head |= flags | (self.needsDecoding ? Token.needsDecoding : 0)
        self.needsDecoding = false
        self.push(token)
    }

    /// Passes the byte at which a search stopped, if it is allowed there.
    ///
    /// - Returns: the position to continue at; negative after an error, or if the bytes run out, which is recorded.
    @inline(never)
    mutating func passStop(_ base: UnsafeRawPointer, _ start: Int, _ end: Int, isValue: Bool) -> Int {
        guard start < end else { return self.wait(start) }
        let byte = Characters.byte(base, start)
        switch byte {
        case 0x80...: return self.passCharacters(base, start, end)
        case UInt8(ascii: "&"):
            let count = self.reference(base, start, end)
            if count > 0 { self.needsDecoding = true }
            return count > 0 ? start + count : count == 0 ? self.wait(start) : Self.refused
        case 0x0D:
            self.needsDecoding = true
            return start + 1
        case 0x09, 0x0A:
            // A space, in a value.
            if isValue { self.needsDecoding = true }
            return start + 1
        case UInt8(ascii: "]"):
            guard start + 1 < end else { return self.wait(start) }
            guard Characters.byte(base, start + 1) == byte else { return start + 1 }
            guard start + 2 < end else { return self.wait(start) }
            return Characters.byte(base, start + 2) == UInt8(ascii: ">")
                ? self.refuse(.endOfSectionInText) : start + 1
        case UInt8(ascii: "<"): return self.refuse(.lessThanInValue)
        default: return self.refuse(.illegalCharacter(UInt32(byte)))
        }
    }

    /// Characters of several bytes, as many as follow each other.
    private mutating func passCharacters(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Int {
        var at = start
        while at < end, Characters.byte(base, at) >= 0x80 {
            let scalar = Characters.decode(base, at, end)
            if scalar.state == .cut { return self.wait(at) }
            guard scalar.state == .whole else { return self.refuse(.notUTF8) }
            guard scalar.value & 0xFFFE != 0xFFFE || scalar.value > 0xFFFF else {
                return self.refuse(.illegalCharacter(scalar.value))
            }
            at += scalar.count
        }
        return at
    }

    private mutating func wait(_ at: Int) -> Int {
        self.at = at
        return Self.outOfBytes
    }

    private mutating func refuse(_ error: XMPPReadError) -> Int {
        _ = self.fail(error)
        return Self.refused
    }

    /// At `&`.
    ///
    /// - Returns: the bytes of the reference; 0 if the bytes run out, -1 after an error.
    private mutating func reference(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Int {
        guard start + 1 < end else { return 0 }
        if Characters.byte(base, start + 1) == UInt8(ascii: "#") { return self.characterReference(base, start, end) }
        for name in References.predefined {
            let there = min(name.count, end - start - 1)
            guard (0..<there).allSatisfy({ Characters.byte(base, start + 1 + $0) == name[$0] }) else { continue }
            return there == name.count ? name.count + 1 : 0
        }
        // The byte that rules out the five entities decides which error it is.
        var at = start + 1
        while at < end, Characters.continuesName(Characters.byte(base, at)) {
            let known = References.predefined.contains {
                $0.starts(with: (start + 1...at).map { Characters.byte(base, $0) })
            }
            if !known { return self.refuse(.entityReference) }
            at += 1
        }
        _ = self.fail(.reference)
        return -1
    }

    private mutating func characterReference(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Int {
        guard start + 2 < end else { return 0 }
        let isHexadecimal = Characters.byte(base, start + 2) == UInt8(ascii: "x")
        let first = start + (isHexadecimal ? 3 : 2)
        var at = first
        var value: UInt32 = 0
        while at < end {
            if at - start > Int(self.limits.nameBytes) {
                _ = self.fail(.nameTooLong(limit: Int(self.limits.nameBytes)))
                return -1
            }
            let byte = Characters.byte(base, at)
            if byte == UInt8(ascii: ";"), at > first {
                if Characters.isLegal(value) { return at + 1 - start }
                _ = self.fail(.illegalReference(value))
                return -1
            }
            guard let digit = References.digit(byte, isHexadecimal: isHexadecimal) else {
                _ = self.fail(.reference)
                return -1
            }
            // Beyond Unicode it stays there.
            value = min(value * (isHexadecimal ? 16 : 10) + digit, 0x11_0000)
            at += 1
        }
        return 0
    }

    /// At `<!` or `<?`.
    @inline(never)
    mutating func otherMarkup(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let start = self.at + 2
        if Characters.byte(base, start - 1) == UInt8(ascii: "?") {
            let outcome = self.declarationBegins(base, self.at, end)
            guard outcome == .goOn else { return outcome }
            return self.isMessages && self.depth == 0
                ? self.declaration(base, self.at, end) : self.fail(.misplacedDeclaration)
        }
        guard start < end else { return .more }
        switch Characters.byte(base, start) {
        case UInt8(ascii: "-"): return self.fail(.comment)
        case UInt8(ascii: "["): return self.beginSection(base, end)
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): return self.fail(.documentType)
        default: return self.fail(.markup)
        }
    }

    private mutating func beginSection(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let mark: StaticString = "<![CDATA["
        let there = min(mark.utf8CodeUnitCount, end - self.at)
        guard Characters.equal(base + self.at, UnsafeRawPointer(mark.utf8Start), there) else {
            return self.fail(.markup)
        }
        guard there == mark.utf8CodeUnitCount else { return .more }
        guard self.depth > 0 else { return self.fail(self.stage == .header ? .outsideStream : .textInStream) }
        self.at += 9
        self.textStart = self.at
        self.needsDecoding = false
        self.phase = .section
        return .goOn
    }

    /// In a CDATA section.
    mutating func section(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let bracket = UInt8(ascii: "]")
        var at = self.at
        while true {
            at = Characters.firstStop(base, at, end, bracket, bracket, bracket)
            if at + 2 < end, Characters.byte(base, at) == bracket, Characters.byte(base, at + 1) == bracket,
                Characters.byte(base, at + 2) == UInt8(ascii: ">")
            {
                if at > self.textStart { self.endText(at, flags: Token.isSection) }
                self.at = at + 3
                self.textStart = self.at
                self.needsDecoding = false
                self.phase = .content
                return .goOn
            }
            at = self.passStop(base, at, end, isValue: false)
            if at < 0 { return at == Self.outOfBytes ? .more : .failed }
        }
    }
}
