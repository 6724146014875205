import Ledger
import Measurement

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

    /// The labels of the rows' metrics.
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

    /// The same for a receiver.
    func group(ofReceiver receiver: UInt32) -> String? {
        self.receivers(of: receiver).map { Labels.firstGroup(of: self.receivers[$0].group) }
    }
}
