import EmbeddedBroker
import FaultLines
import Foundation
import Measurement
import Report
import RunControl
import Scenario
import TestSupport
import Testing
import Transport
import Workloads
import clamor

/// The options of a command line that is right; the line is split at blanks.
func options(_ line: String, environment: [String: String] = [:]) throws -> MQTTOptions {
    let invocation = Invocation.parse(line.split(separator: " ").map(String.init), environment: environment)
    guard let options = invocation.mqtt else {
        Issue.record("'\(line)' gives \(invocation)")
        throw CancellationError()
    }
    return options
}

@Suite("A command line becomes options")
struct InvocationTests {
    @Test("the defaults are those of the design", arguments: MQTTOptions.Kind.allCases)
    func defaults(_ kind: MQTTOptions.Kind) throws {
        let options = try options("\(kind.rawValue) --prefix p")
        #expect(options.target == .servers([Target(host: "127.0.0.1", port: 1_883)]))
        #expect(options.protocolLevel == 5)
        #expect(options.publishers == (kind == .sub ? 0 : 1))
        #expect(options.subscribers == (kind == .sub || kind == .pubsub ? 1 : 0))
        #expect(options.startNumber == 0)
        #expect(options.qualities == [0])
        #expect(options.payload == .generated(size: 256))
        #expect(options.keepAlive == 300)
        #expect(options.clean)
        #expect(options.connectRate == nil)
        #expect(options.topic == "clamor/%i")
        #expect(options.subscriptions == (kind == .sub ? [SubscriptionOption("clamor/#")] : []))
        #expect(options.window == 16)
        #expect(options.batch == 16)
        #expect(options.pacing == .closedLoop)
        #expect(options.waitsForAll)
        #expect(options.duration == 10_000_000_000)
        #expect(options.warmup == 0)
        #expect(options.drain == 10_000_000_000)
        #expect(options.connectTimeout == 10_000_000_000)
        #expect(options.ackTimeout == 30_000_000_000)
        #expect(options.readSize == 65_536)
        #expect(options.reconnects == 0)
        #expect(options.backoff.from == 1_000_000_000)
        #expect(options.hasLedger)
        #expect(options.validates)
        #expect(options.publisherID == (kind == .conn ? "p-conn-%i" : "p-pub-%i"))
        #expect(options.subscriberID == "p-sub-%i")
        #expect(options.redactedCommand == ["clamor", kind.rawValue, "--prefix", "p"])
    }

    /// A flag's spellings, and what each of them sets.
    struct Spelling: Sendable, CustomTestStringConvertible {
        let line: String
        let same: String
        var testDescription: String { "\(self.line) = \(self.same)" }

        init(_ line: String, _ same: String) {
            self.line = line
            self.same = same
        }
    }

    @Test(
        "long names, joined values and MQTTX names say the same",
        arguments: [
            Spelling("pub -h a -p 7", "pub --hostname a --port 7"), Spelling("pub -h a", "pub --host=a"),
            Spelling("pub -c100", "pub --count 100"), Spelling("pub -V 4", "pub --mqtt-version 3.1.1"),
            Spelling("pub -V 5", "pub -V 5.0"), Spelling("conn -V 3 --prefix q", "conn -V 3.1 --prefix q"),
            Spelling("pub -I 10", "pub --message-interval 10"), Spelling("pub -I 10", "pub --interval_of_msg 10ms"),
            Spelling("pub -s 1000", "pub --payload-size 1KB"), Spelling("pub -x 5", "pub --session-expiry-interval 5"),
            Spelling("pub -C false", "pub --no-clean"), Spelling("pub -C", "pub -C true"),
            Spelling("pub -r", "pub --retain true"),
            Spelling("pub -w false", "pub --no-wait"), Spelling("pub -R 100", "pub -i 10"), Spelling("pub -i 0", "pub"),
            Spelling("pub -R 5/s", "pub --connrate 5"), Spelling("pub -R 0", "pub"), Spelling("pub -R 0/s", "pub"),
            Spelling("pub -R 0 -i 10", "pub -i 10"),
            Spelling("pub -d 3s", "pub --duration 3s"), Spelling("pub -d3", "pub --duration 3s"),
            Spelling("pub --duration 10", "pub --duration 10s"), Spelling("pub -d 1.5", "pub --duration 1500ms"),
            Spelling("pub --warmup 5", "pub --warmup 5s"), Spelling("pub --drain 5", "pub --drain 5s"),
            Spelling("pub --connect-timeout 5", "pub --connect-timeout 5s"),
            Spelling("pub --ack-timeout 5", "pub --ack-timeout 5s"),
            Spelling("pub --reconnect 3", "pub --maximum-reconnect-times 3"),
            Spelling("pub -n 5", "pub --startnumber 5"), Spelling("pub -L 5", "pub --limit 5"),
            Spelling("pub -F 5", "pub --inflight 5"), Spelling("pub -u a -P b", "pub --username a --password b"),
            Spelling("pub -u a -Pb", "pub -u a -P b"), Spelling("pub -k 5", "pub --keepalive 5"),
            Spelling("pub -h h -p 9 -u a -P b", "pub --url mqtt://a:b@h:9/"),
            Spelling("pub -h ::1", "pub --url mqtt://[::1]"),
            Spelling("pub -u a@b -P c:/d", "pub --url mqtt://a%40b:c:%2Fd@127.0.0.1"),
            Spelling("sub -q 2 -t a", "sub --qos 2 --topic a"),
        ]
    )
    func spellings(_ spelling: Spelling) throws {
        var one = try options(spelling.line + " --seed 1")
        var other = try options(spelling.same + " --seed 1")
        one.redactedCommand = []
        other.redactedCommand = []
        #expect(one == other)
    }

