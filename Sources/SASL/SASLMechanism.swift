/// One authentication from the client's side: challenges go in, responses come out; it opens no socket.
///
/// Spec: RFC 4422 §3.
package protocol SASLMechanism: Sendable {
    /// The registered name, such as `SCRAM-SHA-256`.
    var name: String { get }

    /// The first message; `nil` where the mechanism lets the server speak first.
    mutating func begin() throws(SASLError) -> [UInt8]?

    /// Answers a challenge.
    mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8]

    /// The server says that it is content; what it sent along must prove it where the mechanism can (RFC 5802 §3).
    mutating func finish(_ data: [UInt8]?) throws(SASLError)
}
