/// Gives threads of one name in one server a number: `worker`, `worker 2`, `worker 3`.
struct ThreadNames {
    /// Labels of a server over its life, most of them of threads that are never busy.
    private static let most = 1_024

    private struct Key: Hashable {
        var server: Int
        var name: String
    }

    private var counts: [Key: Int] = [:]
    private var labels: [Int: Set<String>] = [:]

    /// A label that no other thread has, now or earlier; `nil` if the server has had too many.
    mutating func label(_ text: String, server: Int) -> String? {
        guard self.labels[server, default: []].count < Self.most else { return nil }
        let name = LabelText.safe(text)
        let key = Key(server: server, name: name)
        var label = name
        repeat {
            let count = self.counts[key, default: 0] + 1
            self.counts[key] = count
            label = count == 1 ? name : "\(name) \(count)"
        } while label == ThreadLabels.other || !self.labels[server, default: []].insert(label).inserted
        return label
    }
}

/// Chooses the threads of a server that have metrics of their own.
struct ThreadLabels {
    /// The label of all threads without one of their own.
    static let other = "other"
    /// A thread that never used this share of a core in a look has no metric of its own.
    static let busy = 0.01
    private static let mostAtOnce = 16
    /// The labels of a server over its life: each is a series of the result.
    private static let most = 64

    private var given: Set<String> = []

    /// The shares of the busiest threads, by the CPU that they used since the watch began.
    ///
    /// Once the server has had all its labels, the threads without one are summed as ``other``.
    mutating func shares(of threads: [WatchedThread], _ span: Int64) -> [(label: String, share: Double)] {
        let busy = threads.filter(\.isBusy).compactMap { thread in
            thread.label.map { (label: $0, used: thread.used, share: thread.share(span)) }
        }.sorted { ($1.used, $0.label) < ($0.used, $1.label) }
        var shares: [(label: String, share: Double)] = []
        for (label, _, share) in busy where shares.count < Self.mostAtOnce {
            guard self.given.contains(label) || self.given.count < Self.most else { continue }
            self.given.insert(label)
            shares.append((label, share))
        }
        let isFull = self.given.count == Self.most
        let others = threads.filter { thread in thread.label.map { isFull && !self.given.contains($0) } ?? true }
        if isFull || !others.isEmpty { shares.append((Self.other, others.reduce(0) { $0 + $1.share(span) })) }
        return shares
    }
}
