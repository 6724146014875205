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

    /// The bytes that a payload needs for its header.
    package static func leastSize(isAddressed: Bool) -> Int {
        isAddressed ? ShortHeader.addressedSize : ShortHeader.size
    }

    /// The carrier of payloads of at least so many bytes; `nil` if none has room.
    package static func front(atLeast size: Int, isAddressed: Bool) -> Self? {
        if size >= PayloadHeader.size { return .front }
        return size >= self.leastSize(isAddressed: isAddressed) ? .short : nil
    }
}

/// Finds the header in the messages of a run; belongs to a shard.
struct HeaderReader {
    // Where messages of the run may have it, besides the first 32 bytes.
    private let isShort: Bool
    private let isText: Bool
    private let isProperty: Bool
    /// The topics of the streams that have it in a user property; empty for `sub` alone.
    private let propertyTopics: [TopicFilter]
    /// The offset of the last header in a text.
    private var offset = 0
    /// For `sub` alone, one for each place: their bytes alternate.
    private var finders = (ShortRunFinder(), ShortRunFinder(), ShortRunFinder())

    init(_ plan: DeliveryPlan) {
        let streams = plan.groups.flatMap { $0.load.publishes ? $0.load.streams : [] }
        func has(_ carrier: LedgerCarrier) -> Bool {
            !plan.hasPublishers || streams.contains { $0.carrier == carrier }
        }
        (self.isShort, self.isText, self.isProperty) = (has(.short), has(.text), has(.property))
        self.propertyTopics = streams.filter { $0.carrier == .property }.compactMap {
            try? TopicFilter(validating: $0.filterOfAllClients)
        }
    }

    /// Whether a message without a header has lost a user property on its way.
    func isStripped(_ view: PublishView) -> Bool { self.propertyTopics.contains { $0.matches(topic: view.topic) } }

    /// The header of a message; `run` is `nil` as long as `sub` alone knows no run.
    mutating func header(of view: PublishView, run: UInt32?, now: Int64) -> PayloadHeader? {
        if let header = PayloadHeader.read(view.payload) { return header }
        if self.isShort, let short = ShortHeader(view.payload),
            let run = run ?? self.finders.0.run(short, now: now), let header = short.header(run: run, now: now)
        {
            return header
        }
        guard self.isText || self.isProperty else { return nil }
        return self.textHeader(of: view, run: run, now: now)
    }

    @inline(never)
    private mutating func textHeader(of view: PublishView, run: UInt32?, now: Int64) -> PayloadHeader? {
        if self.isText {
            var offset = self.offset
            defer { self.offset = offset }
            let header = ShortHeader.find(in: view.payload, at: &offset) { short in
                (run ?? self.finders.1.run(short, now: now)).flatMap { short.header(run: $0, now: now) }
            }
            if let header { return header }
        }
        guard self.isProperty, let text = view.lastUserProperty(LedgerCarrier.propertyName) else { return nil }
        var front = 0
        return ShortHeader.find(in: text, at: &front) { short in
            (run ?? self.finders.2.run(short, now: now)).flatMap { short.header(run: $0, now: now) }
        }
    }
}
