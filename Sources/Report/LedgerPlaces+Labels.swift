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

    /// The group whose books have the rows: the first one of a share group with members in several.
    func group(ofLabel label: Int) -> String? {
        self.receivers(ofLabel: label).map { Labels.firstGroup(of: $0.group) }
    }

    /// The same for a receiver.
    func group(ofReceiver receiver: UInt32) -> String? {
        self.receivers(of: receiver).map { Labels.firstGroup(of: self.receivers[$0].group) }
    }
}
