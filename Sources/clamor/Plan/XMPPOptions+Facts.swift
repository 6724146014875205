import Workloads

extension XMPPOptions {
    /// The options of an XMPP group that differ from their defaults.
    var facts: PlanFacts {
        var facts = PlanFacts()
        let usual = XMPPOptions(kind: self.kind)
        facts.text("command", "xmpp \(self.kind.rawValue)", .schedule)
        facts.integer("clients", self.operators, .schedule)
        self.common.addFacts(to: &facts, of: self.command)
        facts.add(self, of: self.command)
        if self.users.isEmpty {
            facts.text("jid", "\(self.local)@\(self.domain)/\(self.resource)", .schedule)
        } else {
            let names = self.users.map { "\($0.local)@\($0.domain)/\($0.resource)\n" }
            facts.digest("users", names.joined().utf8)
        }
        facts.secret("password", isGiven: !self.users.isEmpty || !self.password.isEmpty)
        facts.text("tls", self.tls.rawValue, unless: usual.tls.rawValue, .schedule)
        switch self.kind {
        case .muc:
            facts.integer("muc.room_size", self.groupSize, .schedule)
            facts.text("muc.room", self.room, unless: usual.room, .schedule)
            facts.text("muc.service", self.service, .schedule)
            facts.text("muc.nick", self.nick, unless: usual.nick, .schedule)
        case .presence: facts.integer("presence.contacts", self.groupSize - 1, .schedule)
        case .login, .message, .ping, .register, .unregister: break
        }
        return facts
    }
}
