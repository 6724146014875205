/// Decodes references, line ends and the white space of values.
///
/// The result is never longer than the input. The bytes were checked before.
///
/// Spec: XML §2.11 (line ends), §3.3.3 (values), §4.6 (the five entities).
enum References {
    static let predefined: [[UInt8]] = ["lt;", "gt;", "amp;", "quot;", "apos;"].map { Array($0.utf8) }

    enum Form {
        case text, section, value

        init(_ token: Token) { self = token.kind != .text ? .value : token.isSection ? .section : .text }
    }

    static func digit(_ byte: UInt8, isHexadecimal: Bool) -> UInt32? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f") where isHexadecimal: UInt32(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F") where isHexadecimal: UInt32(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }

    /// Writes what `source` means to `target`, which holds as many bytes.
    ///
    /// - Returns: the bytes written.
    static func decode(
        _ source: UnsafeRawBufferPointer,
        _ form: Form,
        to target: UnsafeMutableRawBufferPointer
    ) -> Int {
        var from = 0
        var to = 0
        while from < source.count {
            let byte = source[from]
            switch byte {
            case UInt8(ascii: "&") where form != .section:
                let (value, count) = self.reference(source, from)
                to += self.write(value, target, to)
                from += count
                continue
            case 0x0D:
                target[to] = form == .value ? 0x20 : 0x0A
                // Carriage return and line feed are one line end.
                if from + 1 < source.count, source[from + 1] == 0x0A { from += 1 }
            case 0x09, 0x0A: target[to] = form == .value ? 0x20 : byte
            default: target[to] = byte
            }
            from += 1
            to += 1
        }
        return to
    }

    private static func reference(_ source: UnsafeRawBufferPointer, _ start: Int) -> (value: UInt32, count: Int) {
        guard start + 2 < source.count else { return (UInt32(UInt8(ascii: "&")), 1) }
        guard source[start + 1] == UInt8(ascii: "#") else {
            switch (source[start + 1], source[start + 2]) {
            case (UInt8(ascii: "l"), _): return (UInt32(UInt8(ascii: "<")), 4)
            case (UInt8(ascii: "g"), _): return (UInt32(UInt8(ascii: ">")), 4)
            case (UInt8(ascii: "q"), _): return (UInt32(UInt8(ascii: "\"")), 6)
            case (_, UInt8(ascii: "m")): return (UInt32(UInt8(ascii: "&")), 5)
            default: return (UInt32(UInt8(ascii: "'")), 6)
            }
        }
        let isHexadecimal = source[start + 2] == UInt8(ascii: "x")
        var at = start + (isHexadecimal ? 3 : 2)
        var value: UInt32 = 0
        while at < source.count, let digit = self.digit(source[at], isHexadecimal: isHexadecimal) {
            value = min(value * (isHexadecimal ? 16 : 10) + digit, 0x11_0000)
            at += 1
        }
        return (value, at + 1 - start)
    }

    private static func write(_ value: UInt32, _ target: UnsafeMutableRawBufferPointer, _ at: Int) -> Int {
        guard let scalar = Unicode.Scalar(value) else { return 0 }
        var count = 0
        for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
            target[at + count] = byte
            count += 1
        }
        return count
    }

    static func string(_ source: UnsafeRawBufferPointer, _ token: Token) -> String {
        FoundText(source, token).give { String(decoding: $0, as: UTF8.self) }
    }
}

/// A text or value as written in the document, and its decoding if needed.
@usableFromInline
struct FoundText {
    @usableFromInline
    let bytes: UnsafeRawBufferPointer
    @usableFromInline
    let isPlain: Bool
    private let form: References.Form

    static var none: FoundText {
        FoundText(bytes: UnsafeRawBufferPointer(start: nil, count: 0), isPlain: true, form: .text)
    }

    private init(bytes: UnsafeRawBufferPointer, isPlain: Bool, form: References.Form) {
        self.bytes = bytes
        self.isPlain = isPlain
        self.form = form
    }

    init(_ bytes: UnsafeRawBufferPointer, _ token: Token) {
        self.init(bytes: bytes, isPlain: !token.needsDecoding, form: References.Form(token))
    }

    @usableFromInline
    func decode(to target: UnsafeMutableRawBufferPointer) -> Int {
        References.decode(self.bytes, self.form, to: target)
    }

    @inlinable
    func give<R>(to body: (UnsafeRawBufferPointer) -> R) -> R {
        if self.isPlain { return body(self.bytes) }
        // A constant size is allocated on the stack, any other on the heap.
        if self.bytes.count <= 1_024 {
            return withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 1) { target in
                body(UnsafeRawBufferPointer(rebasing: target[..<self.decode(to: target)]))
            }
        }
        return withUnsafeTemporaryAllocation(byteCount: self.bytes.count, alignment: 1) { target in
            body(UnsafeRawBufferPointer(rebasing: target[..<self.decode(to: target)]))
        }
    }
}
