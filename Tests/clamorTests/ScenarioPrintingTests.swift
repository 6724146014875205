import Foundation
import LoadEngine
import RunControl
import Scenario
import TestSupport
import Testing
import Workloads
import clamor

@Suite("--print-scenario: the file that does what a command line does")
struct ScenarioPrintingTests {
    static let environment = [
        "CLAMOR_PASSWORD": "s3cret: ${x}", "CLAMOR_PSK": "id:0123", "CLAMOR_RAW": "c0 00",
        "CLAMOR_HEADER_1": "Bearer s3cret: \"${x}\"", "CLAMOR_HEADER_2": "z", "CLAMOR_QUERY": "sig=s3cret&x=${y}",
    ]

    private static func parsed(_ words: [String]) -> Invocation {
        Invocation.parse(words, environment: self.environment)
    }

    /// Words as a shell splits them, single quotes kept together.
    private static func words(_ line: String) -> [String] {
        line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
        }
    }

    private static func work(_ words: [String]) throws -> ScenarioGroup.Work {
        switch Self.parsed(words) {
        case .run(let scenario): return scenario.groups[0].work
        case let other: throw ScenarioFile.Unexpected(what: "\(other)")
        }
    }

    static func printed(_ line: String) throws -> String { try Self.printed(Self.words(line)) }

    private static func printed(_ words: [String]) throws -> String {
        guard case .text(let text) = Self.parsed(words + ["--print-scenario"]) else {
            throw ScenarioFile.Unexpected(what: "\(Self.parsed(words + ["--print-scenario"]))")
        }
        return text
    }

    static let lines = [
        "conn", "pub", "sub", "pubsub",
        "conn -c 15000 -R 5000 --duration 60s -h broker.example",
        "pub -d 5 --connect-timeout 3 --ack-timeout 4 -R 0",
        "conn -c 5 -i 10 --connect-timeout 3s --num-retry-connect 2 --reconnect 9 --reconnect-period 500 -n 7",
        "conn --subscription-churn 20/s", "pub --subscription-churn 1/s --subscription-churn-filter x/%i/#",
        "conn --ifaddr 127.0.0.2,127.0.0.3 --churn 5/s:cut --storm 30%@2s --storm 50%@4s:disconnect --duration 20s",
        "conn -V 3.1.1 -k 60 -C false -u me -P other",
        "conn --no-clean -x 300 --prefix mine --receive-maximum 9 --maximum-packet-size 9999 --topic-alias-maximum 3",
        "conn --req-response-info --no-req-problem-info --conn-user-properties 'a: b' --conn-user-properties 'c: d, e'",
        "conn -C --shortids -c3 -k0", "conn --shortids true --prefix p",
        "conn --client-id 'dev-%i' -c 4 --raw @/etc/passwd",
        "conn --will-topic 'gone/%i' --will-message 'bye \"%i\"' --will-qos 1 --will-retain --will-delay-interval 5",
        "conn --will-topic w --will-message-expiry-interval 9 --will-payload-format-indicator true --will-content-type t/x",
        "conn --will-topic w --will-response-topic r --will-correlation-data 'a # b' --will-user-properties k:v",
        "conn --url mqtt://me:s3cret@broker.example:1884", "conn -h '::1' -p 99", "conn -h a,b:77,c -p 9",
        "conn -h embedded --broker '--drop 0.1% --delay 5ms'", "conn -h embedded -S --ws --path /x --insecure",
        "conn -h a -S --cacertfile ca.pem --certfile 'c-%i.pem' --keyfile 'c-%i.key' --sni name --tls-version 1.3",
        "conn -h a -S --pin sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= --pin x.pem --ciphers A:B --alpn mqtt,x",
        "conn --url wss://a/deep/path", "conn -h a -S true --ws -p 8443", "conn -h a --ws --subprotocol mqttv3.1,mqtt",
        "conn -h a --proxy-protocol v2",
        "conn --auth scram-sha-256 -u a -P b", "conn --auth aliyun --group-id GID_x --instance-id i -u k -P s",
        "pub -c 90 -q 0,1,2 -s 64 -I 0 --duration 10s", "pub -I 100 -c 7 -q 1", "pub -I 1s -L 500 -w false",
        "pub --rate 100/s -L 500 --duration 5s --warmup 1s --drain 3s --no-wait --ack-timeout 5s",
        "pub -t 'fleet/%i/${HOME}/$${x}' -m 'temperature: %i\tand \u{7}more €' -r -F 0",
        "pub -r false -m '' -F8",
        "pub -m template:///etc/passwd", "pub -t 'a b: c' -s 64KiB", "pub -m 'a b: c #d'",
        "pub -t yes -m ' lead and trail '", "pub -t '~'", "pub -t '* &x'",
        "pub --payload-format-indicator --message-expiry-interval 60 --content-type 'text/plain; x' --topic-alias",
        "pub --topic-alias 7 --response-topic 'r/%i' --correlation-data x --user-properties 'a: 1' --validate off",
        "pub -q 1 --seed 18446744073709551615", "pub --seed 5 -c 2", "pub --duration 0",
        "sub -t 'a/#' -t '$share/g/b/+' -q 1 -c 4", "sub -q 0,1,2 -c 3", "sub -q 2 --seed 3",
        "pubsub -c 1000 -q 1 --rate 5000/s", "pubsub --topology fan-out -c 40",
        "pubsub --topology fan-out --subscribers 9", "pubsub --topology request -q 1 --response-topic r/%i",
        "pubsub --topology shared -c 5 --subscribers 3 -q 2", "pubsub --subscribers 2",
        "sub --no_local", "sub --no-local --retain-as-published -t a -t 'b/#' -q 1", "sub --retain-handling 0",
        "sub --retain-handling 2 --subscription-identifier 268435455 --user-properties 'a: b' --user-properties c:d,e",
        "pubsub --no_local --retain-handling 1 --subscription-identifier 4 --user-properties 'k: v' -c 3",
        "pubsub --retain-as-published --topology fan-in -c 9", "pub --subscription-identifier 4 --validate off",
        "conn -h a -S --psk id:0123", "conn -h a -S --psk=id:0123 --tls-version 1.2", "conn --raw 'c0 00' -c 2",
        "conn -h a --ws --header 'Authorization: Bearer s3cret: \"${x}\"' --ws-headers X-Y:z",
        "conn --url 'wss://a/b?sig=s3cret&x=${y}'", "conn -h a,b --ws --path '/${b}?sig=s3cret&x=${y}'",
        "conn -h embedded --ws --path '/b\"?sig=s3cret&x=${y}' --header 'X$Y: Bearer s3cret: \"${x}\"'",
        "pub -c 2 --threshold 'publish_ack_duration p99 < 50ms' --threshold 'error_rate < 0.1% abort' -q 1",
        "pub --threads 2 --read-size 100 --per-client --out 'my dir' --strict --quiet --junit x.xml",
        "xmpp login -h x -c 10 --jid 'user%i@example.org/phone' -P secret --sm --mechanism PLAIN --tls direct",
        "xmpp login --jid u@x --resolver 127.0.0.1:53 -R 5", "xmpp login --jid u@x -h '::1' -p 99 --register --keep",
        "xmpp login -h a --ws --path /chat --tls off --jid u@x",
        "xmpp login -h a --ws --path '/chat?sig=s3cret&x=${y}' --header 'A: Bearer s3cret: \"${x}\"' --jid u@x --tls off",
        "xmpp login -h a,b:1 --jid u@x --cacertfile ca.pem",
        "xmpp message -h x -c 6 --jid 'u%i@x' --rate 9/s --pairing random -s 100",
        "xmpp message --jid 'u%i@x' -c 2 -F 3",
        "xmpp message --jid u@x -m 'hello %i & more' --churn 3/s", "xmpp ping --jid u@x -I 50 -F 2 --ack-timeout 4s",
        "xmpp muc --rooms 5 --room-size 4 --jid 'u%i@x' --rate 5/s --room 'r%r@rooms.x' --nick 'n%i'",
        "xmpp muc --room-size 4 -c 8 --jid 'u%i@x' --service s.x",
        "xmpp presence --contacts 3 --jid 'u%i@x' --rate 5/s",
        "xmpp register -c 3 --jid 'u%i@x' --keep",
        "xmpp register --jid u@x --duration 5s",
    ]

    @Test("reading it again gives the same plan and the same schedule", arguments: lines)
    func same(_ line: String) throws {
        let words = Self.words(line)
        let text = try Self.printed(words)
        let scenario = try ScenarioFile(text).scenario(environment: Self.environment)
        let command = try Self.work(words)
        #expect(scenario.scheduleHash == ScenarioOptions(command).scheduleHash, "\(text)")
        let group = try #require(scenario.groups.first)
        #expect(scenario.groups.count == 1)
        #expect("\(group.options.plan(targets: 1, seed: 3))" == "\(command.options.plan(targets: 1, seed: 3))")
        #expect(Self.plain(group.work, scenario.common) == Self.plain(command, command.options), "\(text)")
        #expect(scenario.common.thresholds == command.options.thresholds)
        #expect(group.options.endsBySignal == command.options.endsBySignal)
    }

    /// Without what is of the command line, or random.
    private static func plain(_ work: ScenarioGroup.Work, _ run: LoadOptions) -> ScenarioGroup.Work {
        func plain(_ options: inout LoadOptions) {
            let bare = LoadOptions(name: "", port: 0, operates: false)
            options.redactedCommand = []
            options.thresholds = []
            (options.outputDirectory, options.files) = (nil, bare.files)
            (options.perClient, options.json, options.quiet, options.strict) = (false, false, false, false)
            (options.threads, options.readSize) = (nil, bare.readSize)
        }
        switch work {
        case .mqtt(var options):
            plain(&options.common)
            options.password = options.password.map { _ in "" }
            if let drawn = options.drawnPrefix, run.seed == nil {
                options.publisherID = options.publisherID.replacing(drawn, with: "")
                options.subscriberID = options.subscriberID.replacing(drawn, with: "")
                options.drawnPrefix = ""
            }
            return .mqtt(options)
        case .xmpp(var options):
            plain(&options.common)
            options.password = ""
            return .xmpp(options)
        }
    }

    @Test("it is short, and says where what it leaves out belongs")
    func text() throws {
        let line =
            "pub -h broker.example -c 90 -q 0,1,2 -s 64 -I 10 -u me -P s3cret -k 60 -t 'fleet/%i' --seed 4 --threads 2 "
            + "--threshold 'publish_ack_duration p99 < 50ms'"
        #expect(
            try Self.printed(Self.words(line)) == """
                # Equivalent command: clamor pub -h broker.example -c 90 -q 0,1,2 -s 64 -I 10 -u me -P '***' -k 60 -t fleet/%i --seed 4 --threads 2 --threshold 'publish_ack_duration p99 < 50ms'
                # Run options, which no file stores: clamor run FILE --threads 2
                name: pub
                target: mqtt://broker.example:1883
                seed: 4
                duration: 10s
                drain: 10s
                groups:
                  pub:
                    clients: 90
                    username: me
                    password: ${CLAMOR_PASSWORD}
                    connect:
                      keep_alive: 60s
                    publish:
                      topic: fleet/%i
                      qos: [0, 1, 2]
                      size: 64
                      interval: 10ms
                thresholds:
                  - "publish_ack_duration p99 < 50ms"
                """
        )
    }

    @Test("how it subscribes stands at each filter, of pubsub by itself")
    func subscriptions() throws {
        let sub = try Self.printed(
            Self.words("sub -t 'a/#' -t b -q 1 --no-local --retain-handling 1 --user-properties 'k: v'")
        )
        let options = "qos: 1, no_local: true, retain_handling: 1, user_properties: [\"k: v\"]"
        #expect(
            sub.hasSuffix(
                """
                    subscribe:
                      - { filter: "a/#", \(options) }
                      - { filter: "b", \(options) }
                """
            ),
            "\(sub)"
        )
        let pubsub = try Self.printed(Self.words("pubsub --retain-as-published --subscription-identifier 4"))
        #expect(
            pubsub.hasSuffix(
                """
                    topology: pair
                    publish: {}
                    subscribe:
                      retain_as_published: true
                      identifier: 4
                """
            ),
            "\(pubsub)"
        )
        #expect(try !Self.printed(["pubsub"]).contains("subscribe:"))
    }

    @Test(
        "where a command line has a secret the file has a variable",
        arguments: [
            ("conn -u me -P s3cret", ["password: ${CLAMOR_PASSWORD}"]),
            ("conn --url mqtt://me:s3cret@b", ["password: ${CLAMOR_PASSWORD}", "target: mqtt://b:1883"]),
            ("xmpp login --jid u@x --password s3cret -h x", ["password: ${CLAMOR_PASSWORD}"]),
            ("conn -h a -S --psk s3cret:0123", ["psk: ${CLAMOR_PSK}"]),
            ("conn --raw 'c0 00'", ["raw: ${CLAMOR_RAW}"]), ("conn --raw @/etc/passwd", ["raw: \"@/etc/passwd\""]),
            ("conn --url 'ws://a/b?s3cret'", ["target: \"ws://a:80/b?${CLAMOR_QUERY}\""]),
            ("conn -h a --ws --path '/b?s3cret'", ["target: \"ws://a:80/b?${CLAMOR_QUERY}\""]),
            ("conn -h embedded --ws --path '/b?s3cret'", ["path: \"/b?${CLAMOR_QUERY}\""]),
            (
                "conn -h a --ws --header 'X: s3cret' --header Y:s3cret-too",
                ["headers: [\"X: ${CLAMOR_HEADER_1}\", \"Y: ${CLAMOR_HEADER_2}\"]"]
            ),
        ]
    )
    func secrets(line: String, expected: [String]) throws {
        let text = try Self.printed(Self.words(line))
        for secret in ["s3cret", "0123", "c0 00"] { #expect(!text.contains(secret)) }
        let lines = text.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }
        for expected in expected { #expect(lines.contains(expected[...]), "\(text)") }
    }

    @Test(
        "how a run is divided is of the run",
        arguments: [
            ("pub -c 4 --seed 3 --segment 1/2", "--segment 1/2"), ("pub -c 4 --processes 2", "--processes 2"),
        ]
    )
    func divided(line: String, flags: String) throws {
        let text = try Self.printed(Self.words(line))
        #expect(text.contains("# Run options, which no file stores: clamor run FILE \(flags)\n"), "\(text)")
    }

    @Test("problems of a command line are reported as without the flag")
    func wrong() {
        guard case .refused(let lines) = Self.parsed(["pub", "-c", "0", "--print-scenario"]) else { return }
        #expect(lines == ["clamor pub: -c: '0' is not a whole number of 1 to 10000000"])
    }
}
