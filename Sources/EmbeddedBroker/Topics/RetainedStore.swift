import NIOCore

/// The last retained message of every topic.
///
/// Spec: MQTT 5.0 §3.3.1.3.
struct RetainedStore {
    struct Message {
        var topic: [UInt8]
        var payload: [UInt8]
        /// The property bytes of MQTT 5 without their length, as the publisher sent them.
        var properties: [UInt8]
        var qos: UInt8
        /// From the Message Expiry Interval; nil means never.
        var expiry: NIODeadline?

        var bytes: Int { self.topic.count + self.payload.count + self.properties.count }
    }

    private struct Node {
        var children: [[UInt8]: Int32] = [:]
        var message: Message?
        var parent: Int32
        var level: [UInt8]
    }

    private var nodes: [Node] = [Node(parent: -1, level: [])]
    private var free: [Int32] = []
    private(set) var count = 0
    /// Of all messages.
    private var bytes = 0

    /// Keeps a message, and drops the one before it in any case.
    ///
    /// - Returns: whether there was room for it.
    mutating func set(_ message: Message, limit: Int = .max) -> Bool {
        self.remove(message.topic)
        guard message.bytes <= limit - self.bytes else { return false }
        self.bytes += message.bytes
        self.count += 1
        var node: Int32 = 0
        for level in TopicLevels.split(message.topic) {
            node = self.nodes[Int(node)].children[level] ?? self.addChild(level, to: node)
        }
        self.nodes[Int(node)].message = message
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
            self.free.append(node)
            node = parent
        }
    }

    /// The messages whose topic matches the filter and that have not expired at `now`.
    func matching(_ filter: [UInt8], now: NIODeadline) -> [Message] {
        var found: [Message] = []
        self.collect(TopicLevels.split(filter)[...], at: 0) { message in
            if let expiry = message.expiry, expiry <= now { return }
            found.append(message)
        }
        return found
    }

    private func collect(_ filter: ArraySlice<[UInt8]>, at node: Int32, found: (Message) -> Void) {
        guard let level = filter.first else {
            if let message = self.nodes[Int(node)].message { found(message) }
            return
        }
        if level == TopicLevels.hash {
            self.collectAll(at: node, found: found)
        } else if level == TopicLevels.plus {
            for (name, child) in self.nodes[Int(node)].children where !self.isHidden(name, under: node) {
                self.collect(filter.dropFirst(), at: child, found: found)
            }
        } else if let child = self.nodes[Int(node)].children[level] {
            self.collect(filter.dropFirst(), at: child, found: found)
        }
    }

    /// Collects everything below `node`, without recursion, since a topic may have 65,536 levels.
    private func collectAll(at node: Int32, found: (Message) -> Void) {
        var left = [node]
        while let node = left.popLast() {
            if let message = self.nodes[Int(node)].message { found(message) }
            for (name, child) in self.nodes[Int(node)].children where !self.isHidden(name, under: node) {
                left.append(child)
            }
        }
    }

    /// §4.7.2: a leading wildcard does not match topics that begin with `$`.
    private func isHidden(_ name: [UInt8], under node: Int32) -> Bool { node == 0 && name.first == UInt8(ascii: "$") }

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
