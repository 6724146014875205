import Measurement

/// Spans of load in which nothing was answered or delivered although messages waited.
///
/// A lane stalls in two ways. Either whole intervals pass without a result; or a span too short for that delays most
/// messages, and the interval after it is as fast as before. Both need evidence that a result was due, so that a low
/// rate is no stall, and both are the generator's own if an event loop woke up late at that time.
struct FindingStall {
    var lanes: [FindingLane.Kind]
    var groups: Set<String?>
    var start: Double
    var seconds: Double
    var place: Int
    var waiting: Double
    /// Whether an event loop of the generator stood still.
    var isOwn: Bool

    private enum Limit {
        /// Shorter silences end within an interval.
        static let silence = 0.9
        /// In seconds: shorter delays are latency.
        static let delay = 0.5
        /// A longer one has a whole interval without a result, or all but a few of its first results.
        static let longestDelay = 3.0
        /// A delay this many times the usual response time is none of its kind.
        static let typical = 20.0
        /// Messages that are due in a silence; fewer may all be due at its end.
        static let due = 3.0
        /// Results of an interval that say how fast it was.
        static let results = 10.0
        /// The share of clients that are connected.
        static let clients = 0.5
        /// The share of a delay that an event loop's own lag explains.
        static let ownShare = 0.3
    }

    /// In the order of time.
    static func all(_ lanes: [FindingLane], _ intervals: FindingIntervals, disconnects: [Double]) -> [FindingStall] {
        let lag = intervals.highest(intervals.columns(.loopLag), \.max)
        var stalls: [FindingStall] = []
        for lane in lanes {
            let search = Search(lane: lane, intervals: intervals, disconnects: disconnects, lag: lag)
            var own = search.silences
            own += search.delays.filter { delay in !own.contains { $0.overlaps(delay) } }
            stalls += own
        }
        return stalls.sorted { $0.start < $1.start }.reduce(into: []) { merged, stall in
            guard let last = merged.last, last.overlaps(stall), last.isOwn == stall.isOwn else {
                return merged.append(stall)
            }
            merged[merged.count - 1] = last.joined(with: stall)
        }
    }

    private func overlaps(_ other: FindingStall) -> Bool {
        self.start < other.start + other.seconds && other.start < self.start + self.seconds
    }

    private func joined(with other: FindingStall) -> FindingStall {
        var joined = self
        joined.lanes += other.lanes.filter { !self.lanes.contains($0) }
        joined.groups.formUnion(other.groups)
        joined.start = Swift.min(self.start, other.start)
        joined.seconds = Swift.max(self.start + self.seconds, other.start + other.seconds) - joined.start
        joined.waiting = Swift.max(self.waiting, other.waiting)
        return joined
    }

    private struct Search {
        let lane: FindingLane
        let intervals: FindingIntervals
        let disconnects: [Double]
        let lag: [Double?]

        /// Whole intervals without a result.
        var silences: [FindingStall] {
            let spans = self.intervals.spans { place in
                self.intervals.all[place].isLoad && self.lane.done[place] == 0 && self.isConnected(place)
            }
            return spans.compactMap { span in
                let length = self.intervals.length(span)
                guard length >= Limit.silence, (self.lane.typical ?? 0) * 3 < length else { return nil }
                guard self.lane.done[..<span.lowerBound].contains(where: { $0 > 0 }), self.isDue(in: span) else {
                    return nil
                }
                // The first result after it waited since before it.
                let after = span.upperBound < self.lane.longest.count ? self.lane.longest[span.upperBound] : nil
                let seconds = after.map { $0 > length && $0 < length + 2 ? $0 : length } ?? length
                return self.stall(span, start: self.begin(before: span.lowerBound), seconds: seconds)
            }
        }

        private func isDue(in span: Range<Int>) -> Bool {
            let before = span.lowerBound > 0 ? span.lowerBound - 1 : 0
            // Messages on a connection that was just lost say nothing of the other connections.
            let waited = self.disconnects[before] == 0 && self.lane.waiting[before] > 0
            return waited || span.reduce(0) { $0 + self.lane.sent[$1] } >= Limit.due
        }

