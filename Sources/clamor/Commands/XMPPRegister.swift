import ArgumentParser
import Workloads

struct XMPPRegister: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Creates accounts in-band (XEP-0077), and removes them again; latency of the registration.",
        discussion: """
            Each of the -c accounts has a connection of its own, which ends when the server has answered; -R says how \
            many begin a second, without it 64 are under way at once. The run ends with the last of them, or with \
            --duration. An account that is there already is an error of its own kind and stays as it is. Those that the \
            run created are removed behind it, unless --keep is given; that costs a login each, and is in no figure.
            \(xmppUsers)
            """
    )

    @OptionGroup(title: "Connection") var connection: XMPPConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = XMPPOptions(kind: .register)
        reader.read(self.connection, into: &options)
        // One registration for each: when they are spent the run is over, whatever the time.
        options.limit = UInt64(options.operators)
        reader.read(self.run, into: &options)
        if self.run.warmup != nil {
            reader.report("--warmup", "every registration is measured; leave it out")
        }
        return .xmpp(options)
    }
}
