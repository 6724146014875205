import Workloads

// Accounts that a run makes itself.
extension OptionReader {
    mutating func readAccounts(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        options.registers = flags.register
        options.keepsAccounts = flags.keep
        if options.kind == .register {
            self.checkRegistering(flags, options)
        } else if flags.keep, !flags.register {
            self.report("--keep", "is about the accounts that --register creates; add that, or leave --keep out")
        }
        let flag = options.kind == .register ? "--mechanism" : "--register"
        guard options.registers || options.kind == .register else { return }
        if flags.mechanism == "ANONYMOUS" { return self.report(flag, "ANONYMOUS has no account that could be created") }
        // Not echoed.
        if !Self.isText([UInt8](options.password.utf8))
            || options.users.contains(where: { !Self.isText([UInt8]($0.password.utf8)) })
        {
            self.report(
                options.users.isEmpty ? "--password" : "--users",
                "a password has characters that XML cannot hold, so no account can be created with it"
            )
        }
        let isMissing =
            options.users.isEmpty ? options.password.isEmpty : options.users.contains { $0.password.isEmpty }
        // Without a mechanism that needs none its absence has been told already.
        let isTold =
            options.users.isEmpty && flags.mechanism != "EXTERNAL" && !flags.password.isGiven
        if isMissing, !isTold { self.report(flag, "an account is created with a password; add one to each user") }
    }

    /// What a run of registrations has no use for.
    private mutating func checkRegistering(_ flags: XMPPConnectionFlags, _ options: XMPPOptions) {
        if flags.register { self.report("--register", "is what this command does anyway; leave it out") }
        if flags.sm { self.report("--sm", "nobody stays logged in here; leave it out") }
        for (names, isGiven) in [
            (["--churn"], options.churn != nil), (["--storm"], !options.storms.isEmpty),
            (["--reconnect", "--maximum-reconnect-times"], options.reconnects > 0),
        ] where isGiven {
            self.report(self.typed(names), "an account is created once, and its connection ends then; leave it out")
        }
        if options.users.isEmpty, options.operators > 1, !options.local.contains("%i"), options.resource.contains("%i")
        {
            self.report("--jid", "is one account for all \(options.operators) clients; put %i before the @")
        }
    }
}
