import SASL

/// Enhanced authentication: both sides prove that they know the password, without sending it (§4.12).
public struct MQTTAuthentication: Sendable {
    let make: @Sendable (SCRAMKeyCache) throws(SASLError) -> SCRAMClient

    /// Range of password hash rounds that a server may ask for by default: 4,096 to 600,000.
    ///
    /// Fewer than 4,096 rounds make the password cheap to guess (RFC 7677 §4). The rounds run on the client's event
    /// loop, once for each salt. 600,000 rounds take a good part of a second. A hostile server that asks for millions
    /// would stop every client of the loop for as long.
    public static var usualIterations: ClosedRange<Int> { SCRAMClient.usualIterations }

    /// SCRAM-SHA-256 (RFC 7677).
    ///
    /// - Parameters:
    ///   - user: not empty; prepared by SASLprep (RFC 4013), which refuses characters newer than Unicode 3.2.
    ///   - password: the same.
    ///   - iterations: the rounds of the hash that the server may ask for, within 1...4,294,967,295; with any other number
    ///     `connect` ends with ``MQTTClientError/notAuthenticated(_:)``.
    /// - Returns: the method.
    public static func scramSHA256(
        user: String,
        password: String,
        iterations: ClosedRange<Int> = MQTTAuthentication.usualIterations
    ) -> MQTTAuthentication {
        Self.scram(.sha256, user, password, iterations)
    }

    /// SCRAM-SHA-1 (RFC 5802).
    ///
    /// - Parameters:
    ///   - user: not empty; prepared by SASLprep (RFC 4013), which refuses characters newer than Unicode 3.2.
    ///   - password: the same.
    ///   - iterations: the rounds of the hash that the server may ask for, within 1...4,294,967,295; with any other number
    ///     `connect` ends with ``MQTTClientError/notAuthenticated(_:)``.
    /// - Returns: the method.
    public static func scramSHA1(
        user: String,
        password: String,
        iterations: ClosedRange<Int> = MQTTAuthentication.usualIterations
    ) -> MQTTAuthentication {
        Self.scram(.sha1, user, password, iterations)
    }

    private static func scram(
        _ hash: SCRAMHash,
        _ user: String,
        _ password: String,
        _ iterations: ClosedRange<Int>
    ) -> MQTTAuthentication {
        MQTTAuthentication { cache throws(SASLError) in
            guard iterations.lowerBound >= 1, iterations.upperBound <= Int(UInt32.max) else {
                throw .credentials(
                    "SCRAM has 1 to 4294967295 rounds, and \(iterations.lowerBound) to \(iterations.upperBound) are allowed"
                )
            }
            return try SCRAMClient(hash, user: user, password: password, iterations: iterations, cache: cache)
        }
    }
}
