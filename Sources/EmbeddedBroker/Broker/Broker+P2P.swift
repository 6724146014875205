import MQTTCodec

// Messages to one client, as Alibaba Cloud's P2P: a publish to `ROOT/p2p/CLIENTID` reaches that client alone.
//
// The client needs no subscription for it. The broker makes one for each session, at QoS 1, which is in no tree.
extension Broker {
    /// The key of a session's own subscription; a client's filter has at least one character [MQTT-4.7.3-1].
    private static let ownKey: [UInt8] = []

    /// The client id that a topic addresses; nil for a topic of the usual kind.
    func addressee(of topic: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>? {
        guard let prefix = self.p2pPrefixes.first(where: { topic.starts(with: $0) }) else { return nil }
        let id = topic[prefix.count...]
        return id.isEmpty || id.contains(TopicLevels.slash) ? nil : id
    }

    /// The own subscription of a client, if there is one.
    func ownSubscription(of client: Slice<UnsafeRawBufferPointer>) -> Int32? {
        self.sessionsByKey[Array(client)].flatMap { self.sessions[Int($0)].subscriptions[Self.ownKey] }
    }

    /// The reason code for a PUBLISH that is accepted.
    ///
    /// A message to a client without a session has no matching subscriber (§3.4.2.1). Other topics are not searched
    /// for one before the answer.
    func reason(toAccept topic: UnsafeRawBufferPointer) -> ReasonCode {
        guard let client = self.addressee(of: topic) else { return .success }
        guard let own = self.ownSubscription(of: client), self.subscriptions[Int(own)].isLive else {
            return .noMatchingSubscribers
        }
        return .success
    }

    /// Makes the session's own subscription, or wakes the one that it lost with its connection.
    mutating func subscribeOwn(_ session: Int32) {
        guard !self.p2pPrefixes.isEmpty else { return }
        let (index, isNew) = self.place([], key: Self.ownKey, for: session)
        self.subscriptions[Int(index)].qos = min(1, self.configuration.limits.maximumQoS)
        if isNew { self.version += 1 }
    }
}
