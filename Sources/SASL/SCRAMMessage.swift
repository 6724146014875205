import DataEncodings

/// `x=value`, one of the comma-separated parts of a SCRAM message.
struct SCRAMAttribute {
    let name: UInt8
    let value: ArraySlice<UInt8>
}

/// The form that all messages of the mechanism share.
///
/// Spec: RFC 5802 §7.
enum SCRAMMessage {
    /// Bytes of a message that is accepted; the RFC sets no limit, and real ones are below 200.
    static let sizeLimit = 2_048

    /// UTF-8 without U+0000, within the limit.
    static func check(_ message: [UInt8]) throws(SASLError) {
        guard message.count <= self.sizeLimit else {
            throw .malformed("\(message.count) bytes are more than \(self.sizeLimit)")
        }
        guard !message.contains(0) else { throw .malformed("it contains U+0000") }
        guard String(validating: message, as: UTF8.self) != nil else { throw .malformed("it is not UTF-8") }
    }

    static func attributes(_ message: ArraySlice<UInt8>) throws(SASLError) -> [SCRAMAttribute] {
        var attributes: [SCRAMAttribute] = []
        for part in message.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            let value = part.dropFirst(2)
            guard let name = part.first, self.isLetter(name), part.dropFirst().first == UInt8(ascii: "="),
                !value.isEmpty
            else { throw .malformed("\"\(String(decoding: part, as: UTF8.self))\" is no attribute") }
            attributes.append(SCRAMAttribute(name: name, value: value))
        }
        return attributes
    }

    /// The value of the attribute that is required at `index`.
    static func value(
        _ name: Unicode.Scalar,
        at index: Int,
        of attributes: [SCRAMAttribute]
    ) throws(SASLError) -> ArraySlice<UInt8> {
        guard attributes.indices.contains(index), attributes[index].name == UInt8(ascii: name) else {
            throw .malformed("\(name)= is not where it belongs")
        }
        return attributes[index].value
    }

    /// `m=` marks a mandatory extension, and none is defined yet (§5.1).
    static func hasMandatoryExtension(_ attributes: [SCRAMAttribute]) -> Bool {
        attributes.contains { $0.name == UInt8(ascii: "m") }
    }

    /// Printable ASCII without the comma, at least one.
    static func isNonce(_ value: some Collection<UInt8>) -> Bool {
        !value.isEmpty && value.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
    }

    /// A decimal number from 1 on, without leading zeros.
    static func positiveNumber(_ value: ArraySlice<UInt8>) -> Int? {
        guard value.count <= 18, value.first != UInt8(ascii: "0") else { return nil }
        var number = 0
        for digit in value {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return number > 0 ? number : nil
    }

    /// A user name as encoded in a message: `,` and `=` become `=2C` and `=3D` (§5.1).
    static func escape(_ name: [UInt8]) -> [UInt8] {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(name.count)
        for byte in name {
            switch byte {
            case UInt8(ascii: ","): escaped += "=2C".utf8
            case UInt8(ascii: "="): escaped += "=3D".utf8
            default: escaped.append(byte)
            }
        }
        return escaped
    }

    /// The user name; nothing if an `=` in it is no escape (§5.1: then the server must refuse).
    static func unescape(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        var name: [UInt8] = []
        var rest = value
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "=") {
                name.append(byte)
            } else if rest.starts(with: "2C".utf8) {
                name.append(UInt8(ascii: ","))
                rest = rest.dropFirst(2)
            } else if rest.starts(with: "3D".utf8) {
                name.append(UInt8(ascii: "="))
                rest = rest.dropFirst(2)
            } else {
                return nil
            }
        }
        return name
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}

package enum SCRAMNonce {
    /// 24 random bytes, as 32 printable characters.
    package static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64.encode((0..<24).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}
