import Testing
import XMPPCodec

@Suite("Trees of features")
struct FeatureTreesTests {
    private static let usual =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
    private static let bind = "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
    private static let prefixed = "<stream:features><o:bind/></stream:features>"

    private struct Sink: XMPPReaderSink {
        let trees: FeatureTrees
        var pairs: [(own: XMPPElement, known: XMPPElement)] = []

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.pairs.append((element.element(), self.trees.tree(of: element)))
            return .goOn
        }

        mutating func closed() -> ReadingGoesOn { .goOn }
    }

    private func read(
        _ xml: String,
        _ trees: FeatureTrees
    ) throws -> [(own: XMPPElement, known: XMPPElement)] {
        var reader = XMPPReader()
        var sink = Sink(trees: trees)
        let taken = try Array(xml.utf8).withUnsafeBytes { try reader.read($0, into: &sink) }
        #expect(taken == xml.utf8.count)
        return sink.pairs
    }

    /// Whether both have their children in the same memory: one was made, and not two.
    private func isSame(_ left: XMPPElement, _ right: XMPPElement) -> Bool {
        left.children.withUnsafeBufferPointer { left in
            right.children.withUnsafeBufferPointer { left.baseAddress == $0.baseAddress }
        }
    }

    @Test("the same bytes behind the usual header are one tree, on whichever stream they come")
    func once() throws {
        let trees = FeatureTrees()
        let first = try #require(try self.read(Self.usual + Self.bind, trees).first)
        let second = try #require(try self.read(Self.usual + Self.bind, trees).first)
        #expect(first.known == first.own)
        #expect(second.known == second.own)
        #expect(self.isSame(first.known, second.known))
        #expect(!self.isSame(second.known, second.own))
    }

    @Test("[XML-NAMES §6.1] the same bytes behind headers that bind a prefix differently are different elements")
    func prefixes() throws {
        let trees = FeatureTrees()
        for namespace in ["urn:one", "urn:two", "urn:one"] {
            let header = Self.usual.replacing(" version", with: " xmlns:o='\(namespace)' version")
            let pair = try #require(try self.read(header + Self.prefixed, trees).first)
            #expect(pair.known == pair.own)
            #expect(pair.known.elements.map(\.namespace) == [namespace])
        }
    }

    @Test("a few are kept, whatever the server says, and none that is long")
    func bounds() throws {
        let trees = FeatureTrees()
        func offer(_ name: String) -> String { Self.bind.replacing("<bind ", with: "<\(name) ") }
        let first = try #require(try self.read(Self.usual + Self.bind, trees).first)
        for number in 0..<100 {
            let pair = try #require(try self.read(Self.usual + offer("f\(number)"), trees).first)
            #expect(pair.known == pair.own)
        }
        let again = try #require(try self.read(Self.usual + Self.bind, trees).first)
        #expect(again.known == first.known)
        #expect(!self.isSame(again.known, first.known))

        let long = offer("f title='\(String(repeating: "x", count: 5_000))'")
        let pairs = try self.read(Self.usual + long + long, trees)
        #expect(pairs.count == 2)
        #expect(pairs.allSatisfy { $0.known == $0.own })
        #expect(!self.isSame(pairs[0].known, pairs[1].known))
    }
}
