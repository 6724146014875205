/// The last retained message of every topic.
///
/// Spec: MQTT 5.0 §3.3.1.3.
struct RetainedStore {
    private struct Node {
        var children: [[UInt8]: Int32] = [:]
        /// The children by age, for a search that pauses: each removed one stays until half of them are.
        var line: [(born: UInt64, node: Int32)] = []
        var message: KeptMessage?
        /// The number of the change that kept the message.
        var kept: UInt64 = 0
        var parent: Int32
        var level: [UInt8]
        /// The number of the change that made it; 0 for the root and for what is free.
        var born: UInt64
    }

    /// A search for the messages of a filter, which goes on after any change of the store.
    ///
    /// It finds the messages that were there at its begin and are still there, the oldest branch first. Its path is no
    /// longer than a topic has levels.
    struct Search {
        fileprivate struct Place {
            var node: Int32
            var born: UInt64
            /// Levels of the filter above the node's children.
            var depth: Int
            /// The youngest child that was visited.
            var seen: UInt64 = 0
        }

        fileprivate let filter: [[UInt8]]
        fileprivate let begun: UInt64
        fileprivate var path = [Place(node: 0, born: 0, depth: 0)]

        var isOver: Bool { self.path.isEmpty }
    }

    private var nodes: [Node] = [Node(parent: -1, level: [], born: 0)]
    private var free: [Int32] = []
    private var changes: UInt64 = 0
    private(set) var count = 0
    /// Bytes of all messages, with the nodes of their topics.
    private var bytes = 0
    /// About what a node takes: a topic of 65,535 bytes may have 32,768 levels.
    private static let nodeBytes = 256

    /// Keeps a message, and drops the one before it in any case.
    ///
    /// - Returns: whether there was room for it.
    mutating func set(_ message: KeptMessage, limit: Int = .max) -> Bool {
        self.remove(message.topic)
        let levels = TopicLevels.split(message.topic)
        guard message.bytes + levels.count * Self.nodeBytes <= limit - self.bytes else { return false }
        self.bytes += message.bytes
        self.count += 1
        var node: Int32 = 0
        for level in levels { node = self.nodes[Int(node)].children[level] ?? self.addChild(level, to: node) }
        self.changes += 1
        self.nodes[Int(node)].message = message
        self.nodes[Int(node)].kept = self.changes
        return true
    }

    mutating func remove(_ topic: [UInt8]) {
        var node: Int32 = 0
        for level in TopicLevels.split(topic) {
            guard let next = self.nodes[Int(node)].children[level] else { return }
            node = next
        }
        guard let message = self.nodes[Int(node)].message else { return }
        self.bytes -= message.bytes
        self.nodes[Int(node)].message = nil
        self.count -= 1
        while node != 0, self.nodes[Int(node)].message == nil, self.nodes[Int(node)].children.isEmpty {
            let parent = self.nodes[Int(node)].parent
            self.nodes[Int(parent)].children[self.nodes[Int(node)].level] = nil
            self.nodes[Int(node)] = Node(parent: -1, level: [], born: 0)
            self.bytes -= Self.nodeBytes
            self.free.append(node)
            node = parent
        }
    }

    func search(_ filter: [UInt8]) -> Search { Search(filter: TopicLevels.split(filter), begun: self.changes) }

    /// The next message of a search; nil at its end, or after `steps`, each of which visits one node.
    func next(of search: inout Search, steps: inout Int) -> KeptMessage? {
        while steps > 0, var place = search.path.popLast() {
            steps -= 1
            let node = self.nodes[Int(place.node)]
            // Removed meanwhile.
            guard node.born == place.born else { continue }
            let level = place.depth < search.filter.count ? search.filter[place.depth] : nil
            let isNew = place.seen == 0
            if level == TopicLevels.plus || level == TopicLevels.hash {
                let index = self.firstChild(of: node, after: place.seen)
                if index < node.line.count, node.line[index].born <= search.begun {
                    let (born, child) = node.line[index]
                    place.seen = born
                    if index + 1 < node.line.count { search.path.append(place) }
                    if !self.isHidden(self.nodes[Int(child)].level, under: place.node) {
                        let depth = level == TopicLevels.hash ? place.depth : place.depth + 1
                        search.path.append(Search.Place(node: child, born: born, depth: depth))
                    }
                }
            } else if let level, let child = node.children[level] {
                let born = self.nodes[Int(child)].born
                search.path.append(Search.Place(node: child, born: born, depth: place.depth + 1))
            }
            // §4.7.1.2: `#` also matches the level above it.
            let isMatch = level == nil || level == TopicLevels.hash && isNew
            if isMatch, node.kept <= search.begun, let message = node.message { return message }
        }
        return nil
    }

    private func firstChild(of node: Node, after born: UInt64) -> Int {
        var range = 0..<node.line.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = node.line[middle].born > born ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }

    /// §4.7.2: a leading wildcard does not match topics that begin with `$`.
    private func isHidden(_ name: [UInt8], under node: Int32) -> Bool { node == 0 && name.first == UInt8(ascii: "$") }

    private mutating func addChild(_ level: [UInt8], to parent: Int32) -> Int32 {
        self.changes += 1
        self.bytes += Self.nodeBytes
        let new = Node(parent: parent, level: level, born: self.changes)
        let node = self.free.popLast() ?? Int32(self.nodes.count)
        if Int(node) == self.nodes.count { self.nodes.append(new) } else { self.nodes[Int(node)] = new }
        if self.nodes[Int(parent)].line.count > 2 * self.nodes[Int(parent)].children.count + 8 {
            let line = self.nodes[Int(parent)].line.filter { self.nodes[Int($0.node)].born == $0.born }
            self.nodes[Int(parent)].line = line
        }
        self.nodes[Int(parent)].children[level] = node
        self.nodes[Int(parent)].line.append((self.changes, node))
        return node
    }
}
