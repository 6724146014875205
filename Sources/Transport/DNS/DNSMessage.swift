package struct DNSQuestion: Hashable, Sendable {
    package enum Kind: UInt16, Hashable, Sendable {
        case a = 1
        case aaaa = 28
        case srv = 33
    }

    /// The name in lower-case ASCII, without the root's dot.
    package let name: String
    package let kind: Kind

    package init(_ name: String, _ kind: Kind) {
        self.name = name
        self.kind = kind
    }
}

/// The location of a service (RFC 2782).
package struct ServiceRecord: Hashable, Sendable {
    package let priority: UInt16
    package let weight: UInt16
    package let port: UInt16
    /// Empty for the root: the service is not offered.
    package let target: String

    package init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
        self.priority = priority
        self.weight = weight
        self.port = port
        self.target = target
    }
}

/// One record of an answer, of a supported type.
package struct DNSRecord: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        /// 4 or 16 bytes.
        case address([UInt8])
        case alias(String)
        case service(ServiceRecord)
    }

    package let name: String
    /// Time to live in seconds.
    package let timeToLive: UInt32
    package let content: Content

    package init(name: String, timeToLive: UInt32, content: Content) {
        self.name = name
        self.timeToLive = timeToLive
        self.content = content
    }
}

/// The reason why bytes are not a DNS answer.
package enum DNSMessageError: String, Error, Hashable, Sendable, CustomStringConvertible {
    case truncated = "the DNS message ends inside a field"
    /// A name that is too long, has an empty label or an unprintable character, or points to itself.
    case name = "the DNS message has a malformed name"
    case notAnAnswer = "the DNS message is no response to a standard query"
    case questions = "the DNS message does not have exactly one question"
    /// A record's data is longer or shorter than its type requires.
    case data = "the DNS message has a record of the wrong length"

    package var description: String { self.rawValue }
}

