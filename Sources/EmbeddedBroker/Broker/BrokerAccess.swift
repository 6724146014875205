package import MQTTCodec
package import NIOCore
package import SASL

/// The users that may connect, and their permissions.
package struct BrokerAccess: Hashable, Sendable {
    /// One user.
    ///
    /// `%c` in a filter stands for the client id, as in mosquitto's patterns.
    package struct User: Hashable, Sendable {
        package var password: [UInt8]
        /// Topics that the user may publish to; nil means all.
        package var publishes: [TopicFilter]?
        /// Topics that the user may subscribe to; nil means all.
        package var subscribes: [TopicFilter]?

        package init(password: [UInt8], publishes: [TopicFilter]? = nil, subscribes: [TopicFilter]? = nil) {
            self.password = password
            self.publishes = publishes
            self.subscribes = subscribes
        }
    }

    package var users: [String: User] = [:]
    package var allowsAnonymous = true
    /// The SCRAM mechanism required of every user; nil: passwords and every mechanism are accepted.
    package var scram: SCRAMHash?
    /// SCRAM iterations; each login costs the client as many.
    package var iterations = 4_096
    /// How late wrong credentials are answered; nil: at once.
    ///
    /// Others are checked meanwhile, except from an address that has ``mostGuesses`` such answers due.
    package var refusalDelay: TimeAmount?
    static let mostGuesses = 8

    package init() {}

    package init(users: [String: User], allowsAnonymous: Bool = false) {
        self.users = users
        self.allowsAnonymous = allowsAnonymous
    }

    /// The CONNACK code of MQTT 5 for the CONNECT's user and password; 0 to continue.
    func code(of connect: Connect) -> UInt8 {
        if self.scram != nil {
            // Before MQTT 5 there is neither a mechanism nor a code for it.
            return (connect.version == .v5 ? ReasonCode.badAuthenticationMethod : .notAuthorized).rawValue
        }
        guard let name = connect.username else { return self.allowsAnonymous ? 0 : ReasonCode.notAuthorized.rawValue }
        // Without a user table, names do not matter.
        if self.users.isEmpty, self.allowsAnonymous { return 0 }
        guard let user = self.users[name], let password = connect.password,
            Self.isEqual(user.password, password)
        else { return ReasonCode.badUserNameOrPassword.rawValue }
        return 0
    }

    /// Compares in constant time, so that the duration does not reveal how much was right.
    private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}

extension BrokerAccess.User {
    /// The rights of one client, with its id for each `%c`; an id that is no single level gets none of those.
    func rights(of clientID: String) -> Self {
        let isLevel = !clientID.utf8.contains { "+#/".utf8.contains($0) }
        func own(_ filters: [TopicFilter]?) -> [TopicFilter]? {
            filters?.compactMap { filter -> TopicFilter? in
                guard filter.filter.contains("%c") else { return filter }
                guard isLevel else { return nil }
                return try? TopicFilter(validating: filter.filter.replacing("%c", with: clientID))
            }
        }
        return Self(password: [], publishes: own(self.publishes), subscribes: own(self.subscribes))
    }

    var hasRules: Bool { self.publishes != nil || self.subscribes != nil }

    func mayPublish(to topic: UnsafeRawBufferPointer) -> Bool {
        self.publishes?.contains { $0.matches(topic: topic) } ?? true
    }

    func mayPublish(to topic: String) -> Bool { self.publishes?.contains { $0.matches(topic: topic) } ?? true }

    /// A filter is granted if the list has it, or if it is a topic that a listed filter matches.
    func maySubscribe(to filter: TopicFilter) -> Bool {
        guard let allowed = self.subscribes else { return true }
        if filter.hasWildcard { return allowed.contains { $0.filter.utf8.elementsEqual(filter.filter.utf8) } }
        return allowed.contains { $0.matches(topic: filter.filter) }
    }
}
