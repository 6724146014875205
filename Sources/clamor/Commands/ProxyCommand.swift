import ArgumentParser

struct ProxyCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy",
        abstract: "Puts faults in front of any real server, whatever the two sides speak.",
        discussion: """
            Bytes, FIN and RST are passed on in order; a receiver that does not read stops its sender. Without faults it \
            does no more than that: what to compare with, since the way through it takes time too. Ctrl-C ends it, and \
            it prints what it counted.
            """
    )

    @Argument(help: ArgumentHelp("The server, such as 127.0.0.1:1883.", valueName: "host:port")) var target: String
    @Option(
        name: [.customShort("h", allowingJoined: true), .long, .customLong("hostname")],
        help: ArgumentHelp("Address to listen on. (default: 127.0.0.1)", valueName: "address")
    ) var host: String?
    @Option(
        name: [.customShort("p", allowingJoined: true), .long],
        help: ArgumentHelp("Port; 0: any free one. The first line says which. (default: 0)", valueName: "port")
    ) var port: String?
    @Flag(name: .long, help: "Nothing on stdout but the first line.") var quiet = false
    @OptionGroup(title: "Faults") var faults: ProxyFaultFlags

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = ProxyOptions()
        reader.read(self, into: &options)
        return .proxy(options)
    }
}

/// What a proxy does to bytes; those that `clamor broker` has too mean the same, of bytes in the place of PUBLISH.
struct ProxyFaultFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            """
            What the server sends is held this long; 15% holds the first bytes of an answer by that share of the time \
            that the server took, from when the client's last bytes went on. In order: what comes behind waits too.
            """,
            valueName: "duration|percent"
        )
    )
    var delay: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Only every nth read of a connection is held, with a percentage every nth answer. (default: 1)",
            valueName: "n"
        )
    )
    var delayEvery: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Bytes a second of each connection, each way, such as 64KiB/s.", valueName: "size/s")
    )
    var rate: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Neither accepts nor reads nor writes, once: 2s@5s is for 2s, from 5s after the first client.",
            valueName: "duration@time"
        )
    )
    var stall: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Ends one connection by FIN each time, both sides, round robin over all; what is held is lost.",
            valueName: "duration"
        )
    )
    var cut: String?
    @Option(
        name: .long,
        help: ArgumentHelp("The same by RST.", valueName: "duration")
    )
    var reset: String?
    @Option(name: .long, help: ArgumentHelp("Bytes per write, both ways, such as 1-7.", valueName: "min-max"))
    var fragment: String?
}
