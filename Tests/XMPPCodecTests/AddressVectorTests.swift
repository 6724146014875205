import Foundation
import Testing
import XMPPCodec

/// One case of Tests/Vectors/xmpp-addresses: a text, and the parts of the address that it is, or why it is none.
struct AddressVector: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let clause: String
    let text: String
    let local: String?
    let domain: String?
    let resource: String?
    /// The part, and the character where one is to blame.
    let mustFail: String?

    var testDescription: String { "\(self.name) (\(self.clause))" }

    static func read(_ name: String) -> [AddressVector] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/xmpp-addresses/\(name).json")
        do {
            return try JSONDecoder().decode([AddressVector].self, from: Data(contentsOf: file))
        } catch {
            preconditionFailure("\(name).json: \(error)")
        }
    }
}

@Suite("The vectors of addresses")
struct AddressVectorTests {
    @Test("are prepared as they say", arguments: AddressVector.read("prepared"))
    func prepares(_ vector: AddressVector) throws {
        let jid = try JID(vector.text)
        let prepared =
            (vector.local.map { $0 + "@" } ?? "") + (vector.domain ?? "") + (vector.resource.map { "/" + $0 } ?? "")
        #expect(Array(jid.description.utf8) == Array(prepared.utf8))
        #expect(try JID(jid.description) == jid)
        #expect(try JID(received: vector.text) == jid)
    }

    @Test("are refused for the reason that they say", arguments: AddressVector.read("refused"))
    func refuses(_ vector: AddressVector) throws {
        let error = #expect(throws: JIDError.self) { try JID(vector.text) }
        let reason =
            switch try #require(error) {
            case .empty(let part): "\(part.rawValue) empty"
            case .tooLong(let part): "\(part.rawValue) too long"
            case .character(let part, let scalar): "\(part.rawValue) U+\(String(format: "%04X", scalar))"
            case .direction(let part): "\(part.rawValue) direction"
            case .domain: "domain"
            }
        #expect(reason == vector.mustFail)
    }
}
