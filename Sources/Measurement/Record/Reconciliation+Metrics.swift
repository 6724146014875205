package import Ledger

extension Reconciliation {
    /// The counts that are metrics: one row for each group of receivers, group of publishers, stream and QoS.
    ///
    /// No row is the sum of others, so readers add up.
    ///
    /// - Parameters:
    ///   - places: the names of groups and streams, by the label numbers of the rows.
    ///   - hasGroups: metrics carry the receivers' group.
    ///   - hasFrom: metrics carry the publishers' group; `nil`: if any row is of two groups.
    ///   - hasGaps: whether gaps are of interest; only where it is unknown what was expected.
    /// - Returns: the metrics, sorted by their labels.
    package func metrics(_ places: LedgerPlaces, hasGroups: Bool, hasFrom: Bool? = nil, hasGaps: Bool) -> [Metric] {
        let hasFrom = hasFrom ?? self.crossesGroups(places)
        var rows: [Labels: Row] = [:]
        for row in self.rows {
            let labels = places.labels(row.label, qos: row.qos, hasGroup: hasGroups, hasFrom: hasFrom)
            rows[labels] = rows[labels].map { $0.adding(row) } ?? row
        }
        return rows.sorted { $0.key < $1.key }.flatMap { labels, row in
            row.metricsByCause(labels) + (hasGaps ? row.gapMetrics(labels) : [])
        }
    }

    /// The deliveries of those rows that did not come: lost ones failed, and the others are outstanding.
    ///
    /// `clockError`: by which the clocks of several hosts may differ, in nanoseconds.
    package func absent(
        _ places: LedgerPlaces,
        hasGroups: Bool,
        hasFrom: Bool? = nil,
        clockError: Int64 = 0
    ) -> [AbsentValues] {
        let hasFrom = hasFrom ?? self.crossesGroups(places)
        return self.absent(places.stages, clockError: clockError) {
            places.labels($0, qos: $1, hasGroup: hasGroups, hasFrom: hasFrom)
        }
    }

    /// The same with labels of another kind.
    ///
    /// No message was due later than the last one of its publisher and stage, so no age is too high.
    package func absent(
        _ stages: [LedgerPlaces.Stage],
        clockError: Int64 = 0,
        labels: (_ label: Int, _ qos: UInt8) -> Labels
    ) -> [AbsentValues] {
        guard let ended = self.ended else { return [] }
        var all: [[Int]: AbsentValues] = [:]
        for delivery in self.absences {
            let key = [delivery.label, Int(delivery.qos), delivery.lane]
            let place = delivery.lane - MetricLane.stage(0)
            let stage = stages.indices.contains(place) ? stages[place] : nil
            let isMeasured = stage?.isMeasured ?? (delivery.lane == MetricLane.measured)
            let labels = labels(delivery.label, delivery.qos)
            let age = max(0, ended - min(ended, delivery.last) - clockError)
            var own = all[key] ?? AbsentValues(labels: labels, stage: stage?.name, isMeasured: isMeasured)
            own.values.record(age, count: delivery.lost, as: .failed)
            own.values.record(age, count: delivery.outstanding, as: .outstanding)
            all[key] = own
        }
        return all.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    private func crossesGroups(_ places: LedgerPlaces) -> Bool {
        self.rows.contains { row in
            guard let receivers = places.receivers(ofLabel: row.label), let stream = places.stream(ofLabel: row.label)
            else { return false }
            return receivers.group != stream.group
        }
    }

    /// The sum of the rows of one group of receivers at one QoS of the publishers; `nil` if there are none.
    ///
    /// A share group with members in several groups belongs to the first one. `group`: `nil` in a run without groups.
    package func row(ofReceivers group: String?, qos: UInt8, in places: LedgerPlaces) -> Row? {
        self.rows(ofReceivers: group, in: places).filter { $0.qos == qos }.reduce(nil) { sum, row in
            sum?.adding(row) ?? row
        }
    }

    /// The rows of one group of receivers.
    package func rows(ofReceivers group: String?, in places: LedgerPlaces) -> [Row] {
        guard let group else { return self.rows }
        return self.rows.filter { places.group(ofLabel: $0.label) == group }
    }
}

extension Reconciliation.Row {
    /// The counts that are metrics, without causes; `labels`: `nil` for the row's QoS.
    package func metrics(labels: Labels? = nil) -> [Metric] {
        let counts: [(MetricDefinition, UInt64?)] = [
            (.deliveryExpected, self.expected), (.deliveryLost, self.lost),
            (.deliveryOutstanding, self.outstanding), (.deliveryDuplicated, self.duplicated),
            (.deliveryReordered, self.reordered),
        ]
        return counts.compactMap { kind, value in value.map { self.metric(kind, $0, labels: labels) } }
    }

    package func metric(_ kind: MetricDefinition, _ value: UInt64, labels: Labels? = nil) -> Metric {
        Metric(
            kind,
            labels: labels ?? ["qos": "\(self.qos)"],
            reading: .counter(CounterReading(value: Double(value), rate: nil))
        )
    }

