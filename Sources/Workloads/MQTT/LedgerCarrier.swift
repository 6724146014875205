import Ledger
import MQTTCodec

/// Where a message carries the ledger's header.
package enum LedgerCarrier: Hashable, Sendable {
    /// In the first 32 bytes of the payload.
    case front
    /// In the first 16 bytes of the payload; in the first 20 where a publisher has several audiences.
    case short
    /// In place of `%{ledger}` in the text.
    case text
    /// In a user property (MQTT 5.0 §3.3.2.3.7): the payload stays as it is.
    case property

    /// The name of the user property.
    package static let propertyName = "clamor"

    /// The carrier of payloads of at least so many bytes; `nil` if none has room.
    package static func front(atLeast size: Int, isAddressed: Bool) -> Self? {
        if size >= PayloadHeader.size { return .front }
        return size >= (isAddressed ? ShortHeader.addressedSize : ShortHeader.size) ? .short : nil
    }
}

/// Finds the header in the messages of a run; belongs to a shard.
struct HeaderReader {
    /// Where messages of the run may have it, besides the first 32 bytes.
    private let carriers: Set<LedgerCarrier>
    /// The offset of the last header in a text.
    private var offset = 0
    /// For `sub` alone.
    private var finder = ShortRunFinder()

    init(_ plan: DeliveryPlan) {
        let streams = plan.groups.flatMap { $0.load.publishes ? $0.load.streams : [] }
        self.carriers = plan.hasPublishers ? Set(streams.compactMap(\.carrier)) : [.short, .text, .property]
    }

    /// Messages without a header, in a run where user properties have it.
    private(set) var bare: UInt64 = 0

    /// The header of a message; `run` is `nil` as long as `sub` alone knows no run.
    mutating func header(of view: PublishView, run: UInt32?, now: Int64) -> PayloadHeader? {
        if let header = PayloadHeader.read(view.payload) { return header }
        guard !self.carriers.isDisjoint(with: [.short, .text, .property]) else { return nil }
        return self.shortHeader(of: view, run: run, now: now)
    }

    @inline(never)
    private mutating func shortHeader(of view: PublishView, run: UInt32?, now: Int64) -> PayloadHeader? {
        func read(_ bytes: UnsafeRawBufferPointer, _ finder: inout ShortRunFinder) -> PayloadHeader? {
            guard let run = run ?? finder.run(bytes) else { return nil }
            return ShortHeader.read(bytes, run: run, now: now)
        }
        var finder = self.finder
        defer { self.finder = finder }
        if self.carriers.contains(.short), let header = read(view.payload, &finder) { return header }
        if self.carriers.contains(.text) {
            let header = HeaderText.find(in: view.payload, at: &self.offset) { read($0, &finder) }
            if let header { return header }
        }
        guard self.carriers.contains(.property) else { return nil }
        guard let text = view.userProperty(LedgerCarrier.propertyName) else {
            self.bare += 1
            return nil
        }
        return HeaderText.decode(text) { read($0, &finder) }
    }
}
