import ArgumentParser

struct DecodeCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Decoder throughput, in memory and over a loopback socket; no server needed.",
        discussion: """
            A stream as a server sends it is decoded over and over, as the clients of the other commands do it. Forms: \
            pipelined (64 KiB a read), segments (1,460 bytes), fragments (1 to 7 bytes, drawn), cuts (every packet cut \
            once, at a moving point). Messages are those of clients 1 to 100 in turn: %i in the topic says which.

            With --protocol xmpp it reads stanzas, in a stream that has begun: chat messages of users 1 to 100, or \
            with --mix what a client that chats is sent. What counts packets then counts stanzas.

            Figures for each form and path: packets/s and bytes/s; CPU time of the decoding thread per packet, over a \
            socket with reading; bytes allocated per packet, counted by jemalloc if libjemalloc.so.2 is installed. \
            What is decoded is compared with what was encoded: where they differ the exit code is 97, also without \
            --strict.
            """
    )

    @OptionGroup(title: "Stream") var stream: DecodeStreamFlags
    @OptionGroup(title: "Run") var run: DecodeRunFlags
    @OptionGroup(title: "Run") var results: ResultFlags

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = DecodeOptions()
        reader.read(self.stream, into: &options)
        reader.read(self.run, into: &options)
        reader.read(self.results, hasLedger: false, into: &options)
        options.redactedCommand = ["clamor"] + Redaction.command(reader.arguments)
        return .decode(options)
    }
}

struct DecodeStreamFlags: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("mqtt or xmpp. (default: mqtt)", valueName: "protocol"))
    var `protocol`: String?

    @OptionGroup var version: VersionFlag

    @Option(
        name: [.customShort("s", allowingJoined: true), .long, .customLong("payload-size")],
        help: ArgumentHelp(
            """
            Payload sizes, taken in turn; a list or repeated. Of XMPP the bodies. (default: 256; --mix: \
            16,64,256,1024,4096, of XMPP 8,24,60,150,600)
            """,
            valueName: "bytes,..."
        )
    ) var size: [String] = []

    @Option(
        name: [.customShort("t", allowingJoined: true), .long],
        help: ArgumentHelp("Topic; %i, %s and %rand_N allowed. (default: clamor/%i)", valueName: "topic")
    ) var topic: String?

    @Option(
        name: [.customShort("q", allowingJoined: true), .long],
        help: ArgumentHelp("QoS levels, taken in turn. (default: 0; --mix: 0,1,2)", valueName: "qos,...")
    ) var qos: String?

    @Flag(
        name: .long,
        help: """
            Not PUBLISH alone: of 100 packets 60 PUBLISH, 20 PUBACK, 6 each of PUBREC, PUBREL and PUBCOMP, a SUBACK, a \
            PINGRESP, with properties in MQTT 5. Of XMPP, out of 100: 45 chat messages, 15 of a room, 15 presences, \
            10 answers, 5 pings, 2 rosters, 8 requests and answers of stream management.
            """
    ) var mix = false

    @Option(name: .long, help: ArgumentHelp("Makes stream and fragments repeatable.", valueName: "n"))
    var seed: String?
}

struct DecodeRunFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("pipelined, segments, fragments, cuts. (default: all)", valueName: "form,...")
    ) var form: String?

    @Option(name: .long, help: ArgumentHelp("memory, socket. (default: both)", valueName: "path,..."))
    var path: String?

    @Option(
        name: [.customShort("d", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Of each form on each path, behind a tenth of it, 1s at most, as warm-up. (default: 2s)",
            valueName: "duration"
        )
    ) var duration: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Bytes of one read of a socket at most, 1 to 65536. (default: 65536)", valueName: "n")
    ) var readSize: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "What takes the packets: view looks at them as the clients do, copy copies each payload. (default: view)",
            valueName: "sink"
        )
    ) var sink: String?

    @Flag(name: .customLong("allocation-pass"), help: .hidden) var isAllocationPass = false
}
