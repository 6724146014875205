import NIOCore

/// Clients of a closed loop that think before they send again: first come, first served, for all think equally long.
struct Thinkers {
    private var queue: [(place: Int32, until: NIODeadline)] = []
    private var head = 0
    private var isThinking: [Bool]

    init(clients: Int) { self.isThinking = Array(repeating: false, count: clients) }

    /// When the first of them has thought enough.
    var next: NIODeadline? { self.head < self.queue.count ? self.queue[self.head].until : nil }

    /// A client has at most one think time in progress.
    mutating func add(_ place: Int, until: NIODeadline) {
        guard !self.isThinking[place] else { return }
        self.isThinking[place] = true
        self.queue.append((Int32(truncatingIfNeeded: place), until))
    }

    /// The next one that has thought enough by `now`, and since when.
    mutating func takeNext(_ now: NIODeadline) -> (place: Int, since: NIODeadline)? {
        guard let next = self.next, next <= now else { return nil }
        let place = Int(self.queue[self.head].place)
        self.isThinking[place] = false
        self.head += 1
        if self.head == self.queue.count {
            self.queue.removeAll(keepingCapacity: true)
            self.head = 0
        } else if self.head > 4_096, self.head > self.queue.count / 2 {
            self.queue.removeFirst(self.head)
            self.head = 0
        }
        return (place, next)
    }
}

// Think time between an answer and the next operation.
extension Shard {
    /// Starts the client's think time at `now`, if the plan has one.
    ///
    /// - Returns: whether the client thinks; else it may send at once.
    func thinks(_ place: Int, from now: NIODeadline) -> Bool {
        guard self.thinkers != nil else { return false }
        self.thinkers?.add(place, until: now + self.plan.think)
        if let next = self.thinkers?.next { self.wake(at: next) }
        return true
    }

    /// At the start they are spread over one think time, as they would be later on.
    func startThinking() -> Bool {
        guard self.thinkers != nil else { return false }
        for place in 0..<self.clients.operators where self.paces[place].isUp {
            let share = Double(place) / Double(self.clients.operators)
            let wait = Int64(Double(self.plan.think.nanoseconds) * share)
            self.thinkers?.add(place, until: self.origin + .nanoseconds(wait))
        }
        if let next = self.thinkers?.next { self.wake(at: next) }
        return true
    }

    /// Makes every client ready whose think time has passed.
    ///
    /// - Returns: when the next think time ends.
    func sendWhatWasThought(_ now: NIODeadline) -> NIODeadline? {
        while let (place, since) = self.thinkers?.takeNext(now) {
            guard self.paces[place].isUp else { continue }
            self.paces[place].ableSince = max(since, self.origin)
            self.markReady(place)
        }
        return self.thinkers?.next
    }
}
