/// The first line and the fields of an HTTP/1.1 message (RFC 9112 §2 to §5), as needed for an upgrade.
package struct WebSocketHead: Hashable, Sendable {
    /// The largest head in bytes.
    package static let maximumSize = 16_384

    package enum Problem: Error, Hashable, CustomStringConvertible {
        case notHTTP
        case tooLarge

        package var description: String {
            switch self {
            case .notHTTP: "the bytes are no HTTP/1.1 head"
            case .tooLarge: "the HTTP/1.1 head has more than \(WebSocketHead.maximumSize) bytes"
            }
        }
    }

    /// The first line, without its line end.
    package let line: String
    /// Names in lower case, values without surrounding blanks.
    package let fields: [(name: String, value: String)]
    /// Size of the head in bytes, including the empty line.
    package let size: Int

    /// Parses a complete head.
    ///
    /// - Parameters:
    ///   - bytes: from the head's first byte on; more may follow it.
    ///   - start: the required start of the first line, to detect errors early; may be empty.
    ///   - searched: the number of bytes that an earlier call has searched for the end.
    /// - Returns: `nil` until the empty line has arrived.
    /// - Throws: an error at the first invalid byte, even before the head is complete.
    package static func read(_ bytes: [UInt8], start: [UInt8], searched: Int = 0) throws(Problem) -> WebSocketHead? {
        guard zip(bytes, start).allSatisfy({ $0 == $1 }) else { throw .notHTTP }
        // A head starts with a token character.
        if let first = bytes.first, !Self.isToken(first) { throw .notHTTP }
        guard let end = Self.end(of: bytes, from: searched) else {
            guard bytes.count < Self.maximumSize else { throw .tooLarge }
            return nil
        }
        guard end <= Self.maximumSize else { throw .tooLarge }
        return try WebSocketHead(bytes[..<(end - 4)], size: end)
    }

    /// The index after the empty line.
    private static func end(of bytes: [UInt8], from searched: Int) -> Int? {
        var index = max(3, searched)
        while index < bytes.count {
            if bytes[index] == 10, bytes[index - 1] == 13, bytes[index - 2] == 10, bytes[index - 3] == 13 {
                return index + 1
            }
            index += 1
        }
        return nil
    }

    private init(_ bytes: ArraySlice<UInt8>, size: Int) throws(Problem) {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        for index in bytes.indices where bytes[index] == 10 {
            // A line ends with CR LF; with a bare LF two parsers could see different heads.
            guard index > start, bytes[index - 1] == 13 else { throw .notHTTP }
            lines.append(bytes[start..<(index - 1)])
            start = index + 1
        }
        lines.append(bytes[start...])
        // Visible characters, blanks, tabs and non-ASCII bytes are allowed; other control characters are not.
        guard lines.allSatisfy({ $0.allSatisfy { $0 >= 32 && $0 != 127 || $0 == 9 } }) else { throw .notHTTP }
        var fields: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            // A line that starts with a blank is a continuation, which is obsolete and must not be sent.
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(Self.isToken)
            else { throw .notHTTP }
            let value = line[(colon + 1)...].drop { $0 == 32 || $0 == 9 }
            let length = value.count - value.reversed().prefix { $0 == 32 || $0 == 9 }.count
            fields.append(
                (
                    String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                    String(decoding: value.prefix(length), as: UTF8.self)
                )
            )
        }
        self.line = String(decoding: lines[0], as: UTF8.self)
        self.fields = fields
        self.size = size
    }

    /// All values of a field, joined as one list; `nil` if there is no such field.
    package func value(_ name: String) -> String? {
        let values = self.fields.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The members of a field's list.
    package func list(_ name: String) -> [String] {
        (self.value(name) ?? "").split(separator: ",").map { String($0.trimmingBlanks) }.filter { !$0.isEmpty }
    }

    /// Whether a field's list contains the word, in any case.
    package func list(_ name: String, has word: String) -> Bool {
        self.list(name).contains { $0.lowercased() == word }
    }

    package static func == (one: WebSocketHead, other: WebSocketHead) -> Bool {
        one.line == other.line && one.size == other.size && one.fields.count == other.fields.count
            && zip(one.fields, other.fields).allSatisfy { $0 == $1 }
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.line)
        hasher.combine(self.size)
    }

    /// Whether a byte is a token character (RFC 9110 §5.6.2).
    package static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension Substring {
    fileprivate var trimmingBlanks: Substring {
        let front = self.drop { $0 == " " || $0 == "\t" }
        return front.dropLast(front.reversed().prefix { $0 == " " || $0 == "\t" }.count)
    }
}
