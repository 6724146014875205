/// Parsed stream features, which a server sends in the same bytes on every login.
///
/// For the streams of one event loop. It keeps a few offers of up to 4 KiB and replaces the oldest.
package final class FeatureTrees {
    private static let most = 4
    private static let largest = 4_096

    private var known: [(bytes: [UInt8], tree: XMPPElement)] = []
    private var oldest = 0

    package init() {}

    /// The same as the element's own tree, but made once for the same bytes.
    package func tree(of element: borrowing ElementView) -> XMPPElement {
        // Under an unusual header the same bytes may mean something else, because of its namespaces.
        guard element.isBelowUsualHeader, element.byteCount <= Self.largest else { return element.element() }
        let found = element.withBytes { bytes in self.known.first { $0.bytes.elementsEqual(bytes) } }
        if let found { return found.tree }
        let tree = element.element()
        let entry = (bytes: element.withBytes { Array($0) }, tree: tree)
        if self.known.count < Self.most {
            self.known.append(entry)
        } else {
            self.known[self.oldest] = entry
            self.oldest = (self.oldest + 1) % Self.most
        }
        return tree
    }
}
