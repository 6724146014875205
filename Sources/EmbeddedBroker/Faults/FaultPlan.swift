package import FaultInjection
package import NIOCore

/// The faults that a broker injects.
///
/// Drop, duplicate, reorder and delay act on outgoing PUBLISH packets, counted per subscription, in this order: drop,
/// reorder, duplicate, delay. They do not affect retained messages for a new subscription, `$SYS`, and acknowledgements
/// to publishers.
package struct FaultPlan: Hashable, Sendable {
    /// Parts per billion of the outgoing PUBLISH packets that are never sent.
    ///
    /// Drops are spread evenly and are not random: of any n messages of one subscription ⌊n·p⌋ or ⌈n·p⌉ are dropped.
    /// Every subscription starts at another phase, so the share also holds over many subscriptions with few messages.
    package var dropPerBillion: UInt64?
    /// Every Nth message is sent twice, the second copy as a message of its own.
    package var duplicateEvery: UInt64?
    /// Every Nth message is held until the next message of the same publisher was sent to the subscription.
    package var reorderEvery: UInt64?
    /// How long a message chosen by `delayEvery` is held; later ones overtake it.
    package var delay: TimeAmount?
    package var delayEvery: UInt64 = 1
    /// Counted from the first CONNECT.
    package var stall: FaultStall?
    /// Interval after which one connection is reset, round robin over all connections.
    package var disconnectEvery: TimeAmount?
    /// PUBLISH packets read per second, over all clients.
    package var maximumRate: Double?
    /// How many PUBLISH packets of ``maximumRate`` each one costs while reading is behind for over a second, as in a
    /// server whose clients ask again: it does not recover from an overload.
    package var retryStorm: UInt64?
    /// Rounds of arithmetic that each PUBLISH read costs, about 3 ns each: a slower build of a server.
    package var spin: UInt64?
    /// Bytes per write.
    package var fragment: ClosedRange<Int>?
    /// CONNACK code for every CONNECT; translated for a client of the other family.
    package var refuse: UInt8?

    package init() {}

    /// Whether an outgoing PUBLISH needs more than a copy.
    var touchesPublish: Bool { self.dropPerBillion != nil || self.duplicateEvery != nil || self.touchesOrder }

    /// Whether messages can overtake each other, so that their order must be tracked.
    var touchesOrder: Bool { self.reorderEvery != nil || self.delay != nil }
}

extension FaultForm<UInt8> {
    package static var connectRefusal: Self {
        Self("code", "is not a CONNACK code that refuses; write one like 0x87 (MQTT 5) or 5 (MQTT 3)") { text in
            let code = text.hasPrefix("0x") ? UInt8(text.dropFirst(2), radix: 16) : UInt8(text)
            return code.flatMap { ConnectRefusal.isKnown($0) ? $0 : nil }
        }
    }
}

/// CONNACK codes of refusals, translated between the two families.
///
/// Spec: MQTT 5.0 §3.2.2.2, MQTT 3.1.1 §3.2.2.3.
enum ConnectRefusal {
    private static let version5: Set<UInt8> = [
        0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B,
        0x9C, 0x9D, 0x9F,
    ]
    private static let pairs: [(v3: UInt8, v5: UInt8)] = [(1, 0x84), (2, 0x85), (3, 0x88), (4, 0x86), (5, 0x87)]

    static func isKnown(_ code: UInt8) -> Bool { (1...5).contains(code) || self.version5.contains(code) }

    /// The code for a client of MQTT 5, or of 3.1 and 3.1.1; codes unknown to 3.1.1 become 3, server unavailable.
    static func code(_ code: UInt8, version5: Bool) -> UInt8 {
        if version5 { return self.pairs.first { $0.v3 == code }?.v5 ?? code }
        return code < 0x80 ? code : self.pairs.first { $0.v5 == code }?.v3 ?? 3
    }
}
