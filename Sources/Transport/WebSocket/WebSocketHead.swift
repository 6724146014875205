/// The first line and the fields of an HTTP/1.1 message (RFC 9112 §2 to §5), as far as an upgrade needs them.
package struct WebSocketHead: Hashable, Sendable {
    /// Bytes of a head at most.
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

    /// Without its line end.
    package let line: String
    /// Names in lower case, values without the blanks around them.
    package let fields: [(name: String, value: String)]
    /// Bytes of the whole head, the empty line included.
    package let size: Int

    /// Reads a head that is all there.
    ///
    /// - Parameters:
    ///   - bytes: from the head's first byte on; more may follow it.
    ///   - start: what every first line begins with, to know early what will never be one; may be empty.
    ///   - searched: how many of the bytes a call before has seen, without an end.
    /// - Returns: `nil` while the empty line has not come.
    /// - Throws: what makes it no head, at the first byte that does, before its end has come.
    package static func read(
        _ bytes: [UInt8],
        start: [UInt8],
        searched: Int = 0
    ) throws(Problem) -> WebSocketHead? {
        guard zip(bytes, start).allSatisfy({ $0 == $1 }) else { throw .notHTTP }
        // A field's name or a blank follows a line end; this is text, and no NUL is in it.
        if let first = bytes.first, !Self.isToken(first) { throw .notHTTP }
        guard let end = Self.end(of: bytes, from: searched) else {
            guard bytes.count < Self.maximumSize else { throw .tooLarge }
            return nil
        }
        guard end <= Self.maximumSize else { throw .tooLarge }
        return try WebSocketHead(bytes[..<(end - 4)], size: end)
    }

    /// Where the empty line ends.
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
            // A line end is CR LF; a bare LF would let two readers see different heads.
            guard index > start, bytes[index - 1] == 13 else { throw .notHTTP }
            lines.append(bytes[start..<(index - 1)])
            start = index + 1
        }
        lines.append(bytes[start...])
        // Visible characters, blanks, tabs, and what is above ASCII: no other control character has a place in a head.
        guard lines.allSatisfy({ $0.allSatisfy { $0 >= 32 && $0 != 127 || $0 == 9 } }) else { throw .notHTTP }
        var fields: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            // A line that begins with a blank would continue the one before, which nobody may send any more.
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

    /// All values of a field, joined as one list; `nil` without the field.
    package func value(_ name: String) -> String? {
        let values = self.fields.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The members of a field's list.
    package func list(_ name: String) -> [String] {
        (self.value(name) ?? "").split(separator: ",").map { String($0.trimmingBlanks) }.filter { !$0.isEmpty }
    }

    /// Whether a field's list has the word, in whatever case.
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

    /// RFC 9110 §5.6.2.
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
