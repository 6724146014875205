/// A slow message with the group that recorded it, and the metric that it is slow in.
package struct SlowFinding: Hashable, Sendable {
    /// The group's place in the run.
    package let group: Int
    package let metric: String
    package let labels: Labels
    package let entry: SlowEntry
}

// The slowest messages, and what connections negotiated.
extension RunAccumulator {
    /// The slowest messages of every loop so far, in no order.
    ///
    /// `besides`: messages that were recorded off the loops, with the places of their groups.
    package func slowest(besides: [(group: Int, entry: SlowEntry)] = []) -> [SlowFinding] {
        let onLoops = self.loops.flatMap { key, loop in loop.slow.map { (group: key.group, entry: $0) } }
        return (onLoops + besides).compactMap { group, entry in
            let place = JoinedCatalog.Place(group: group, index: entry.metric.index)
            guard let index = self.joined.durations.firstIndex(where: { $0.contains(place) }) else { return nil }
            let metric = self.catalog.durations[index]
            return SlowFinding(group: group, metric: metric.name, labels: metric.labels, entry: entry)
        }
    }

    /// Connections by the version of TLS that they negotiated; nil if none had TLS.
    package var tlsVersions: [String: UInt64]? {
        var all: [String: UInt64] = [:]
        for loop in self.loops.values { all.merge(loop.tlsVersions, uniquingKeysWith: +) }
        return all.isEmpty ? nil : all
    }
}
