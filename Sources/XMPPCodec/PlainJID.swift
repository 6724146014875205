/// An address in plain ASCII, which most are, prepared in one pass without an allocation except its string's.
///
/// ``JIDPreparation`` handles all other addresses and all errors.
struct PlainJID {
    let text: String
    let localCount: UInt16
    let bareCount: UInt16

    /// Longer ones are not plain; each part and label has its own limit beyond that.
    private static let largest = 255

    init?(_ text: String) {
        var text = text
        var localCount = 0
        var bareCount = 0
        let prepared = text.withUTF8 { source -> String? in
            guard source.count <= Self.largest else { return nil }
            var isPlain = false
            let prepared = String(unsafeUninitializedCapacity: source.count) { target in
                isPlain = Self.prepare(source, target, &localCount, &bareCount)
                return isPlain ? source.count : 0
            }
            return isPlain ? prepared : nil
        }
        guard let prepared else { return nil }
        self.text = prepared
        self.localCount = UInt16(truncatingIfNeeded: localCount)
        self.bareCount = UInt16(truncatingIfNeeded: bareCount)
    }

    /// - Returns: whether it is a plain address; what was written and counted is of no use if not.
    private static func prepare(
        _ source: UnsafeBufferPointer<UInt8>,
        _ target: UnsafeMutableBufferPointer<UInt8>,
        _ localCount: inout Int,
        _ bareCount: inout Int
    ) -> Bool {
        let end = source.firstIndex(of: UInt8(ascii: "/")) ?? source.count
        var start = 0
        if let at = source[..<end].firstIndex(of: UInt8(ascii: "@")) {
            guard at > 0 else { return false }
            for index in 0..<at {
                let byte = Self.small(source[index])
                guard Characters.isNameByte(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "\\") else {
                    return false
                }
                target[index] = byte
            }
            target[at] = UInt8(ascii: "@")
            localCount = at
            start = at + 1
        }
        guard Self.prepareDomain(source, target, start, end) else { return false }
        bareCount = end
        if end == source.count { return true }
        for index in end..<source.count {
            guard source[index] &- 0x20 < 0x5F else { return false }
            target[index] = source[index]
        }
        return end + 1 < source.count
    }

    /// Labels of letters, digits and hyphens inside; none that is empty, so no dot at the end either.
    private static func prepareDomain(
        _ source: UnsafeBufferPointer<UInt8>,
        _ target: UnsafeMutableBufferPointer<UInt8>,
        _ start: Int,
        _ end: Int
    ) -> Bool {
        var label = 0
        var last = UInt8(ascii: "-")
        for index in start..<end {
            let byte = Self.small(source[index])
            if byte == UInt8(ascii: ".") {
                guard label > 0, last != UInt8(ascii: "-") else { return false }
                label = 0
            } else {
                guard byte &- 0x61 < 26 || byte &- 0x30 < 10 || byte == UInt8(ascii: "-") && label > 0, label < 63
                else {
                    return false
                }
                label += 1
                // Possible A-labels must be decoded.
                if label == 4, byte == UInt8(ascii: "-"), last == byte { return false }
            }
            last = byte
            target[index] = byte
        }
        return label > 0 && last != UInt8(ascii: "-")
    }

    @inline(__always)
    private static func small(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
}
