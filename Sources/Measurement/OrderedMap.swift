/// Values by keys, in the order in which the keys came.
package struct OrderedMap<Key: Hashable, Value> {
    private var order: [Key] = []
    private var values: [Key: Value] = [:]

    package init() {}

    package subscript(key: Key) -> Value? { self.values[key] }

    package subscript(key: Key, default initial: @autoclosure () -> Value) -> Value {
        get { self.values[key] ?? initial() }
        _modify {
            if self.values[key] == nil { self.order.append(key) }
            yield &self.values[key, default: initial()]
        }
    }

    package var all: [(key: Key, value: Value)] {
        self.order.compactMap { key in self.values[key].map { (key, $0) } }
    }
}

extension OrderedMap: Sendable where Key: Sendable, Value: Sendable {}

extension [Double] {
    /// The middle value, or the mean of the two in the middle; `nil` without a value.
    package var median: Double? {
        guard !self.isEmpty else { return nil }
        let sorted = self.sorted()
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

extension Sequence where Element: Hashable {
    /// Each element once, in the order in which they came.
    package var firstOfEach: [Element] {
        var known: Set<Element> = []
        return self.filter { known.insert($0).inserted }
    }
}

extension Collection {
    /// The values of all elements; `nil` if one of them is not known.
    package func all<Value>(_ part: (Element) -> Value?) -> [Value]? {
        let known = self.compactMap(part)
        return known.count == self.count ? known : nil
    }
}
