import Foundation
import TestSupport
import Testing
import XMPPCodec
import XMPPErrorNames

/// One case of Tests/Vectors/xmpp: bytes written by hand from the standards, and what they are.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
    enum Place: String, Decodable {
        /// Behind a usual stream header.
        case stream
        /// From the first byte of a stream.
        case start
        /// Over WebSocket.
        case webSocket
    }

    let name: String
    let clause: String
    let place: Place
    private let xml: String?
    /// Where the bytes are no text.
    private let bytes: String?
    /// The expected events, in one line each: elements as ``XMPPElement/canonical``, `closed`, or `opened` with its
    /// values.
    let events: [String]?
    /// The error, as it is written without its type, and the stream error that answers it.
    let mustFail: String?
    let condition: String?
    private let limits: [String: Int]?

    var testDescription: String { "\(self.name) (\(self.clause))" }

    /// The bytes to cut, without the header before them.
    var wire: [UInt8] { self.xml.map { Array($0.utf8) } ?? hex(self.bytes ?? "") }

    func read(_ pieces: [[UInt8]]) -> Reading {
        let front = self.place == .stream ? [Array(usualHeader.utf8)] : []
        var limits = XMPPLimits()
        for (name, value) in self.limits ?? [:] {
            switch name {
            case "stanzaBytes": limits.stanzaBytes = value
            case "depth": limits.depth = value
            case "attributes": limits.attributes = value
            case "nameBytes": limits.nameBytes = value
            default: preconditionFailure("\(self.name): no limit \(name)")
            }
        }
        let framing: XMPPReader.Framing = self.place == .webSocket ? .webSocket : .stream
        var reading = XMPPCodecTests.read(front + pieces, framing: framing, limits: limits)
        if self.place == .stream { reading.events.removeFirst() }
        return reading
    }

    static let all: [Vector] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/xmpp")
        return ["stream", "elements", "namespaces", "text", "refusals", "limits", "websocket"].flatMap {
            name -> [Vector] in
            do {
                let data = try Data(contentsOf: folder.appendingPathComponent(name + ".json"))
                return try JSONDecoder().decode([Vector].self, from: data)
            } catch {
                preconditionFailure("\(name).json: \(error)")
            }
        }
    }()

    static let readings = Self.all.filter { $0.mustFail == nil }
    static let refusals = Self.all.filter { $0.mustFail != nil }
}

extension ReaderEvent {
    /// As the vectors name it.
    var canonical: String {
        switch self {
        case .element(let element): return element.canonical
        case .closed: return "closed"
        case .opened(let header):
            let values: [(String, String?)] = [
                ("from", header.from), ("to", header.to), ("id", header.id), ("version", header.version),
                ("lang", header.language), ("xmlns", header.defaultNamespace),
            ]
            return "opened" + values.compactMap { name, value in value.map { " \(name)=\($0.quoted)" } }.joined()
        }
    }
}

extension XMPPReadError {
    /// As the vectors name it.
    var testName: String {
        switch self {
        case .stanzaTooLarge(let limit), .tooDeep(let limit), .tooManyAttributes(let limit),
            .tooManyNamespaces(let limit), .nameTooLong(let limit), .namespaceTooLong(let limit),
            .streamNamespacesTooLarge(let limit):
            "\(self.name)(limit: \(limit))"
        case .illegalCharacter(let scalar), .illegalReference(let scalar): "\(self.name)(\(scalar))"
        default: self.name
        }
    }
}
