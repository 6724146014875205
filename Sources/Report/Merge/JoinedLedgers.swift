import Ledger
import Measurement

/// The ledgers that the segments of a run left to their merge, as one.
struct JoinedLedgers {
    private enum Joint {
        /// The segments left none.
        case none
        case balanced(Reconciliation)
        /// The ledger of one segment of several processes, for the merge of all segments.
        case kept(SegmentLedger)
        /// With publishers and receivers of other segments missing, nothing can be balanced.
        case unknown(_ reason: String)
    }

    private let joint: Joint
    private let places: LedgerPlaces
    /// The groups that it is of; `nil` stands for the single group of a run without groups.
    private let groups: [String?]
    private var receivers: Set<UInt32> = []
    /// Whether the stream exceeded its limits.
    private var streams: [StreamKey: Bool] = [:]
    /// How exactly the clocks go together by which deliveries were measured; `nil` where none went between segments.
    private let agreement: ClockAgreement?
    /// The names of the segments, once for each of their clocks.
    private let owners: [String]

    init(_ set: SegmentSet) {
        let segments = set.segments
        let ledgers = segments.compactMap(\.ledger)
        self.places = ledgers.first?.places ?? LedgerPlaces()
        self.groups = segments.first { $0.ledger != nil }?.record.pendingGroups ?? []
        self.owners = segments.flatMap { segment in segment.record.segment.clocks.map { _ in set.name(of: segment) } }
        self.agreement =
            ledgers.isEmpty || set.host != nil ? nil : ClockAgreement(segments.flatMap(\.record.segment.clocks))
        switch (set.host, set.lost.first) {
        case _ where ledgers.isEmpty: self.joint = .none
        case (.some, _): self.joint = .kept(SegmentLedger(joining: ledgers))
        case (nil, let lost?):
            self.joint = .unknown(
                set.lost.count == 1
                    ? "segment \(lost.index) is lost, so what was expected is not known"
                    : "\(set.lost.count) segments are lost, so what was expected is not known"
            )
        case (nil, nil): self.joint = .balanced(Reconciliation(joining: ledgers))
        }
        for ledger in ledgers {
            self.receivers.formUnion(ledger.receivers)
            for (key, stream) in zip(ledger.received.keys, ledger.received.streams) {
                self.streams[key, default: false] = self.streams[key] == true || stream.overflowed
            }
        }
    }

    private var delivery: Reconciliation? { if case .balanced(let delivery) = self.joint { delivery } else { nil } }

    /// The ledger of one segment of several processes.
    var kept: SegmentLedger? { if case .kept(let ledger) = self.joint { ledger } else { nil } }

    /// Whether the metric belongs to such a ledger: segments hold parts of it that cannot be added up.
    func isSettled(_ metric: Metric) -> Bool {
        Reconciliation.Row.metricNames.contains(metric.name)
            && self.groups.contains(metric.labels[Labels.group].map(Labels.firstGroup))
    }

    /// The result without an answer to what only the ledgers of all segments know: its count is not 0.
    func withoutUnknown(_ result: ThresholdResult) -> ThresholdResult {
        guard case .unknown = self.joint, let threshold = try? Threshold.parse(result.expression),
            Reconciliation.Row.metricNames.contains(threshold.name),
            threshold.labels[Labels.group].map({ self.groups.contains(Labels.firstGroup(of: $0)) }) ?? true
        else { return result }
        return ThresholdResult(expression: result.expression, ok: false, value: nil)
    }

    var metrics: [Metric] {
        self.delivery?.metrics(self.places, hasGroups: self.groups != [nil], hasGaps: false) ?? []
    }

    /// Deliveries that did not come.
    ///
    /// Without a known difference of the clocks nothing is known of their ages.
    var absent: [AbsentValues] {
        let error: Int64
        switch self.agreement {
        case .unknown: error = .max
        case .within(let seconds): error = Int64(bounded: seconds * 1e9)
        case nil: error = 0
        }
        return self.delivery?.absent(self.places, hasGroups: self.groups != [nil], clockError: error) ?? []
    }

    var problems: [Verdict.Reason] {
        let clocks: [Verdict.Reason]
        if case .unknown(let clock) = self.agreement {
            clocks = [
                Verdict.Reason(
                    code: "clock-offset",
                    text:
                        "how far the clock of \(self.owners[clock - 1]) is from those of others is not known, so neither "
                        + "is how long deliveries between them took, nor what was sent before a subscription came"
                )
            ]
        } else {
            clocks = []
        }
        return clocks + (self.delivery?.problems.map(\.reason) ?? [])
    }

    /// The clock error of deliveries between two segments, in seconds; `nil` if it is zero or unknown.
    var clockError: Double? {
        guard case .within(let seconds) = self.agreement, seconds > 0 else { return nil }
        return seconds
    }

