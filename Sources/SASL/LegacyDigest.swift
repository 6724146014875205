import Crypto

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