        private func isConnected(_ place: Int) -> Bool {
            guard self.disconnects[place] == 0 else { return false }
            guard let clients = self.lane.clients, let most = clients.max() else { return true }
            return clients[place] > 0 && clients[place] >= most * Limit.clients
        }

        /// Delays of most messages for less than three intervals, with the usual response times after them.
        var delays: [FindingStall] {
            guard let typical = self.lane.typical, typical > 0 else { return [] }
            let places = self.intervals.all.indices.filter { self.isDelay($0, typical) }
            return places.compactMap { place in
                guard let longest = self.lane.longest[place] else { return nil }
                // Each interval before it has fewer results than usual if it began there or earlier.
                var first = place
                while first > 0, self.missing(first - 1) > 0, place - first < 3 { first -= 1 }
                let within = Swift.max(self.intervals.all[place].end - longest, self.intervals.all[place].start)
                let begin = first < place ? self.begin(before: first + 1) : within
                return self.stall(first..<place + 1, start: begin, seconds: longest)
            }
        }

        private func isDelay(_ place: Int, _ typical: Double) -> Bool {
            let interval = self.intervals.all[place]
            guard interval.isLoad, let longest = self.lane.longest[place], let p99 = self.lane.p99[place],
                let p50 = self.lane.p50[place], self.lane.done[place] >= Limit.results
            else { return false }
            guard longest >= Limit.delay, longest < Limit.longestDelay, longest >= typical * Limit.typical,
                p99 >= longest / 2
            else { return false }
            // It begins and ends in the usual response times: a server that is slow for longer does not stall.
            // Few results say nothing of it: a stall that begins with its interval leaves some late ones.
            let before = self.lane.done[..<place].lastIndex { $0 >= Limit.results }
            guard before.flatMap({ self.lane.p50[$0] }).map({ $0 <= typical * 5 }) ?? true else { return false }
            let isBroad = p50 >= typical * 5 || place > 0 && self.missing(place - 1) > 0
            let next = self.intervals.all.indices.filter {
                $0 > place && $0 <= place + 2 && self.intervals.all[$0].isLoad
            }
            return isBroad && next.contains { (self.lane.p50[$0] ?? .infinity) <= typical * 5 }
        }

        /// How many results an interval has less than the others of its stage have; 0 if that may be chance.
        private func missing(_ place: Int) -> Double {
            let interval = self.intervals.all[place]
            guard interval.isLoad, interval.length > 0 else { return 0 }
            let rates = self.intervals.all.indices.filter {
                self.intervals.all[$0].isLoad && self.intervals.all[$0].stage == interval.stage
                    && self.intervals.all[$0].length > 0
            }.map { self.lane.done[$0] / self.intervals.all[$0].length }
            let expected = (rates.median ?? 0) * interval.length
            let missing = expected - self.lane.done[place]
            return missing > expected / 10 && missing > 4 * expected.squareRoot() ? missing : 0
        }

        /// The time from which an interval's missing results are missing, or its end.
        private func begin(before place: Int) -> Double {
            guard place > 0 else { return self.intervals.all[place].start }
            let before = self.intervals.all[place - 1]
            let missing = self.missing(place - 1)
            guard missing > 0 else { return self.intervals.all[place].start }
            let share = missing / (missing + self.lane.done[place - 1])
            return before.end - before.length * share
        }

        private func stall(_ span: Range<Int>, start: Double, seconds: Double) -> FindingStall {
            let near = Swift.max(0, span.lowerBound - 1)..<Swift.min(self.lag.count, span.upperBound + 1)
            let lag = near.compactMap { self.lag[$0] }.max() ?? 0
            return FindingStall(
                lanes: [self.lane.kind],
                groups: [self.lane.group],
                start: start,
                seconds: seconds,
                place: self.intervals.all.lastIndex { $0.start <= start } ?? span.lowerBound,
                waiting: span.map { self.lane.waiting[$0] }.max() ?? 0,
                isOwn: lag >= seconds * Limit.ownShare
            )
        }
    }
}
