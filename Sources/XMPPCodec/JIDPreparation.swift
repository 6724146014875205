import DataEncodings

/// Prepares the parts of an address, and appends each to the previous ones.
enum JIDPreparation {
    private static let largestPart = 1_023
    private static let largestLabel = 63

    /// How much is refused.
    enum Strictness {
        /// Refuses characters that the profiles of RFC 7622 exclude.
        case own
        /// Refuses only separators and control characters: servers prepare addresses by their own tables, and other
        /// clients' names are accepted.
        case received
    }

    // MARK: Local part

    /// UsernameCaseMapped without `" & ' / : < > @` (RFC 7622 §3.3, RFC 8265 §3.3).
    static func local(_ text: Substring, _ strictness: Strictness, into bytes: inout [UInt8]) throws(JIDError) {
        let start = bytes.count
        let name = try Self.name(text, .local, strictness)
        for scalar in name {
            switch scalar.value {
            case 0x22, 0x26, 0x27, 0x2F, 0x3A, 0x3C, 0x3E, 0x40: throw .character(.local, scalar.value)
            default: Self.append(scalar, to: &bytes)
            }
        }
        if strictness == .own, BidiRule.concerns(name), !BidiRule.holds(name) { throw .direction(.local) }
        try Self.checkSize(bytes.count - start, .local)
    }

    /// Width, case and composition mapped (RFC 8264 §7), and its characters looked at.
    ///
    /// Characters outside the profile stay unchanged where they are accepted, so they equal only themselves.
    private static func name(
        _ text: Substring,
        _ part: JID.Part,
        _ strictness: Strictness
    ) throws(JIDError) -> [Unicode.Scalar] {
        try Self.checkLength(text, part)
        let wide = text.unicodeScalars.map { $0.value < 0x3000 ? $0 : PRECIS.ofUsualWidth($0) }
        var name: [Unicode.Scalar] = []
        var start = 0
        for (index, scalar) in wide.enumerated() {
            let verdict = PRECIS.verdict(scalar)
            if verdict == .valid || strictness == .received && verdict == .inContext { continue }
            if strictness == .received, scalar.value > 0x9F {
                name += Normalization.composed(PRECIS.small(Array(wide[start..<index]))) + [scalar]
                start = index + 1
            } else if verdict != .inContext || !PRECIS.fits(wide, index) {
                throw .character(part, scalar.value)
            }
        }
        return name + Normalization.composed(PRECIS.small(start == 0 ? wide : Array(wide[start...])))
    }

    /// Nothing is done with what is too long in any case: mapped, a text may have a third of its bytes left.
    private static func checkLength(_ text: Substring, _ part: JID.Part) throws(JIDError) {
        if text.utf8.count > 4 * Self.largestPart { throw .tooLong(part) }
    }

    private static func append(_ scalar: Unicode.Scalar, to bytes: inout [UInt8]) {
        if scalar.value < 0x80 { return bytes.append(UInt8(scalar.value)) }
        for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { bytes.append(byte) }
    }

    private static func checkSize(_ count: Int, _ part: JID.Part) throws(JIDError) {
        if count == 0 { throw .empty(part) }
        if count > Self.largestPart { throw .tooLong(part) }
    }

    // MARK: Domain

