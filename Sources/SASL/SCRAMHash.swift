import Crypto
import CryptoExtras

/// The hash that a SCRAM mechanism is built on.
package enum SCRAMHash: String, Hashable, Sendable, CaseIterable {
    /// RFC 5802.
    case sha1 = "SCRAM-SHA-1"
    /// RFC 7677.
    case sha256 = "SCRAM-SHA-256"
    case sha512 = "SCRAM-SHA-512"

    /// The mechanism's registered name.
    package var mechanism: String { self.rawValue }

    /// Bytes of the hash, and so of each key, proof and signature.
    package var byteCount: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }

    func digest(_ bytes: [UInt8]) -> [UInt8] {
        switch self {
        case .sha1: Array(Insecure.SHA1.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        case .sha512: Array(SHA512.hash(data: bytes))
        }
    }

    func authenticationCode(of message: [UInt8], key: [UInt8]) -> [UInt8] {
        let key = SymmetricKey(data: key)
        return switch self {
        case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key))
        case .sha256: Array(HMAC<SHA256>.authenticationCode(for: message, using: key))
        case .sha512: Array(HMAC<SHA512>.authenticationCode(for: message, using: key))
        }
    }

    /// `Hi()` of RFC 5802 §2.2, which is PBKDF2 with one block; `password` and `salt` are not empty.
    func saltedPassword(_ password: [UInt8], salt: [UInt8], iterations: Int) -> [UInt8] {
        let function: KDF.Insecure.PBKDF2.HashFunction =
            switch self {
            case .sha1: .insecureSHA1
            case .sha256: .sha256
            case .sha512: .sha512
            }
        // Unchecked, because the checked form requires 210,000 rounds and servers use 4,096.
        let key = try? KDF.Insecure.PBKDF2.deriveKey(
            from: password,
            salt: salt,
            using: function,
            outputByteCount: self.byteCount,
            unsafeUncheckedRounds: iterations
        )
        guard let key else { preconditionFailure("PBKDF2 fails only without memory") }
        return key.withUnsafeBytes { Array($0) }
    }
}

extension [UInt8] {
    /// Compares in constant time, whatever the position of a difference.
    func equalsInConstantTime(_ other: [UInt8]) -> Bool {
        guard self.count == other.count else { return false }
        var difference: UInt8 = 0
        for index in self.indices { difference |= self[index] ^ other[index] }
        return difference == 0
    }

    func xor(_ other: [UInt8]) -> [UInt8] { zip(self, other).map { $0 ^ $1 } }
}