    /// Adds the accuracy of the measurement to delivery metrics.
    func marking(_ metrics: [Metric]) -> [Metric] {
        guard let error = self.clockError else { return metrics }
        return metrics.map { metric in
            guard metric.isOf(.delivery), var reading = metric.duration else { return metric }
            var metric = metric
            reading.clockError = error
            metric.reading = .duration(reading)
            return metric
        }
    }

    /// The accuracy of the measurement in words.
    var notes: [Verdict.Reason] {
        self.clockError.map { error in
            [
                Verdict.Reason(
                    code: "clock-error",
                    text:
                        "deliveries between segments are known to ±\(Words.duration(error)), which is what the clocks "
                        + "of their hosts may differ by; what is below that is marked",
                    measured: error
                )
            ]
        } ?? []
    }

    /// The sums of the segments' books, with what of their columns is the ledger's.
    ///
    /// A group has books of each QoS that it received, even if its own segments saw nothing of it.
    func completing(_ books: [Books]) -> [Books] {
        guard let delivery = self.delivery else { return books.map(self.withoutDeliveries) }
        var all = books
        for group in self.groups {
            let levels = Set(delivery.rows(ofReceivers: group, in: self.places).map { Int($0.qos) })
            let known = all.filter { $0.group == group }.compactMap(\.qos)
            let end = all.lastIndex { $0.group == group }.map { $0 + 1 } ?? all.count
            let missing = levels.subtracting(known).sorted().map { level in
                var books = Books(qos: level)
                books.group = group
                return books
            }
            all.insert(contentsOf: missing, at: end)
        }
        return all.map { books in
            guard self.groups.contains(books.group), let qos = books.qos.flatMap({ UInt8(exactly: $0) }) else {
                return books
            }
            var books = books
            books.fill(delivery.row(ofReceivers: books.group, qos: qos, in: self.places))
            return books
        }
    }

    /// The books without what only the ledgers of all segments know.
    private func withoutDeliveries(_ books: Books) -> Books {
        guard self.groups.contains(books.group) else { return books }
        var books = books
        books.fill(nil)
        return books
    }

    /// Adds the ledgers' results to the record.
    func complete(_ record: inout RunRecord) {
        if case .none = self.joint { return }
        guard var groups = record.groups else {
            self.complete(&record.ledger, of: nil)
            return
        }
        for place in groups.indices where self.groups.contains(groups[place].name) {
            self.complete(&groups[place].ledger, of: groups[place].name)
        }
        record.groups = groups
        record.ledger = .joined(groups)
    }

    private func complete(_ ledger: inout LedgerRecord, of group: String?) {
        func belongs(_ receiver: UInt32) -> Bool {
            group.map { self.places.group(ofReceiver: receiver) == $0 } ?? true
        }
        if case .unknown(let reason) = self.joint {
            ledger = LedgerRecord(on: false, reason: reason)
            return
        }
        let streams = self.streams.filter { belongs($0.key.subscription) }
        ledger.subscriptions = self.receivers.count(where: belongs)
        ledger.streams = streams.count
        ledger.overflowed = streams.count { $0.value }
        guard let delivery = self.delivery else {
            ledger.pending = true
            return
        }
        (ledger.pending, ledger.reason) = (nil, nil)
        ledger.take(delivery, ofReceivers: group, in: self.places) { example in
            LedgerExample(
                example,
                publisher: self.places.name(ofPublisher: example.key.publisher, hasGroups: group != nil),
                subscriber: self.places.name(ofReceiver: example.key.subscription, hasGroups: group != nil)
            )
        }
    }
}

extension LedgerPlaces {
    /// `publisher 3 of ops, stream command`; publishers and receivers of a group are counted from 1.
    fileprivate func name(ofPublisher publisher: UInt32, hasGroups: Bool) -> String {
        guard let place = self.stream(of: publisher) else { return "publisher \(UInt64(publisher) + 1)" }
        let stream = self.streams[place]
        let number = "publisher \(publisher - stream.publishers.lowerBound + 1)"
        let group = hasGroups ? " of \(stream.group)" : ""
        return number + group + (stream.name.isEmpty ? "" : ", stream \(stream.name)")
    }

    fileprivate func name(ofReceiver receiver: UInt32, hasGroups: Bool) -> String {
        guard let place = self.receivers(of: receiver) else { return "subscriber \(UInt64(receiver) + 1)" }
        let receivers = self.receivers[place]
        return "subscriber \(receiver - receivers.numbers.lowerBound + 1)" + (hasGroups ? " of \(receivers.group)" : "")
    }

    /// The group whose books have a receiver's rows: the first one of a share group with members in several.
    fileprivate func group(ofReceiver receiver: UInt32) -> String? {
        self.receivers(of: receiver).map { Labels.firstGroup(of: self.receivers[$0].group) }
    }
}