    /// A host name or an address; a final dot goes (RFC 7622 §3.2).
    static func domain(_ text: Substring, _ strictness: Strictness, into bytes: inout [UInt8]) throws(JIDError) {
        let start = bytes.count
        if text.utf8.first == UInt8(ascii: "[") {
            let inner = text.utf8.dropFirst().dropLast()
            guard text.utf8.last == UInt8(ascii: "]"), Self.isIPv6(Array(inner)) else { throw .domain }
            bytes += text.utf8.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 }
            return
        }
        var name = try Self.name(text, .domain, strictness)
        if name.count > 1, name.last == "." { name.removeLast() }
        if name.isEmpty { throw .empty(.domain) }
        var labels = name.split(separator: ".", omittingEmptySubsequences: false).map(Array.init)
        for index in labels.indices { try Self.prepareLabel(&labels[index], strictness) }
        for label in labels {
            if bytes.count > start { bytes.append(UInt8(ascii: ".")) }
            for scalar in label { Self.append(scalar, to: &bytes) }
        }
        if strictness == .own, labels.contains(where: BidiRule.concerns), !labels.allSatisfy(BidiRule.holds) {
            throw .direction(.domain)
        }
        try Self.checkSize(bytes.count - start, .domain)
    }

    /// Decodes an A-label to its U-label, and checks it; other labels are only checked.
    private static func prepareLabel(_ label: inout [Unicode.Scalar], _ strictness: Strictness) throws(JIDError) {
        for scalar in label {
            switch scalar.value {
            case 0x61...0x7A, 0x30...0x39, 0x2D, 0x80...: break
            default: throw .character(.domain, scalar.value)
            }
        }
        // RFC 7622 §3.2.1: A-labels become U-labels.
        if label.starts(with: Self.prefix) {
            if let decoded = Self.decoded(label) {
                label = decoded
            } else if strictness == .own {
                throw .domain
            }
        }
        // RFC 5890 §2.3.1: no hyphen at the ends.
        guard let first = label.first, first != "-", label.last != "-" else { throw .domain }
        let isASCII = label.allSatisfy(\.isASCII)
        // RFC 1035 §2.3.4, RFC 5890 §2.3.2.1: 63 bytes, those of the A-label where it is not ASCII.
        guard isASCII ? label.count <= Self.largestLabel : Punycode.encode(label) != nil else { throw .domain }
        guard !isASCII, strictness == .own else { return }
        // RFC 5891 §4.2.3.2: no label begins with a mark; §4.2.3.1: hyphens in these places are for A-labels.
        if Self.isMark(first) { throw .character(.domain, first.value) }
        if Self.isReserved(label) { throw .domain }
    }

    private static let prefix: [Unicode.Scalar] = ["x", "n", "-", "-"]

    private static func isReserved(_ label: [Unicode.Scalar]) -> Bool {
        label.count >= 4 && label[2] == "-" && label[3] == "-"
    }

    /// The U-label of an A-label; nothing for a label that no U-label is written as (RFC 5890 §2.3.2.1).
    private static func decoded(_ label: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        let digits = label.dropFirst(Self.prefix.count)
        guard digits.allSatisfy(\.isASCII), let decoded = Punycode.decode(digits.map { UInt8($0.value) }),
            !decoded.allSatisfy(\.isASCII), !Self.isReserved(decoded),
            Punycode.encode(decoded).map({ $0.unicodeScalars.elementsEqual(digits) }) == true,
            // A decoded label must be prepared already.
            let prepared = try? Self.name(String(String.UnicodeScalarView(decoded))[...], .domain, .own),
            prepared == decoded
        else { return nil }
        return decoded
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x300 else { return false }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return true
        default: return false
        }
    }

    /// RFC 4291 §2.2: eight groups, one run of zeros left out at most, the last two perhaps as IPv4.
    private static func isIPv6(_ bytes: [UInt8]) -> Bool {
        let colon = UInt8(ascii: ":")
        var groups = 0
        var hasGap = false
        var at = 0
        if bytes.starts(with: [colon, colon]) {
            hasGap = true
            at = 2
        }
        while at < bytes.count {
            let group = bytes[at...].prefix { $0 != colon }
            if group.contains(UInt8(ascii: ".")) {
                return group.endIndex == bytes.count && Self.isIPv4(group) && (hasGap ? groups < 6 : groups == 6)
            }
            guard (1...4).contains(group.count),
                group.allSatisfy({ References.digit($0, isHexadecimal: true) != nil })
            else { return false }
            groups += 1
            at = group.endIndex
            if at == bytes.count { break }
            at += 1
            if at < bytes.count, bytes[at] == colon {
                if hasGap { return false }
                hasGap = true
                at += 1
            } else if at == bytes.count {
                return false
            }
        }
        return hasGap ? groups < 8 : groups == 8
    }

    private static func isIPv4(_ bytes: ArraySlice<UInt8>) -> Bool {
        let numbers = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return numbers.count == 4
            && numbers.allSatisfy { digits in
                (1...3).contains(digits.count) && digits.allSatisfy { $0 &- 0x30 < 10 }
                    && digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } < 256
            }
    }

    // MARK: Resource

    /// OpaqueString (RFC 7622 §3.4, RFC 8265 §4.2): case stays, spaces of other widths become spaces.
    static func resource(_ text: Substring, _ strictness: Strictness, into bytes: inout [UInt8]) throws(JIDError) {
        try Self.checkLength(text, .resource)
        let start = bytes.count
        var scalars = Array(text.unicodeScalars)
        for (index, scalar) in scalars.enumerated() where scalar.value < 0x20 || scalar.value > 0x7E {
            if scalar.properties.generalCategory == .spaceSeparator {
                scalars[index] = " "
                continue
            }
            let isFine =
                switch PRECIS.verdict(scalar) {
                case .valid, .free: true
                case .inContext: strictness == .received || PRECIS.fits(scalars, index)
                case .disallowed: false
                }
            guard isFine || strictness == .received && scalar.value > 0x9F else {
                throw .character(.resource, scalar.value)
            }
        }
        for scalar in Normalization.composed(scalars) { Self.append(scalar, to: &bytes) }
        try Self.checkSize(bytes.count - start, .resource)
    }
}
