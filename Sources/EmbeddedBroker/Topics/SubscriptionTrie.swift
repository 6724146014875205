/// The filters of all subscriptions as a tree of levels; each node has the values of the filter that ends there.
///
/// About 200 bytes per level that no other filter shares.
///
/// Spec: MQTT 5.0 §4.7.
package struct SubscriptionTrie {
    private struct Node {
        var children: [[UInt8]: Int32] = [:]
        var values: [Int32] = []
        var parent: Int32
        var level: [UInt8]
    }

    private var nodes: [Node] = [Node(parent: -1, level: [])]
    private var free: [Int32] = []

    package init() {}

    package var isEmpty: Bool { self.nodes[0].children.isEmpty }

    /// Adds `value` to `filter`, which may have each value only once.
    package mutating func insert(_ value: Int32, under filter: [UInt8]) {
        var node: Int32 = 0
        for level in TopicLevels.split(filter) {
            node = self.nodes[Int(node)].children[level] ?? self.addChild(level, to: node)
        }
        self.nodes[Int(node)].values.append(value)
    }

    package mutating func remove(_ value: Int32, under filter: [UInt8]) {
        var node: Int32 = 0
        for level in TopicLevels.split(filter) {
            guard let next = self.nodes[Int(node)].children[level] else { return }
            node = next
        }
        self.nodes[Int(node)].values.removeAll { $0 == value }
        // Empty nodes without children are freed, up to the root.
        while node != 0, self.nodes[Int(node)].values.isEmpty, self.nodes[Int(node)].children.isEmpty {
            let parent = self.nodes[Int(node)].parent
            self.nodes[Int(parent)].children[self.nodes[Int(node)].level] = nil
            self.free.append(node)
            node = parent
        }
    }

    /// Calls `found` with each value whose filter matches the topic.
    package func match(_ topic: [UInt8], found: (Int32) -> Void) {
        let levels = TopicLevels.split(topic)
        self.match(levels[...], at: 0, wildcards: levels[0].first != UInt8(ascii: "$"), found: found)
    }

    private func match(_ levels: ArraySlice<[UInt8]>, at node: Int32, wildcards: Bool, found: (Int32) -> Void) {
        let children = self.nodes[Int(node)].children
        // §4.7.1.2: `#` also matches the level above it.
        if wildcards, let all = children[TopicLevels.hash] { self.nodes[Int(all)].values.forEach(found) }
        guard let level = levels.first else {
            self.nodes[Int(node)].values.forEach(found)
            return
        }
        let rest = levels.dropFirst()
        if let child = children[level] { self.match(rest, at: child, wildcards: true, found: found) }
        if wildcards, let child = children[TopicLevels.plus] {
            self.match(rest, at: child, wildcards: true, found: found)
        }
    }

    private mutating func addChild(_ level: [UInt8], to parent: Int32) -> Int32 {
        let node: Int32
        if let reused = self.free.popLast() {
            node = reused
            self.nodes[Int(node)] = Node(parent: parent, level: level)
        } else {
            node = Int32(self.nodes.count)
            self.nodes.append(Node(parent: parent, level: level))
        }
        self.nodes[Int(parent)].children[level] = node
        return node
    }
}
