import Foundation
import FoundationXML
import TestSupport
import Testing
import XMPPCodec

@Suite("Beside the toolchain's XML parser", .timeLimit(.minutes(10)))
struct DifferentialTests {
    /// Given ones: their parser has faults of its own (it traps on `<?x?>`, and leaves a lone CR in CDATA as it is, against
    /// XML §2.11), which fresh seeds come upon.
    private static let seeds: [UInt64] = [1, 2, 3, 4]

    @Test("generated documents are the same tree for both", arguments: seeds)
    func generated(_ seed: UInt64) throws {
        var writer = DocumentWriter(seed: seed)
        for _ in 0..<400 {
            let document = writer.document()
            let ours = Ours(document)
            #expect(ours.error == nil, "\(text(document))")
            let theirs = Theirs(document)
            #expect(theirs.isWellFormed, "\(theirs.problem): \(text(document))")
            #expect(ours.elements == theirs.elements, "seed \(seed): \(text(document))")
        }
    }

    @Test("mutated documents are well-formed for both or for neither", arguments: seeds)
    func mutated(_ seed: UInt64) throws {
        var writer = DocumentWriter(seed: seed)
        var counts: [String: Int] = [:]
        for _ in 0..<2_500 {
            let document = writer.mutated()
            let ours = Ours(document)
            // Their parser traps on names that are no UTF-8.
            guard String(validating: document, as: UTF8.self) != nil else {
                #expect(!ours.isWellFormed, "seed \(seed): we take \(document.hexText)")
                continue
            }
            // And on a processing instruction with nothing behind its name; XMPP has none (RFC 6120 §11.1).
            if !ours.isWellFormed, self.mayHaveInstruction(document) { continue }
            let theirs = Theirs(document)
            if ours.isWellFormed {
                #expect(theirs.isWellFormed, "seed \(seed): only they refuse \(text(document)) \(document.hexText)")
                #expect(ours.elements == theirs.elements, "seed \(seed): \(text(document))")
            } else if theirs.isWellFormed {
                #expect(
                    ours.error.map { self.isSubset($0, document) } ?? false,
                    "seed \(seed): only we refuse \(text(document)): \(String(describing: ours.error))"
                )
            }
            counts[ours.isWellFormed ? "fine" : theirs.isWellFormed ? "subset" : "neither", default: 0] += 1
        }
        // Mutants that are all refused compare nothing.
        #expect(counts["fine", default: 0] > 100, "\(counts)")
        #expect(counts["neither", default: 0] > 100, "\(counts)")
    }

    /// Documents that XML allows, but XMPP, its namespaces or our limits do not: the permitted differences.
    private func isSubset(_ error: XMPPReadError, _ document: [UInt8]) -> Bool {
        switch error {
        // RFC 6120 §11.1, §11.6, §4.8.1.
        case .comment, .processingInstruction, .documentType, .entityReference, .encoding, .textInStream, .rootName,
            .rootNamespace:
            true
        // XML-NAMES: their parser reports these, and goes on.
        case .unboundPrefix, .namespaceDeclaration, .duplicateAttribute, .name: true
        // `1.` and no digit, which their parser takes for a version it does not know.
        case .declaration: document.starts(with: Array("<?xml version='1.'".utf8))
        case .tooDeep, .tooManyAttributes, .tooManyNamespaces, .nameTooLong, .namespaceTooLong,
            .stanzaTooLarge, .streamNamespacesTooLarge:
            true
        default: false
        }
    }

    private func mayHaveInstruction(_ document: [UInt8]) -> Bool {
        let start = document.starts(with: Array("<?xml ".utf8)) ? 1 : 0
        return document[min(start, document.count)...].contains(Array("<?".utf8))
    }

    private func text(_ document: [UInt8]) -> String { String(decoding: document, as: UTF8.self) }
}

/// Our reader's result for a whole stream.
private struct Ours {
    let error: XMPPReadError?
    let elements: [XMPPElement]
    let isWellFormed: Bool

    init(_ document: [UInt8]) {
        let reading = read([document])
        self.error = reading.error
        self.elements = reading.elements.map(\.sorted)
        self.isWellFormed = reading.error == nil && reading.events.last == .closed
    }
}

/// The result of Foundation's parser for it.
private final class Theirs: NSObject, XMLParserDelegate {
    private(set) var isWellFormed = false
    private(set) var problem = ""
    private(set) var elements: [XMPPElement] = []
    private var open: [XMPPElement] = []
    private var prefixes: [[String: String]] = []
    private var pending: [String: String] = [:]

    init(_ document: [UInt8]) {
        super.init()
        let parser = XMLParser(data: Data(document))
        parser.shouldProcessNamespaces = true
        parser.shouldReportNamespacePrefixes = true
        parser.shouldResolveExternalEntities = false
        parser.delegate = self
        // Its return value concerns the last piece only.
        let isFine = parser.parse()
        self.isWellFormed = isFine && self.problem.isEmpty
    }

    func parser(_ parser: XMLParser, parseErrorOccurred parseError: any Error) {
        // Warnings: a namespace that is no good URI, a version 1.x that it does not know (XML §2.8 takes it for 1.0).
        if [97, 99, 100, 108].contains((parseError as NSError).code) { return }
        self.problem += "\(parseError)"
    }

    func parser(_ parser: XMLParser, didStartMappingPrefix prefix: String, toURI namespaceURI: String) {
        self.pending[prefix] = namespaceURI
    }

    func parser(
        _ parser: XMLParser,
        didStartElement elementName: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) {
        self.prefixes.append(self.pending)
        self.pending = [:]
        var element = XMPPElement(
            elementName.split(separator: ":").last.map(String.init) ?? elementName,
            namespace: namespaceURI ?? ""
        )
        for (name, value) in attributes where name != "xmlns" && !name.hasPrefix("xmlns:") {
            let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else {
                element.attributes.append(.init(name: name, value: value))
                continue
            }
            let namespace =
                parts[0] == "xml"
                ? XMPPNamespace.xml : self.prefixes.reversed().compactMap { $0[parts[0]] }.first ?? "unbound"
            element.attributes.append(.init(name: parts[1], namespace: namespace, value: value))
        }
        self.open.append(element)
    }

    func parser(_ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?) {
        self.prefixes.removeLast()
        let element = self.open.removeLast()
        switch self.open.count {
        case 0: break
        case 1: self.elements.append(element.sorted)
        default: self.open[self.open.count - 1].add(element)
        }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) { self.add(string) }

    func parser(_ parser: XMLParser, foundCDATA block: Data) { self.add(String(decoding: block, as: UTF8.self)) }

    private func add(_ text: String) {
        if self.open.count > 1 { self.open[self.open.count - 1].add(text: text) }
    }
}

extension XMPPElement {
    /// With its attributes in one order: the other parser hands out a dictionary.
    fileprivate var sorted: XMPPElement {
        var sorted = self
        sorted.attributes.sort { ($0.namespace, $0.name) < ($1.namespace, $1.name) }
        sorted.children = self.children.map { if case .element(let child) = $0 { .element(child.sorted) } else { $0 } }
        return sorted
    }
}
