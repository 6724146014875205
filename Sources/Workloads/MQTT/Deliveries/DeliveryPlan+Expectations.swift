import Ledger
import MQTT
import MQTTCodec

// Facts about receivers that decide about an expectation.
extension DeliveryPlan {
    /// Whether the run follows messages one by one.
    package var isFollowed: Bool {
        let publishing = self.groups.filter(\.load.publishes)
        guard !self.places.receivers.isEmpty else { return false }
        return publishing.isEmpty
            ? self.groups.contains { $0.load.hasLedger }
            : publishing.contains { own in
                own.load.hasLedger
                    && own.load.streams.contains { stream in
                        self.groups.indices.contains { self.receives($0) && self.reads($0, stream) }
                    }
            }
    }

    /// Whether a server knows that a publisher's messages may be too large for a receiver (MQTT 5.0 §3.1.2.11.4).
    package func isTooLarge(_ publisher: UInt32, _ receiver: UInt32) -> Bool {
        guard let own = self.load(ofReceiver: receiver), own.version == .v5,
            let most = own.subscriberSession.maximumPacketSize,
            let place = self.places.stream(of: publisher)
        else { return false }
        let named = self.places.streams[place]
        let load = self.groups.first { $0.name == named.group && $0.load.publishes }?.load
        let stream = load?.streams.first { $0.name == named.name } ?? load?.stream
        return (stream?.payload.largest ?? 0) + Self.largestHead > most
    }

    /// Bytes of a packet before its payload: topic and properties, at most for what is checked here.
    static let largestHead = 1_024

    /// The load of the group that a receiver belongs to.
    func load(ofReceiver receiver: UInt32) -> MQTTLoad? {
        let place = self.numbers.firstIndex { own in
            own.receiver..<own.receiver + UInt32(own.clients.count) ~= receiver
        }
        return place.map { self.groups[$0].load }
    }

    /// The client id of a receiver, or the filter of a share group.
    package func name(ofReceiver receiver: UInt32) -> String {
        if let share = self.shares.first(where: { $0.value == receiver }) { return share.key.filter }
        guard let load = self.load(ofReceiver: receiver),
            let own = self.numbers.first(where: { $0.receiver..<$0.receiver + UInt32($0.clients.count) ~= receiver })
        else { return "subscriber \(receiver)" }
        let client = own.clients.lowerBound + Int(receiver - own.receiver)
        return String(decoding: load.values(of: client).clientID, as: UTF8.self)
    }

    /// Whether a client of a group has no other subscriptions than those of its share groups.
    func isOnlyMember(_ receiver: UInt32, of group: Int) -> Bool {
        let load = self.groups[group].load
        let own = self.numbers[group]
        guard own.receiver..<own.receiver + UInt32(own.clients.count) ~= receiver, !self.hasP2P else { return false }
        let patterns = self.patterns(of: load)
        return load.topology != .request && !patterns.isEmpty && patterns.allSatisfy { $0.hasPrefix("$share/") }
    }

    /// The targets of a receiver's clients; a share group may have several.
    func targets(of receiver: UInt32) -> Set<Int> {
        guard let load = self.groups.first?.load, let own = self.numbers.first else { return [] }
        let client = own.clients.lowerBound + Int(receiver) - Int(own.receiver)
        if own.clients.contains(client) { return [client % load.targets] }
        return Set(load.subscribingClients.map { $0 % load.targets })
    }
}
