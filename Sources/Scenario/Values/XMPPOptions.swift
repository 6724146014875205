package import Workloads

/// The options of the `xmpp` commands, read and checked.
///
/// Options shared with other protocols are in ``common``, and have the same names here.
package struct XMPPOptions: ProtocolOptions, Hashable, Sendable, OptionsRoot {
    package static let usual = Self(kind: .message)

    package var kind: XMPPLoad.Work
    package var common: LoadOptions

    // Clients.
    /// `user%i@domain/resource` in its parts; local part and resource may hold placeholders.
    package var local = ""
    package var domain = ""
    package var resource = "clamor"
    package var password = ""
    /// Users from a table, overriding all of these; one per client.
    package var users: [XMPPUser] = []
    /// Whether accounts are made before the run; and whether those that it made stay.
    package var registers = false
    package var keepsAccounts = false

    // How they log in.
    package var tls = XMPPLoad.TLSPolicy.required
    package var mechanism: String?
    package var streamManagement = false

    package var pairing = XMPPLoad.Pairing.neighbour

    // Rooms and circles of contacts.
    /// Occupants of a room, or contacts and oneself.
    package var groupSize = 1
    /// The local part of a room's JID, `%r` for its number.
    package var room = "clamor%r"
    package var service = ""
    package var nick = "clamor%i"

    /// The most occupants of a room, or contacts and oneself: more cost memory by the square.
    package static let largestGroup = 10_000

    package static let mechanisms = [
        "SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256",
        "SCRAM-SHA-1", "PLAIN", "DIGEST-MD5", "EXTERNAL", "ANONYMOUS",
    ]

    package init(kind: XMPPLoad.Work) {
        self.kind = kind
        self.common = LoadOptions(
            name: "xmpp-\(kind.rawValue)",
            port: 5222,
            operates: kind != .login && kind != .register
        )
    }
}

extension XMPPOptions {
    /// Whether messages carry the header, which is longer as text.
    package var hasLedger: Bool {
        guard self.kind == .message || self.hasGroups else { return false }
        guard case .generated(let sizes) = self.payload else { return self.payload.draft().hasLedger }
        return sizes.lowerBound >= XMPPBody.headerSize
    }

    /// Operations under way per client: as many messages as elsewhere, all else one by one.
    package var window: Int { self.inflight ?? (self.kind == .message ? 16 : 1) }

    /// Whether what a client sends comes to many.
    package var hasGroups: Bool { self.kind == .muc || self.kind == .presence }

    /// How often each operation comes back.
    package var deliveries: Int {
        switch self.kind {
        case .login, .register, .unregister: 0
        case .message, .ping: 1
        case .muc: self.groupSize
        case .presence: self.groupSize - 1
        }
    }
}
