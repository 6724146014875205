/// Why a text is no address.
public enum JIDError: Error, Hashable, Sendable {
    /// A part with nothing in it.
    case empty(JID.Part)
    /// A part of more than 1,023 bytes (RFC 7622 §3.1).
    case tooLong(JID.Part)
    /// A character that this part does not have, or not there.
    case character(JID.Part, UInt32)
    /// Right-to-left letters and others that make the displayed address ambiguous (RFC 5893 §2).
    case direction(JID.Part)
    /// A domain that is neither a name nor an address (RFC 7622 §3.2).
    case domain
}

extension JIDError: CustomStringConvertible {
    /// The fault and its place.
    public var description: String {
        switch self {
        case .empty(let part): "the \(part.rawValue) of the JID is empty"
        case .tooLong(let part): "the \(part.rawValue) of the JID has more than 1023 bytes"
        case .character(let part, let scalar):
            "U+\(codePoint(scalar)) in the \(part.rawValue) of the JID is not allowed there"
        case .direction(let part):
            "the \(part.rawValue) of the JID mixes directions of writing in a way that RFC 5893 does not allow"
        case .domain: "the domain of the JID is neither a host name nor an IP address"
        }
    }
}

/// An address `local@domain/resource`, prepared so that equal addresses are the same bytes.
///
/// Wide letters are mapped to normal width, the account and the server to lower case, and decomposed characters are
/// composed (NFC). `xn--` labels of the server are decoded. Right-to-left labels must satisfy the bidi rule.
///
/// A server has prepared received addresses. ``init(received:)`` also accepts some that this type would refuse
/// otherwise.
///
/// One string and two offsets.
///
/// Spec: RFC 7622; RFC 8265 (UsernameCaseMapped, OpaqueString); RFC 5890 (host names).
public struct JID: Hashable, Sendable {
    /// The parts of an address.
    public enum Part: String, Hashable, Sendable {
        /// The part in front of `@`: the account.
        case local
        /// The server.
        case domain
        /// The part after `/`: the connection.
        case resource
    }

    /// The whole address, prepared.
    public let description: String
    /// Bytes in front of `@`; 0 for none.
    private let localCount: UInt16
    /// Bytes up to `/` or the end.
    private let bareCount: UInt16

    /// Takes an address apart and prepares it.
    ///
    /// - Throws: for what is no address.
    public init(_ text: String) throws(JIDError) { try self.init(text, .own) }

    /// Parses a received address, such as a room's occupant.
    ///
    /// Composition and case are mapped as in ``init(_:)``, so that both forms of an address are equal. Only characters
    /// that no address can contain are refused: control characters and the separators of its parts.
    public init(received text: String) throws(JIDError) { try self.init(text, .received) }

    private init(_ text: String, _ strictness: JIDPreparation.Strictness) throws(JIDError) {
        if let plain = PlainJID(text) {
            self.init(prepared: plain.text, localCount: plain.localCount, bareCount: plain.bareCount)
            return
        }
        // RFC 7622 §3.1: the first `/` ends the rest, then the first `@` ends the local part.
        let bytes = text.utf8
        let slash = bytes.firstIndex(of: UInt8(ascii: "/"))
        let bare = bytes[..<(slash ?? bytes.endIndex)]
        let at = bare.firstIndex(of: UInt8(ascii: "@"))
        try self.init(
            parts: at.map { text[..<$0] },
            text[(at.map { bytes.index(after: $0) } ?? bytes.startIndex)..<bare.endIndex],
            slash.map { text[bytes.index(after: $0)...] },
            strictness
        )
    }

    /// Prepares the parts of an address.
    ///
    /// - Throws: for what is no part of an address.
    public init(local: String? = nil, domain: String, resource: String? = nil) throws(JIDError) {
        try self.init(parts: local.map { $0[...] }, domain[...], resource.map { $0[...] }, .own)
    }

    private init(
        parts local: Substring?,
        _ domain: Substring,
        _ resource: Substring?,
        _ strictness: JIDPreparation.Strictness
    ) throws(JIDError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity((local?.utf8.count ?? 0) + domain.utf8.count + (resource?.utf8.count ?? 0) + 2)
        if let local {
            try JIDPreparation.local(local, strictness, into: &bytes)
            self.localCount = UInt16(bytes.count)
            bytes.append(UInt8(ascii: "@"))
        } else {
            self.localCount = 0
        }
        try JIDPreparation.domain(domain, strictness, into: &bytes)
        self.bareCount = UInt16(bytes.count)
        if let resource {
            bytes.append(UInt8(ascii: "/"))
            try JIDPreparation.resource(resource, strictness, into: &bytes)
        }
        self.description = String(decoding: bytes, as: UTF8.self)
    }

    private init(prepared: String, localCount: UInt16, bareCount: UInt16) {
        self.description = prepared
        self.localCount = localCount
        self.bareCount = bareCount
    }

    /// The account's name.
    public var local: String? { self.localCount == 0 ? nil : self.piece(0, Int(self.localCount)) }

    /// The server.
    public var domain: String { self.piece(self.localCount == 0 ? 0 : Int(self.localCount) + 1, Int(self.bareCount)) }

    /// The connection's name.
    public var resource: String? {
        self.isBare ? nil : self.piece(Int(self.bareCount) + 1, self.description.utf8.count)
    }

    /// Whether it has no resource.
    public var isBare: Bool { Int(self.bareCount) == self.description.utf8.count }

    /// The same without a resource.
    public var bare: JID {
        if self.isBare { return self }
        return JID(prepared: self.piece(0, Int(self.bareCount)), localCount: self.localCount, bareCount: self.bareCount)
    }

    /// The server alone.
    public var domainOnly: JID {
        let domain = self.domain
        return JID(prepared: domain, localCount: 0, bareCount: UInt16(domain.utf8.count))
    }

    /// The same with another resource.
    public func with(resource: String) throws(JIDError) -> JID {
        var bytes = Array(self.description.utf8.prefix(Int(self.bareCount)))
        bytes.append(UInt8(ascii: "/"))
        try JIDPreparation.resource(resource[...], .own, into: &bytes)
        return JID(
            prepared: String(decoding: bytes, as: UTF8.self),
            localCount: self.localCount,
            bareCount: self.bareCount
        )
    }

    private func piece(_ start: Int, _ end: Int) -> String {
        let bytes = self.description.utf8
        return String(
            self.description[
                bytes.index(bytes.startIndex, offsetBy: start)..<bytes.index(bytes.startIndex, offsetBy: end)
            ]
        )
    }

    /// Equal means the same bytes: strings would be compared by their characters.
    public static func == (left: JID, right: JID) -> Bool {
        left.localCount == right.localCount && left.bareCount == right.bareCount
            && left.description.utf8.elementsEqual(right.description.utf8)
    }
}

extension JID: CustomStringConvertible, Comparable {
    /// Orders by the bytes of the prepared form.
    public static func < (left: JID, right: JID) -> Bool {
        left.description.utf8.lexicographicallyPrecedes(right.description.utf8)
    }
}
