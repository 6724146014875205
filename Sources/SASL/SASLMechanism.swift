/// The client's side of one authentication: it turns challenges into responses, and opens no socket.
///
/// Spec: RFC 4422 §3.
package protocol SASLMechanism: Sendable {
    /// The registered name, such as `SCRAM-SHA-256`.
    var name: String { get }

    /// The first message; `nil` where the mechanism lets the server speak first.
    mutating func begin() throws(SASLError) -> [UInt8]?

    mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8]

    /// The server reports success; its data must prove the server's identity if the mechanism can (RFC 5802 §3).
    mutating func finish(_ data: [UInt8]?) throws(SASLError)
}
