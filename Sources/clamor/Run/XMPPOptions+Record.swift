package import Measurement
import Workloads

extension XMPPOptions {
    /// The plan in `run.json`: all settings that affect the outcome, without secrets.
    package func planRecord(seed: UInt64) -> [String: JSONValue] {
        var plan = self.common.planRecord(seed: seed, of: self.command)
        plan.add(self, of: self.command)
        plan["domain"] = .string(self.domain)
        if self.users.isEmpty {
            plan["jid"] = .string("\(self.local)@\(self.domain)/\(self.resource)")
        } else {
            plan["users"] = .integer(Int64(self.users.count))
        }
        plan["tls_policy"] = .string(self.tls.rawValue)
        if self.registers || self.kind == .register { plan["keeps_accounts"] = .bool(self.keepsAccounts) }
        self.facts.add(to: &plan)
        guard self.operates else { return plan }
        self.common.addOperations(to: &plan)
        plan["window"] = .integer(Int64(self.window))
        guard self.kind == .message || self.hasGroups else { return plan }
        switch self.kind {
        case .muc:
            plan["rooms"] = .integer(Int64(self.operators / self.groupSize))
            plan["room_size"] = .integer(Int64(self.groupSize))
            plan["room"] = .string("\(self.room)@\(self.service)")
            plan["nick"] = .string(self.nick)
        case .presence: plan["contacts"] = .integer(Int64(self.groupSize - 1))
        case .login, .message, .ping, .register, .unregister: plan["pairing"] = .string(self.pairing.rawValue)
        }
        self.common.addPayload(to: &plan)
        return plan
    }
}