/// DNS messages and their encoding.
///
/// Spec: RFC 1035 §4, RFC 2782, RFC 2308.
package struct DNSMessage: Hashable, Sendable {
    package let id: UInt16
    /// The message was truncated; a query over TCP returns it whole.
    package let isTruncated: Bool
    /// Response code: 0 for an answer, 3 for a name that does not exist; others are failures.
    package let code: UInt8
    package let name: String
    package let kind: UInt16
    package let records: [DNSRecord]
    /// Seconds to cache a negative answer; `nil` if the server gives no time (RFC 2308 §5).
    package let negativeTimeToLive: UInt32?

    /// Records read at most; a service with more is an error.
    static let recordLimit = 256

    /// Encodes a question for a recursive resolver.
    package static func query(_ question: DNSQuestion, id: UInt16) -> [UInt8] {
        // Flags: recursion desired. Counts: one question.
        var bytes: [UInt8] = [UInt8(id >> 8), UInt8(truncatingIfNeeded: id), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        for label in question.name.split(separator: ".") {
            bytes.append(UInt8(truncatingIfNeeded: label.utf8.count))
            bytes += label.utf8
        }
        // The root label; the type; the class Internet.
        let kind = question.kind.rawValue
        return bytes + [0, UInt8(kind >> 8), UInt8(truncatingIfNeeded: kind), 0, 1]
    }

    package init(_ bytes: [UInt8]) throws(DNSMessageError) {
        var reader = DNSReader(bytes)
        self.id = try reader.short()
        let flags = try reader.short()
        // A response with opcode 0.
        guard flags & 0xF800 == 0x8000 else { throw .notAnAnswer }
        self.isTruncated = flags & 0x0200 != 0
        self.code = UInt8(flags & 0x000F)
        guard try reader.short() == 1 else { throw .questions }
        let answers = Int(try reader.short())
        let authorities = Int(try reader.short())
        _ = try reader.short()
        self.name = try reader.name()
        self.kind = try reader.short()
        guard try reader.short() == 1 else { throw .notAnAnswer }
        var records: [DNSRecord] = []
        var negative: UInt32?
        // A truncated message is queried again over TCP.
        if !self.isTruncated {
            for _ in 0..<min(answers, Self.recordLimit) {
                if let record = try reader.record() { records.append(record) }
            }
            if answers <= Self.recordLimit {
                for _ in 0..<min(authorities, Self.recordLimit) {
                    if let seconds = try reader.negativeTimeToLive() { negative = min(negative ?? seconds, seconds) }
                }
            }
        }
        self.records = records
        self.negativeTimeToLive = negative
    }

    /// The records that answer the question, after its aliases are followed.
    package func answers(to question: DNSQuestion) -> [DNSRecord] {
        var name = question.name
        // A longer chain of aliases, or a circular one, ends here (RFC 1034 §3.6.2).
        for _ in 0..<8 {
            let found = self.records.filter { $0.name == name && $0.content.isOf(question.kind) }
            if !found.isEmpty { return found }
            let alias = self.records.first { record in
                if case .alias = record.content { record.name == name } else { false }
            }
            guard case .alias(let next)? = alias?.content else { return [] }
            name = next
        }
        return []
    }
}

extension DNSRecord.Content {
    fileprivate func isOf(_ kind: DNSQuestion.Kind) -> Bool {
        switch (self, kind) {
        case (.address(let bytes), .a): bytes.count == 4
        case (.address(let bytes), .aaaa): bytes.count == 16
        case (.service, .srv): true
        default: false
        }
    }
}

/// Reads the fields of a message, with bounds checks.
private struct DNSReader {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func short() throws(DNSMessageError) -> UInt16 {
        guard self.offset + 2 <= self.bytes.count else { throw .truncated }
        defer { self.offset += 2 }
        return UInt16(self.bytes[self.offset]) << 8 | UInt16(self.bytes[self.offset + 1])
    }

    mutating func long() throws(DNSMessageError) -> UInt32 { UInt32(try self.short()) << 16 | UInt32(try self.short()) }

    /// Reads labels, then the root or a pointer to the rest of the name (RFC 1035 §4.1.4).
    ///
    /// Each pointer must lead to an earlier position than the last one, so the loop ends; names have at most 255 bytes.
    mutating func name() throws(DNSMessageError) -> String {
        var name: [UInt8] = []
        var place = self.offset
        var barrier = place
        var hasJumped = false
        while true {
            guard place < self.bytes.count else { throw .truncated }
            let length = Int(self.bytes[place])
            switch length {
            case 0:
                if !hasJumped { self.offset = place + 1 }
                return String(decoding: name, as: UTF8.self)
            case 1...63:
                guard place + 1 + length <= self.bytes.count else { throw .truncated }
                let label = self.bytes[(place + 1)..<(place + 1 + length)]
                guard name.count + length + 1 <= 254, label.allSatisfy(Self.isPrintable) else { throw .name }
                if !name.isEmpty { name.append(UInt8(ascii: ".")) }
                name += label.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
                place += 1 + length
            case 0xC0...:
                guard place + 2 <= self.bytes.count else { throw .truncated }
                let target = (length & 0x3F) << 8 | Int(self.bytes[place + 1])
                guard target < barrier else { throw .name }
                if !hasJumped { self.offset = place + 2 }
                hasJumped = true
                barrier = target
                place = target
            default: throw .name
            }
        }
    }

    /// A dot inside a label would look like the label's end.
    private static func isPrintable(_ byte: UInt8) -> Bool { (0x21...0x7E).contains(byte) && byte != UInt8(ascii: ".") }

    private struct Head {
        let name: String
        let kind: UInt16
        let isInternet: Bool
        let timeToLive: UInt32
        let end: Int
    }

    private mutating func head() throws(DNSMessageError) -> Head {
        let name = try self.name()
        let kind = try self.short()
        let isInternet = try self.short() == 1
        let seconds = try self.long()
        let length = Int(try self.short())
        guard self.offset + length <= self.bytes.count else { throw .truncated }
        // With the highest bit set the value is 0 (RFC 2181 §8).
        return Head(
            name: name,
            kind: kind,
            isInternet: isInternet,
            timeToLive: seconds >> 31 == 0 ? seconds : 0,
            end: self.offset + length
        )
    }

    /// Returns `nil` for a record of an unsupported type.
    mutating func record() throws(DNSMessageError) -> DNSRecord? {
        let head = try self.head()
        let start = self.offset
        guard head.isInternet, let content = try self.content(head.kind, length: head.end - start) else {
            self.offset = head.end
            return nil
        }
        guard self.offset == head.end else { throw .data }
        return DNSRecord(name: head.name, timeToLive: head.timeToLive, content: content)
    }

    private mutating func content(_ kind: UInt16, length: Int) throws(DNSMessageError) -> DNSRecord.Content? {
        switch kind {
        case DNSQuestion.Kind.a.rawValue, DNSQuestion.Kind.aaaa.rawValue:
            guard length == (kind == 1 ? 4 : 16) else { throw .data }
            defer { self.offset += length }
            return .address(Array(self.bytes[self.offset..<(self.offset + length)]))
        case 5: return .alias(try self.name())
        case DNSQuestion.Kind.srv.rawValue:
            guard length >= 7 else { throw .data }
            let priority = try self.short()
            let weight = try self.short()
            let port = try self.short()
            return .service(ServiceRecord(priority: priority, weight: weight, port: port, target: try self.name()))
        default: return nil
        }
    }

    /// The negative time to live of an SOA record: the lower of its own time to live and its last field (RFC 2308 §5).
    mutating func negativeTimeToLive() throws(DNSMessageError) -> UInt32? {
        let head = try self.head()
        guard head.kind == 6, head.isInternet else {
            self.offset = head.end
            return nil
        }
        _ = try self.name()
        _ = try self.name()
        for _ in 0..<4 { _ = try self.long() }
        let minimum = try self.long()
        guard self.offset == head.end else { throw .data }
        return min(head.timeToLive, minimum)
    }
}