    @Test(
        "-C -r -w work bare, right before another flag, and with a value",
        arguments: [
            ("pub -C -r -w -c 2", true, true, true), ("pub -r -C false -w false", false, true, false),
            ("pub -c 2 -C false -r false -w", false, false, true), ("pub -r true -w true -C true", true, true, true),
            ("pub --clean=false --retain --wait-before-publishing=false", false, true, false),
        ]
    )
    func bareBooleans(_ line: String, clean: Bool, retain: Bool, wait: Bool) throws {
        let options = try options(line)
        #expect(options.clean == clean)
        #expect(options.retain == retain)
        #expect(options.waitsForAll == wait)
    }

    @Test(
        "hosts carry ports of their own, and IPv6 addresses",
        arguments: [
            ("a,b:1884,[::1]:9,::2", 1_883, [("a", 1_883), ("b", 1_884), ("::1", 9), ("::2", 1_883)]),
            ("a,[::1]", 7, [("a", 7), ("::1", 7)]),
        ]
    )
    func hosts(_ text: String, port: Int, expected: [(String, Int)]) throws {
        let servers = expected.map { Target(host: $0.0, port: $0.1) }
        #expect(try options("conn -h \(text) -p \(port)").target == .servers(servers))
    }

    @Test(
        "each topology has its subscribers",
        arguments: [
            ("pubsub -c 7", 7, 7), ("pubsub -c 7 --subscribers 3", 7, 3), ("pubsub -c 7 --topology fan-in", 7, 1),
            ("pubsub -c 7 --topology fan-out", 1, 7), ("pubsub --topology fan-out --subscribers 9", 1, 9),
            ("pubsub -c 7 --topology shared", 7, 4), ("pubsub -c 7 -q 1 --topology request", 7, 1), ("sub -c 7", 0, 7),
            ("conn -c 7", 7, 0), ("pub -c 7", 7, 0),
        ]
    )
    func topologies(_ line: String, publishers: Int, subscribers: Int) throws {
        let options = try options(line)
        #expect(options.publishers == publishers)
        #expect(options.subscribers == subscribers)
    }

    @Test(
        "pacing is one of three",
        arguments: [
            ("pub --rate 2000/s", .rate(2_000)), ("pub -I 5", .interval(5_000_000)), ("pub -I 0", .closedLoop),
            ("pub -I 1.5", .interval(1_500_000)), ("pub", .closedLoop),
        ] as [(String, PacingOption)]
    )
    func pacing(_ line: String, _ expected: PacingOption) throws {
        #expect(try options(line).pacing == expected)
    }

