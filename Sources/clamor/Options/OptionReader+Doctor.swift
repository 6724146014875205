import ArgumentParser

extension OptionReader {
    mutating func read(_ command: DoctorCommand, into options: inout DoctorOptions) {
        // Flags that runs have too mean what they mean there.
        guard var connection = try? ConnectionFlags.parse([]) else { preconditionFailure("every flag has a default") }
        connection.host = command.host
        connection.port = command.port
        connection.clients.count = command.count
        connection.clients.ifaddr = command.ifaddr
        self.read(connection, into: &options.load)
        options.load.threads = self.number(command.threads, "--threads", in: 1...1_024)
        options.load.subscribers = self.number(command.subscribers, "--subscribers", in: 0...10_000_000) ?? 0
        if command.count == nil { options.load.publishers = 0 }
        if command.count != nil || command.subscribers != nil {
            options.clients = options.load.publishers + options.load.subscribers
        }
        if let rate = self.value(command.rate, "--rate", parse: RateText.parse) { options.load.pacing = .rate(rate) }
        options.json = command.json
        options.quiet = command.quiet
        if command.json, command.quiet { self.report("--quiet", "--json writes to stdout; leave one of the two out") }
    }
}
