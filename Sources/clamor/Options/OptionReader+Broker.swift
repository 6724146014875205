import ArgumentParser
import EmbeddedBroker

extension OptionReader {
    mutating func read(_ command: BrokerCommand, into options: inout BrokerOptions) {
        options.host = command.host ?? options.host
        options.port = self.number(command.port, "-p", "--port", in: 0...65_535) ?? options.port
        options.quiet = command.quiet
        options.isChild = command.isChild
        self.read(command.listeners, into: &options)
        options.access = self.access(command.access, prefix: "")
        options.faults = self.faults(command.faults, prefix: "")
    }

    private mutating func read(_ flags: ListenerFlags, into options: inout BrokerOptions) {
        options.tlsPort = self.number(flags.tlsPort, "--tls-port", in: 0...65_535)
        options.webSocketPort = self.number(flags.wsPort, "--ws-port", in: 0...65_535)
        options.secureWebSocketPort = self.number(flags.wssPort, "--wss-port", in: 0...65_535)
        options.certificateFile = flags.certfile
        options.keyFile = flags.keyfile
        options.authorityFile = flags.cacertfile
        options.preSharedKey = flags.psk ?? (options.isChild ? self.environment[BrokerOptions.keyVariable] : nil)
        options.path = flags.path
        options.readsProxyHeader = flags.proxyProtocol
        if let path = flags.path, !path.hasPrefix("/") { self.report("--path", "'\(path)' does not begin with /") }
        let isSecure = flags.tlsPort != nil || flags.wssPort != nil
        let hasWebSocket = flags.wsPort != nil || flags.wssPort != nil
        if isSecure, flags.certfile == nil, options.preSharedKey == nil {
            let flag = flags.tlsPort != nil ? "--tls-port" : "--wss-port"
            self.report(flag, "needs --certfile and --keyfile, or --psk")
        }
        for (flag, value) in [
            ("--certfile", flags.certfile), ("--keyfile", flags.keyfile), ("--cacertfile", flags.cacertfile),
            ("--psk", flags.psk),
        ] where value != nil && !isSecure {
            self.report(flag, "is of use with --tls-port or --wss-port only")
        }
        if flags.path != nil, !hasWebSocket { self.report("--path", "is of use with --ws-port or --wss-port only") }
    }

    /// Reads the text of `--broker '...'`: faults, and who may connect.
    mutating func arguments(inText text: String) -> [String] {
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        do {
            let flags = try EmbeddedFlags.parse(words)
            _ = self.access(flags.access, prefix: "--broker ")
            return self.faults(flags.faults, prefix: "--broker ") + flags.access.arguments
        } catch {
            let message = EmbeddedFlags.message(for: error).split(separator: "\n").first ?? "is not a list of flags"
            self.report("--broker", "\(message); see clamor broker --help")
            return []
        }
    }

    /// Checks the faults and lists them as arguments.
    private mutating func faults(_ flags: FaultFlags, prefix: String) -> [String] {
        let given = [
            ("--drop", flags.drop), ("--duplicate", flags.duplicate), ("--reorder", flags.reorder),
            ("--delay", flags.delay), ("--delay-every", flags.delayEvery), ("--stall", flags.stall),
            ("--disconnect-every", flags.disconnectEvery), ("--max-rate", flags.maxRate),
            ("--fragment", flags.fragment), ("--refuse", flags.refuse),
        ].compactMap { flag, value in value.map { (flag: flag, value: $0) } }
        for error in FaultPlan.read(given).errors { self.report("\(prefix)\(error.flag)", error.problem) }
        return given.flatMap { [$0.flag, $0.value] }
    }
}