    @Test(
        "a run ends by time, by its limit, or by a signal",
        arguments: [
            ("pub", 10_000_000_000, nil, false), ("pub -L 5", nil, 5, false),
            ("pub -L 5 --duration 3s", 3_000_000_000, 5, false), ("pub --duration 0", nil, nil, true),
            ("pub --duration 0s -L 5", nil, 5, false), ("pub -L 0", 10_000_000_000, nil, false),
        ] as [(String, Int64?, UInt64?, Bool)]
    )
    func ends(_ line: String, duration: Int64?, limit: UInt64?, bySignal: Bool) throws {
        let options = try options(line)
        #expect(options.duration == duration)
        #expect(options.limit == limit)
        #expect(options.endsBySignal == bySignal)
    }

    @Test("--summary is compact unless it is full, and report takes it too")
    func summary() throws {
        #expect(try options("pub").summary == .compact)
        #expect(try options("pub --summary compact").summary == .compact)
        #expect(try options("pub --summary full").summary == .full)
        guard case .decode(let decode) = Invocation.parse(["decode", "--summary", "full", "-d", "3"]) else {
            Issue.record("refused")
            return
        }
        #expect(decode.summary == .full)
    }

    @Test("--no-tty is taken by every command that shows progress")
    func noTTY() throws {
        #expect(try options("pub --no-tty").isPlain)
        #expect(try !options("pub").isPlain)
        guard
            let login = Invocation.parse(["xmpp", "login", "--jid", "a@b", "--password", "c", "--no-tty"]).xmpp,
            case .decode(let decode) = Invocation.parse(["decode", "--no-tty", "-d", "3"])
        else {
            Issue.record("refused")
            return
        }
        #expect(login.isPlain)
        #expect(decode.isPlain)
        #expect(decode.duration == 3_000_000_000)
    }

