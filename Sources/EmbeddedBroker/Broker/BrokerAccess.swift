package import MQTTCodec
package import SASL

/// Who may connect, and what each may do.
package struct BrokerAccess: Hashable, Sendable {
    /// One user.
    package struct User: Hashable, Sendable {
        package var password: [UInt8]
        /// Topics it may publish to; nil is all.
        package var publishes: [TopicFilter]?
        /// Topics it may read; nil is all.
        package var subscribes: [TopicFilter]?

        package init(password: [UInt8], publishes: [TopicFilter]? = nil, subscribes: [TopicFilter]? = nil) {
            self.password = password
            self.publishes = publishes
            self.subscribes = subscribes
        }
    }

    package var users: [String: User] = [:]
    package var allowsAnonymous = true
    /// The mechanism by which everybody has to prove who they are; nil: a password will do, and each mechanism.
    package var scram: SCRAMHash?
    /// Of SCRAM: what a client has to compute, too.
    package var iterations = 4_096

    package init() {}

    package init(users: [String: User], allowsAnonymous: Bool = false) {
        self.users = users
        self.allowsAnonymous = allowsAnonymous
    }

    /// What the user and password of a CONNECT are good for: a CONNACK code of MQTT 5, 0 to go on.
    func code(of connect: Connect) -> UInt8 {
        if self.scram != nil {
            // Before MQTT 5 there is no mechanism, and no code that names one.
            return (connect.version == .v5 ? ReasonCode.badAuthenticationMethod : .notAuthorized).rawValue
        }
        guard let name = connect.username else {
            return self.allowsAnonymous ? 0 : ReasonCode.notAuthorized.rawValue
        }
        // Without a table every name is as good as none.
        if self.users.isEmpty, self.allowsAnonymous { return 0 }
        guard let user = self.users[name], let password = connect.password,
            Self.isEqual(user.password, password)
        else { return ReasonCode.badUserNameOrPassword.rawValue }
        return 0
    }

    /// Without an early end, so that its time does not tell how much was right.
    private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}

extension BrokerAccess.User {
    var hasRules: Bool { self.publishes != nil || self.subscribes != nil }

    func mayPublish(to topic: UnsafeRawBufferPointer) -> Bool {
        self.publishes?.contains { $0.matches(topic: topic) } ?? true
    }

    func mayPublish(to topic: String) -> Bool { self.publishes?.contains { $0.matches(topic: topic) } ?? true }

    /// A filter is granted when it is one of the list, or a topic that one of them takes.
    func maySubscribe(to filter: TopicFilter) -> Bool {
        guard let allowed = self.subscribes else { return true }
        if filter.hasWildcard { return allowed.contains { $0.filter.utf8.elementsEqual(filter.filter.utf8) } }
        return allowed.contains { $0.matches(topic: filter.filter) }
    }
}