    /// A count without a cause is one row with the value 0.
    fileprivate func metricsByCause(_ labels: Labels) -> [Metric] {
        func counters(_ kind: MetricDefinition, _ label: String, _ parts: [(String, UInt64)]) -> [Metric] {
            let known = parts.filter { $0.1 > 0 }
            guard !known.isEmpty else { return [self.metric(kind, 0, labels: labels)] }
            return known.map { self.metric(kind, $1, labels: labels.adding(label, $0)) }
        }
        var metrics: [Metric] = []
        if let expected = self.expected { metrics.append(self.metric(.deliveryExpected, expected, labels: labels)) }
        metrics.append(self.metric(.deliveryReceived, self.received, labels: labels))
        if self.lost != nil {
            let causes = LossCause.allCases.map { ($0.rawValue, self.lostBy[$0] ?? 0) }
            metrics += counters(.deliveryLost, Labels.cause, causes)
        }
        if let outstanding = self.outstanding {
            metrics.append(self.metric(.deliveryOutstanding, outstanding, labels: labels))
        }
        if let missing = self.missing { metrics.append(self.metric(.deliveryMissing, missing, labels: labels)) }
        let others = self.duplicated - min(self.permitted, self.duplicated)
        metrics += counters(
            .deliveryDuplicated,
            Labels.permitted,
            zip(Self.permittedValues, [others, self.permitted]).map { ($0, $1) }
        )
        if self.overlapped > 0 { metrics.append(self.metric(.deliveryOverlap, self.overlapped, labels: labels)) }
        metrics.append(self.metric(.deliveryReordered, self.reordered, labels: labels))
        return metrics
    }

    fileprivate func gapMetrics(_ labels: Labels) -> [Metric] {
        self.expected == nil ? [self.metric(.deliveryGaps, self.gaps, labels: labels)] : []
    }

    /// The values of the label ``Labels/permitted``.
    fileprivate static let permittedValues = ["no", "yes"]
    /// All that a ledger may have.
    package static let metricNames = Set(
        (MetricDefinition.all(.ledger).filter { !$0.isRare } + [.deliveryGaps]).map(\.name)
    )

    /// Both as one row with this one's label and QoS.
    fileprivate func adding(_ other: Reconciliation.Row) -> Reconciliation.Row {
        func sum(_ one: UInt64?, _ two: UInt64?) -> UInt64? { one.flatMap { one in two.map { one + $0 } } }
        var both = self
        both.expected = sum(self.expected, other.expected)
        both.received += other.received
        both.lost = sum(self.lost, other.lost)
        both.outstanding = sum(self.outstanding, other.outstanding)
        both.lostBy.merge(other.lostBy, uniquingKeysWith: +)
        both.missing = sum(self.missing, other.missing)
        both.duplicated += other.duplicated
        both.permitted += other.permitted
        both.overlapped += other.overlapped
        both.reordered += other.reordered
        both.gaps += other.gaps
        return both
    }
}

extension MetricCatalog {
    /// Adds the metrics of deliveries with these labels, for thresholds.
    ///
    /// `publishersKnown`: whether the run knows what was expected.
    package mutating func addDeliveries(_ labels: Labels, publishersKnown: Bool) {
        typealias Row = Reconciliation.Row
        let settled: [MetricDefinition] =
            publishersKnown ? [.deliveryExpected, .deliveryOutstanding, .deliveryMissing] : [.deliveryGaps]
        for kind in settled + [.deliveryReceived, .deliveryOverlap, .deliveryReordered] {
            _ = self.counter(kind, labels)
        }
        for cause in publishersKnown ? LossCause.allCases : [] {
            _ = self.counter(.deliveryLost, labels.adding(Labels.cause, cause.rawValue))
        }
        for permitted in Row.permittedValues {
            _ = self.counter(.deliveryDuplicated, labels.adding(Labels.permitted, permitted))
        }
    }
}

extension LedgerPlaces {
    /// The receivers of the rows with this label number.
    func receivers(ofLabel label: Int) -> Receivers? {
        let place = label / max(1, self.streams.count)
        return self.receivers.indices.contains(place) ? self.receivers[place] : nil
    }

    /// The publishers of the rows with this label number.
    func stream(ofLabel label: Int) -> Stream? {
        guard label >= 0, !self.streams.isEmpty, !self.receivers.isEmpty else { return nil }
        return self.streams[label % self.streams.count]
    }

    func labels(_ label: Int, qos: UInt8, hasGroup: Bool, hasFrom: Bool) -> Labels {
        var labels: Labels = ["qos": "\(qos)"]
        if hasGroup, let receivers = self.receivers(ofLabel: label) {
            labels = labels.adding(Labels.group, receivers.group)
        }
        guard let stream = self.stream(ofLabel: label) else { return labels }
        if hasFrom { labels = labels.adding(Labels.from, stream.group) }
        return stream.name.isEmpty ? labels : labels.adding(Labels.stream, stream.name)
    }

    /// The group whose books have the rows: the first one of a share group with members in several.
    func group(ofLabel label: Int) -> String? {
        self.receivers(ofLabel: label).map { Labels.firstGroup(of: $0.group) }
    }
}

extension Books {
    /// Takes the deliveries of a ledger; without one they are unknown.
    package mutating func fill(_ row: Reconciliation.Row?) {
        self.expected = row?.expected
        self.received = row?.received
        self.lost = row?.lost
        self.deliveryOutstanding = row?.outstanding
        self.duplicated = row?.duplicated
    }
}
