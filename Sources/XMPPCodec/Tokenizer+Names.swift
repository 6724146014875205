extension Tokenizer {
    /// Reads a qualified name, and notes the length of its prefix.
    ///
    /// - Returns: where it ends; 0 if the bytes run out before that, -1 after an error.
    @inline(__always)
    mutating func name(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Int {
        if start &+ 8 <= end {
            let letters = Characters.smallLetters(Characters.word(base, start))
            // The limit is 16 at least.
            if letters > 0, letters < 8, !Characters.continuesName(Characters.byte(base, start &+ letters)) {
                self.prefixCount = 0
                return start &+ letters
            }
        }
        return self.anyName(base, start, end)
    }

    /// The same for every name.
    @inline(never)
    private mutating func anyName(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Int {
        let limit = Int(self.limits.nameBytes)
        var at = start
        var colon = 0
        var isFirst = true
        while at < end {
            if at - start > limit { return self.tooLong(limit) }
            let byte = Characters.byte(base, at)
            if byte >= 0x80 {
                let scalar = Characters.decode(base, at, end)
                if scalar.state == .cut { return 0 }
                guard scalar.state == .whole else { return self.failed(.notUTF8) }
                guard
                    isFirst
                        ? Characters.isNameStart(scalar: scalar.value)
                        : Characters.isNameCharacter(scalar: scalar.value)
                else { return self.failed(Characters.isLegal(scalar.value) ? .name : .illegalCharacter(scalar.value)) }
                at += scalar.count
                isFirst = false
            } else if Characters.isNameStart(byte) || !isFirst && Characters.isNameByte(byte) {
                at &+= 1
                isFirst = false
            } else if byte == UInt8(ascii: ":"), colon == 0, !isFirst {
                colon = at
                at &+= 1
                isFirst = true
            } else {
                // A name must not be empty, nor end with a colon.
                if isFirst || byte == UInt8(ascii: ":") { return self.failed(.name) }
                self.prefixCount = colon == 0 ? 0 : colon - start
                return at
            }
        }
        return at - start > limit ? self.tooLong(limit) : 0
    }

    private mutating func tooLong(_ limit: Int) -> Int { self.failed(.nameTooLong(limit: limit)) }

    private mutating func failed(_ error: XMPPReadError) -> Int {
        _ = self.fail(error)
        return -1
    }

    /// At `</`: most end tags are the name of what is open, and `>`.
    @inline(__always)
    mutating func endTag(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        if self.depth > 0 {
            let token = self.tokens[Int(self.open)]
            let count = token.nameCount
            let name = self.at &+ 2
            if name &+ count < end, Characters.byte(base, name &+ count) == UInt8(ascii: ">"),
                Characters.equal(base + name, base + token.offset, count)
            {
                self.at = name &+ count &+ 1
                return self.close(base)
            }
            return self.anyEndTag(base, end, UnsafeRawBufferPointer(start: base + token.offset, count: count))
        }
        guard self.stage == .open else { return self.fail(.endTag) }
        return self.anyEndTag(base, end, StreamTable.rootName(self.table))
    }

    @inline(never)
    private mutating func anyEndTag(
        _ base: UnsafeRawPointer,
        _ end: Int,
        _ expected: UnsafeRawBufferPointer
    ) -> Outcome {
        let name = self.at + 2
        let there = min(expected.count, end - name)
        if let start = expected.baseAddress, !Characters.equal(base + name, start, there) { return self.fail(.endTag) }
        guard name + expected.count < end else { return .more }
        let byte = Characters.byte(base, name + expected.count)
        guard byte == UInt8(ascii: ">") || Characters.isSpace(byte) else { return self.fail(.endTag) }
        self.at = name + expected.count
        self.phase = .endSpace
        return .goOn
    }

    /// Between the name in an end tag and `>`.
    mutating func endSpace(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        while self.at < end {
            let byte = Characters.byte(base, self.at)
            self.at += 1
            if byte == UInt8(ascii: ">") { return self.depth > 0 ? self.close(base) : .whole }
            guard Characters.isSpace(byte) else { return self.fail(.endTag) }
        }
        return .more
    }

    /// After the end tag, or the empty tag, of the innermost element.
    @inline(__always)
    mutating func close(_ base: UnsafeRawPointer) -> Outcome {
        let index = Int(self.open)
        let parent = self.tokens[index].second
        self.tokens[index].second = UInt32(truncatingIfNeeded: self.count)
        if index &+ 1 < self.count, self.tokens[index &+ 1].isDeclaration { self.leaveScope(index, parent) }
        self.open = parent
        self.depth &-= 1
        if self.depth == 0 { return .whole }
        self.textStart = self.at
        self.phase = .content
        return .goOn
    }
}

extension Characters {
    /// Whether a byte after letters may be part of the name too.
    @inline(__always)
    static func continuesName(_ byte: UInt8) -> Bool {
        byte >= 0x80 || Self.isNameByte(byte) || byte == UInt8(ascii: ":")
    }
}
