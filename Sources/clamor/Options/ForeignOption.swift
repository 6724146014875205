/// An option of another load generator that Clamor does not have, with what Clamor has in its place.
///
/// The article on other tools has the same options.
package struct ForeignOption: Sendable {
    package let name: String
    package let tool: String
    /// The counterpart here, and its spelling.
    let instead: String

    /// `nil` for a word that is no option of these tools.
    static func of(_ word: String) -> ForeignOption? {
        let name = word.hasPrefix("--") ? String(word.prefix { $0 != "=" }) : word
        return self.all.first { $0.name == name }
    }

    var words: String { "\(self.name): an option of \(self.tool); \(self.instead)" }

    package static let all: [ForeignOption] = [
        of("emqtt_bench", "--payload-hdrs", "each message has the ledger's header; leave it out"),
        of("emqtt_bench", "--retry-interval", "MQTT 5 forbids to send again within a connection; leave it out"),
        of("emqtt_bench", "--keep-connected", "-L ends the run, and all clients disconnect; leave it out"),
        of("emqtt_bench", "--min-random-wait --max-random-wait", "-I spreads the first messages evenly; leave it out"),
        of(
            "emqtt_bench",
            "-Q --qoe --qoelog",
            "each run measures connects, acknowledgements and deliveries; leave it out"
        ),
        of(
            "emqtt_bench",
            "--lowmem --force-major-gc-interval --log_to --dist --load-qst --signature-algs --keyex-algs",
            "without a counterpart; leave it out"
        ),
        of("emqtt_bench", "--topics-payload", "several topics are a list in publish: of a scenario file"),
        of("emqtt_bench", "--quic", "MQTT over QUIC is not supported; leave it out"),
        of("emqtt_bench and MQTTX", "-l", "low memory has no counterpart, and the protocol is --ws, -S or both"),
        of("emqtt_bench", "--ssl-version", "the version of TLS is --tls-version"),
        of("MQTTX", "-im", "the interval between messages is -I, such as -I 1000"),
        of("MQTTX", "--protocol", "ws is --ws, mqtts is -S, and wss is --ws -S"),
        of("MQTTX", "--file-read", "the message of a file is -m file://FILE"),
        of("MQTTX", "--split", "-m file://FILE is one message; leave it out"),
        of("MQTTX", "--save-options", "--print-scenario prints the load as a file"),
        of("MQTTX", "--load-options", "clamor run FILE runs a load from a file"),
        of("MQTTX", "--dup", "only a message that is sent again has DUP; leave it out"),
        of("MQTTX", "--verbose", "--summary full shows every figure"),
        of("k6", "--vus", "a virtual user is a client; its number is -c, or clients: in a file"),
        of("k6", "--summary-export", "run.json is always written; --out names its directory"),
        of("k6", "-e", "a variable of a file is --set NAME=VALUE"),
    ].flatMap(\.self)

    private static func of(_ tool: String, _ names: String, _ instead: String) -> [ForeignOption] {
        names.split(separator: " ").map { ForeignOption(name: String($0), tool: tool, instead: instead) }
    }
}
