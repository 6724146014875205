import Foundation
import TestSupport

/// The seeds of the tokenizer, made from the vectors of Tests/Vectors/xmpp.
enum XMLSeeds {
    private struct Vector: Decodable {
        let place: String
        let xml: String?
        let bytes: String?
        let limits: [String: Int]?
        let mustFail: String?

        var wire: [UInt8] { self.xml.map { Array($0.utf8) } ?? hex(self.bytes ?? "") }
    }

    private static let vectors: [Vector] = {
        do {
            let folder = MarkdownPage.root.appending(path: "Tests/Vectors/xmpp")
            let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            return try files.filter { $0.pathExtension == "json" }
                .sorted { $0.lastPathComponent < $1.lastPathComponent }
                .flatMap { try JSONDecoder().decode([Vector].self, from: Data(contentsOf: $0)) }
        } catch {
            preconditionFailure("the vectors of XMPP: \(error)")
        }
    }()

    /// Elements, as in a stream.
    static let elements: [[UInt8]] = Self.vectors.filter { $0.place == "stream" }.map(\.wire).filter { $0.count <= 255 }

    private static let good: [[UInt8]] = Self.vectors
        .filter {
            $0.place == "stream" && $0.mustFail == nil && $0.limits == nil && !$0.wire.starts(with: Array("</".utf8))
        }
        .map(\.wire).filter { $0.count <= 255 }

    static let inputs: [[UInt8]] = Self.vectors.enumerated().flatMap { index, vector -> [[UInt8]] in
        let place: UInt8 = vector.place == "stream" ? 0 : vector.place == "start" ? 2 : 3
        let limits: UInt8 =
            switch vector.limits?.keys.first {
            case "depth": 2
            case "attributes": 3
            case "nameBytes": 4
            case "stanzaBytes": 5
            default: 0
            }
        let settings = [place, UInt8(truncatingIfNeeded: index), limits, 255]
        guard place == 0 else { return [settings + vector.wire] }
        // Once alone, and behind others.
        let front = (0..<4).map { Self.good[(index + $0) % Self.good.count] }
        return [settings + vector.wire, settings + front[0] + vector.wire, settings + front.joined() + vector.wire]
    }
}
