import Crypto

/// The directives of a DIGEST-MD5 message: `name=value` or `name="value"`, between commas.
///
/// Spec: RFC 2831 §7.1.
struct DigestDirectives {
    private(set) var all: [(name: String, value: [UInt8])] = []

    /// §2.1.1: a challenge has fewer than 2,048 bytes.
    static let sizeLimit = 2_047

    init(_ message: [UInt8]) throws(SASLError) {
        guard message.count <= Self.sizeLimit else {
            throw .malformed("\(message.count) bytes are more than \(Self.sizeLimit)")
        }
        guard !message.contains(0) else { throw .malformed("it contains U+0000") }
        var rest = message[...]
        while true {
            // Empty elements of a list are allowed.
            rest = rest.drop { $0 == UInt8(ascii: ",") || Self.isSpace($0) }
            guard !rest.isEmpty else { return }
            let name = rest.prefix(while: Self.isToken)
            rest = rest[name.endIndex...].drop(while: Self.isSpace)
            guard !name.isEmpty, rest.popFirst() == UInt8(ascii: "=") else {
                throw .malformed("a directive has no name, or no value")
            }
            rest = rest.drop(while: Self.isSpace)
            let value = try Self.value(&rest)
            self.all.append((String(decoding: name, as: UTF8.self).lowercased(), value))
            rest = rest.drop(while: Self.isSpace)
            guard rest.isEmpty || rest.first == UInt8(ascii: ",") else {
                throw .malformed("no comma follows the directive \(String(decoding: name, as: UTF8.self))")
            }
        }
    }

    /// The value of a directive that may occur once.
    func only(_ name: String) throws(SASLError) -> [UInt8]? {
        let found = self.all.filter { $0.name == name }
        guard found.count <= 1 else { throw .malformed("\(name) occurs \(found.count) times") }
        return found.first?.value
    }

    private static func value(_ rest: inout ArraySlice<UInt8>) throws(SASLError) -> [UInt8] {
        guard rest.first == UInt8(ascii: "\"") else {
            let token = rest.prefix(while: Self.isToken)
            guard !token.isEmpty else { throw .malformed("a directive has no value") }
            rest = rest[token.endIndex...]
            return Array(token)
        }
        rest = rest.dropFirst()
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return value
            case UInt8(ascii: "\\"):
                guard let next = rest.popFirst() else { throw .malformed("a quoted value has no end") }
                value.append(next)
            default: value.append(byte)
            }
        }
        throw .malformed("a quoted value has no end")
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }

    /// RFC 2616 §2.2: neither a control character nor a separator.
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x7F...: false
        case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "@"),
            UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"), UInt8(ascii: "\\"), UInt8(ascii: "\""),
            UInt8(ascii: "/"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "?"), UInt8(ascii: "="),
            UInt8(ascii: "{"), UInt8(ascii: "}"):
            false
        default: true
        }
    }
}

/// The server's first message.
struct DigestChallenge {
    let realms: [[UInt8]]
    let nonce: [UInt8]
    let isUTF8: Bool

    init(_ message: [UInt8]) throws(SASLError) {
        let directives = try DigestDirectives(message)
        self.realms = directives.all.filter { $0.name == "realm" }.map(\.value)
        guard let nonce = try directives.only("nonce"), !nonce.isEmpty else { throw .malformed("it has no nonce") }
        self.nonce = nonce
        guard let algorithm = try directives.only("algorithm"), Self.text(algorithm) == "md5-sess" else {
            throw .malformed("its algorithm is not md5-sess")
        }
        // §2.1.1: without the directive it is auth alone.
        if let options = try directives.only("qop") {
            let names = Self.text(options).split { $0 == "," || $0 == " " || $0 == "\t" }
            guard names.contains("auth") else { throw .malformed("it wants a layer of its own (qop without auth)") }
        }
        if let charset = try directives.only("charset") {
            guard Self.text(charset) == "utf-8" else { throw .malformed("its charset is not utf-8") }
            self.isUTF8 = true
        } else {
            self.isUTF8 = false
        }
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self).lowercased() }
}

/// §2.1.2.1: the hashes of both sides.
struct DigestComputation {
    let user: [UInt8]
    let realm: [UInt8]
    let password: [UInt8]
    let nonce: [UInt8]
    let clientNonce: [UInt8]
    let uri: [UInt8]
    let identity: [UInt8]

    /// The client's proof.
    var response: String { self.proof("AUTHENTICATE:") }
    /// The proof that the server has to return (§2.1.3).
    var serverProof: String { self.proof(":") }

    private func proof(_ method: String) -> String {
        let colon = [UInt8(ascii: ":")]
        let secret = Self.md5(self.user + colon + self.realm + colon + self.password)
        let session = secret + colon + self.nonce + colon + self.clientNonce
        let first = Hex.digits(Self.md5(self.identity.isEmpty ? session : session + colon + self.identity))
        let second = Hex.digits(Self.md5(Array(method.utf8) + self.uri))
        let count = Array("00000001".utf8)
        let quality = Array("auth".utf8)
        let middle = colon + self.nonce + colon + count + colon + self.clientNonce + colon + quality + colon
        return Hex.text(Self.md5(first + middle + second))
    }

    private static func md5(_ bytes: [UInt8]) -> [UInt8] { Array(Insecure.MD5.hash(data: bytes)) }
}

enum Hex {
    static func text(_ bytes: [UInt8]) -> String { String(decoding: self.digits(bytes), as: UTF8.self) }

    static func digits(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array("0123456789abcdef".utf8)
        return bytes.flatMap { [alphabet[Int($0 >> 4)], alphabet[Int($0 & 15)]] }
    }
}

enum Latin1 {
    /// Nothing if a character is beyond U+00FF.
    static func encode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}

/// The proof of jabber:iq:auth, for streams from before there was SASL.
///
/// Spec: XEP-0078 §3.
package enum LegacyDigest {
    /// The content of `<digest/>`: the SHA-1 of the stream's id and the password, in lower-case hex digits.
    ///
    /// - Parameters:
    ///   - streamID: as in the server's stream header, with XML escapes decoded.
    ///   - password: unchanged.
    /// - Returns: 40 digits.
    package static func digits(streamID: String, password: String) -> String {
        Hex.text(Array(Insecure.SHA1.hash(data: Array((streamID + password).utf8))))
    }
}