    @Test(
        "without a value --version prints the version in its first line",
        arguments: ["--version", "pub --version", "pub --version -c 5"]
    )
    func version(_ line: String) {
        guard case .text(let text) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("refused")
            return
        }
        #expect(text.split(separator: "\n").first == "clamor \(Version.number)")
    }

    @Test(
        "-F is the window, and at QoS 0 the messages of one write",
        arguments: [("pub", 16, 16), ("pub -F 8", 8, 8), ("pub -F 0", 0, 1_024), ("pub -F 2000 -q 1", 2_000, 1_024)]
    )
    func inflight(_ line: String, window: Int, batch: Int) throws {
        let options = try options(line)
        #expect(options.window == window)
        #expect(options.batch == batch)
    }

    @Test(
        "payloads under 16 bytes, and texts without %{ledger}, have no ledger",
        arguments: [
            ("-s 16", true), ("-s 15", false), ("-s 16 -t a/%s", false), ("-s 20 -t a/%s", true), ("-m hello", false),
            ("-m {%{ledger}}", true), ("-m hex://0aff", false), ("-m hex://0aff --ledger property", true),
        ]
    )
    func ledger(_ flags: String, _ hasLedger: Bool) throws {
        #expect(try options("pub \(flags)").hasLedger == hasLedger)
    }

    @Test(
        "client ids follow the prefix",
        arguments: [
            ("pubsub --prefix p", "p-pub-%i", "p-sub-%i"), ("pubsub --shortids", "p%i", "s%i"),
            ("pubsub --shortids true --prefix x-", "x-p%i", "x-s%i"), ("pub -c 2 --client-id dev%i", "dev%i", "dev%i"),
        ]
    )
    func clientIDs(_ line: String, publisher: String, subscriber: String) throws {
        let options = try options(line)
        #expect(options.publisherID == publisher)
        #expect(options.subscriberID == subscriber)
    }

    @Test("without a prefix, client ids are the same for the same seed alone, and fit MQTT 3.1")
    func ownPrefix() throws {
        let one = try options("pubsub --seed 1 -V 3 -c 99999").publisherID
        #expect(one.wholeMatch(of: /clamor-[0-9a-f]{4}-pub-%i/) != nil)
        #expect(try options("pubsub --seed 1").publisherID == one)
        #expect(try options("pubsub --seed 2").publisherID != one)
    }

    @Test("a template is read from its file")
    func template() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "clamor-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("temperature %i\n".utf8).write(to: URL(filePath: path))
        #expect(
            try options("pub -m template://\(path)").payload
                == .template(Array("temperature %i\n".utf8), randomSizes: 256...256)
        )
    }

    @Test("a password of a file or of the environment has no placeholders, and one of the command line has")
    func literalPassword() throws {
        let folder = try ScratchFolder()
        let path = try folder.write("s%i%%06i%{x}\n", to: "password")
        func sent(_ line: String, _ environment: [String: String] = [:]) throws -> String {
            let load = try options(line, environment: environment).load(run: 1, seed: 1)
            var random = SplitMix64(seed: 1)
            let password = load.password?.rendered(load.values(of: 0), random: &random)
            return String(decoding: password ?? [], as: UTF8.self)
        }
        #expect(try sent("pub -u a --password-file \(path)") == "s%i%%06i%{x}")
        #expect(try sent("pub -u a", ["CLAMOR_PASSWORD": "s%i%%06i%{x}"]) == "s%i%%06i%{x}")
        #expect(try sent("pub -u a -P s%i%%06i%{x}%03i") == "s1%06i%{x}001")
    }

    @Test(
        "the number of a client may be padded, and behind %% it is none",
        arguments: [
            ("conn -c 2 --client-id a%i", true), ("conn -c 2 --client-id a%06i", true),
            ("conn -c 2 --client-id a%%i", false), ("conn -c 2 --client-id a%%%i", true),
            ("xmpp login -c 2 --jid a%%i@b -P c", false), ("xmpp login -c 2 --jid a%03i@b -P c", true),
            ("xmpp muc -c 4 --jid a%i@b -P c --nick n%%i", false),
            ("pubsub --topology request -q 1 -c 2 --response-topic a/%%i", false),
        ]
    )
    func clientNumber(_ line: String, isTaken: Bool) {
        let invocation = Invocation.parse(line.split(separator: " ").map(String.init))
        if case .refused(let lines) = invocation {
            #expect(!isTaken && lines.count == 1, "\(lines)")
        } else {
            #expect(isTaken)
        }
    }

    @Test("with %RANDOM% in a template -s says how many bytes it is")
    func randomBytes() throws {
        let folder = try ScratchFolder()
        let path = try folder.write("%RANDOM%", to: "message")
        let message = Array("%RANDOM%".utf8)
        #expect(try options("pub -m template://\(path)").payload == .template(message, randomSizes: 256...256))
        #expect(
            try options("pub -s 64..1KiB -m template://\(path)").payload == .template(message, randomSizes: 64...1_024)
        )
    }

    @Test(
        "a template is refused where it cannot be sent as it is meant",
        arguments: [
            (
                "pub", "%UUID%",
                "-m: %UUID% in FILE is no placeholder; the names are %TIMESTAMP%, %TIMESTAMPMS%, %TIMESTAMPUS%, "
                    + "%TIMESTAMPNS%, %UNIQUE%, %RANDOM%; file:// sends a file as it is"
            ),
            ("pub -s 64", "%UNIQUE%", "-m: a message has its own size; leave -s out"),
            ("pub -s 268000000", "x%RANDOM%", "-m: MQTT carries 268000000 bytes at most"),
            (
                "xmpp message -c 2 --jid a%i@b --password c", "%RANDOM%",
                "-m: %RANDOM% is bytes of any value, which XML cannot hold; leave it out"
            ),
        ]
    )
    func refusedTemplates(_ command: String, _ text: String, _ words: String) throws {
        let folder = try ScratchFolder()
        let path = try folder.write(text, to: "message")
        let invocation = Invocation.parse(
            command.split(separator: " ").map(String.init) + ["-m", "template://\(path)"]
        )
        guard case .refused(let lines) = invocation else {
            Issue.record("taken")
            return
        }
        #expect(lines.contains { $0.hasSuffix(" " + words.replacing("FILE", with: path)) }, "\(lines)")
    }

    @Test("the password comes from the environment where none is given")
    func environment() throws {
        let environment = ["CLAMOR_PASSWORD": "e"]
        #expect(try options("pub -u a", environment: environment).password == "e")
        #expect(try options("pub -u a -P b", environment: environment).password == "b")
        #expect(try options("pub", environment: environment).password == nil)
    }

    @Test("faults are passed to the embedded broker as arguments")
    func faults() throws {
        let line = ["pub", "-h", "embedded", "--broker", "--drop 0.1% --delay=5ms --stall 2s@10s"]
        guard let options = Invocation.parse(line).mqtt else { throw CancellationError() }
        #expect(options.target == .embedded(arguments: ["--drop", "0.1%", "--delay", "5ms", "--stall", "2s@10s"]))
        #expect(try clamorTests.options("pub -h embedded").target == .embedded(arguments: []))
    }

    @Test("the broker's listeners")
    func listeners() throws {
        let line = """
            broker --tls-port 0 --ws-port 9001 --wss-port 9443 --certfile c.pem --keyfile k.pem --cacertfile a.pem \
            --path /mqtt
            """
        guard case .broker(let options) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("no broker")
            return
        }
        var expected = BrokerOptions()
        expected.tlsPort = 0
        expected.webSocketPort = 9_001
        expected.secureWebSocketPort = 9_443
        expected.certificateFile = "c.pem"
        expected.keyFile = "k.pem"
        expected.authorityFile = "a.pem"
        expected.path = "/mqtt"
        #expect(options == expected)
    }

    @Test("the broker takes the same faults as flags")
    func broker() throws {
        let line = """
            broker -h 0.0.0.0 -p 0 --duplicate 3 --reorder 4 --delay 5ms --delay-every 2 --disconnect-every 1s \
            --max-rate 1000/s --retry-storm 3 --spin 90 --fragment 1-7 --refuse 0x87
            """
        guard case .broker(let options) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            throw CancellationError()
        }
        #expect(options.host == "0.0.0.0")
        #expect(options.port == 0)
        let faults = """
            duplicate 3 reorder 4 delay 5ms delay-every 2 disconnect-every 1s max-rate 1000/s retry-storm 3 spin 90 \
            fragment 1-7 refuse 0x87
            """
        #expect(try options.faults == FaultPlan.parse(line: faults))
    }

    @Test("report takes a directory")
    func report() throws {
        guard case .report(let options) = Invocation.parse(["report", "/", "--json"]) else { throw CancellationError() }
        #expect(options.directory == "/")
        #expect(options.json)
    }

    @Test("trend takes directories, a gate and where it begins")
    func trend() throws {
        let words = ["trend", "/", "/tmp", "--gate", "--since", "v2", "--html", "t.html", "--otava", "t.csv"]
        guard case .trend(let options) = Invocation.parse(words) else { throw CancellationError() }
        #expect(options.directories == ["/", "/tmp"] && options.isGate && options.since == "v2")
        #expect(options.files.html == "t.html" && options.otava == "t.csv")
        for (words, remedy) in [([], "DIR"), (["/absent"], "/absent"), (["/", "--quiet", "--json"], "--json")] {
            guard case .refused(let lines) = Invocation.parse(["trend"] + words) else { throw CancellationError() }
            #expect(lines.contains { $0.contains(remedy) }, "\(lines)")
        }
    }

    @Test("a result directory has a page, unless --no-page or a parent process says that it has none")
    func page() throws {
        #expect(try options("pub").files.writesPage)
        #expect(try !options("pub --no-page").files.writesPage)
    }

    @Test("everything else lands where it belongs")
    func rest() throws {
        let options = try options(
            """
            pub --threads 3 --read-size 7 --seed 9 --validate off --per-client --json --strict --out d --warmup 1s \
            --drain 2s --ack-timeout 3s --connect-timeout 4s --num-retry-connect 5 --reconnect-period 60 \
            --ifaddr 127.0.0.1,::1 -c 2 -q 2,0 --threshold errors<1
            """
        )
        #expect(options.threads == 3)
        #expect(options.readSize == 7)
        #expect(options.seed == 9)
        #expect(!options.validates)
        #expect(options.perClient && options.json && options.strict && !options.quiet)
        #expect(options.outputDirectory == "d")
        #expect(options.warmup == 1_000_000_000)
        #expect(options.drain == 2_000_000_000)
        #expect(options.ackTimeout == 3_000_000_000)
        #expect(options.connectTimeout == 4_000_000_000)
        #expect(options.connectRetries == 5)
        #expect(options.backoff.from == 60_000_000)
        #expect(options.sourceAddresses == ["127.0.0.1", "::1"])
        #expect(options.qualities == [2, 0])
        #expect(options.highestQoS == 2)
        #expect(options.thresholds == ["errors<1"])
    }

    @Test(
        "event loops leave a core to a server on the same host",
        arguments: [(1, true, 1), (2, true, 1), (8, true, 7), (1, false, 1), (8, false, 8)]
    )
    func threads(cores: Int, loopback: Bool, expected: Int) {
        #expect(LoadOptions.defaultThreads(cores: cores, loopback: loopback) == expected)
    }
}
