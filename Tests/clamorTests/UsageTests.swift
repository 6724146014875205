import Scenario
import Testing
import clamor

@Suite("A wrong command line is refused in words that help")
struct UsageTests {
    struct Refusal: Sendable, CustomTestStringConvertible {
        let line: String
        let answer: [String]
        var testDescription: String { self.line }

        init(_ line: String, _ answer: String...) {
            self.line = line
            self.answer = answer
        }
    }

    static let single = [
        Refusal("", "clamor: a command is missing; try clamor pubsub -h embedded, or see clamor --help"),
        Refusal("-h", "clamor: -h is the host and belongs behind a command; for help: clamor --help"),
        Refusal("-h x pub", "clamor: -h is the host and belongs behind a command; for help: clamor --help"),
        Refusal(
            "frobnicate",
            "clamor: there is no command 'frobnicate'; the commands are conn, pub, sub, pubsub, xmpp, run, coordinate, "
                + "watch, decode, doctor, broker, proxy, report, compare, trend, merge, capacity, plan, calibrate, init"
        ),
        Refusal("pub -h", "clamor pub: -h is the host and needs a value; for help: clamor pub --help"),
        Refusal("pub -h -c 5", "clamor pub: -h is the host and needs a value; for help: clamor pub --help"),
        Refusal(
            "pub --version 4",
            "clamor pub: --version: prints Clamor's version and takes no value; the version of MQTT is -V, such as -V 5"
        ),
        Refusal(
            "pub -c 5 --version=4",
            "clamor pub: --version: prints Clamor's version and takes no value; the version of MQTT is -V, such as -V 5"
        ),
        Refusal(
            "--version 4",
            "clamor: --version: prints Clamor's version and takes no value; the version of MQTT is -V, such as -V 5"
        ),
        Refusal("pub -d soon", "clamor pub: -d: 'soon' is not a duration; write it like 10s, 250ms or 2m"),
        Refusal("pub -d-5", "clamor pub: -d: '-5' is not a duration; write it like 10s, 250ms or 2m"),
        Refusal("pub --frobnicate 1", "clamor pub: Unknown option '--frobnicate'; see clamor pub --help"),
        Refusal(
            "pub --duraton 1s",
            "clamor pub: Unknown option '--duraton'. Did you mean '--duration'? See clamor pub --help"
        ),
        Refusal("conn -t a", "clamor conn: Unknown option '-t'; see clamor conn --help"),
        Refusal("pub -c", "clamor pub: Missing value for '-c'; see clamor pub --help"),
        Refusal("pub x", "clamor pub: Unexpected argument 'x'; see clamor pub --help"),
        Refusal("pub -c 0", "clamor pub: -c: '0' is not a whole number of 1 to 10000000"),
        Refusal("pub --count many", "clamor pub: --count: 'many' is not a whole number of 1 to 10000000"),
        Refusal("pub -p 70000", "clamor pub: -p: '70000' is not a whole number of 1 to 65535"),
        Refusal("pub -V 6", "clamor pub: -V: '6' is not an MQTT version; it is 3 (3.1), 4 (3.1.1) or 5"),
        Refusal(
            "pub -q 3",
            "clamor pub: -q: '3' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once"
        ),
        Refusal(
            "pub -q 1,1",
            "clamor pub: -q: '1,1' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once"
        ),
        Refusal(
            "pub -q 0,",
            "clamor pub: -q: '0,' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once"
        ),
        Refusal("pub -c 2 -q 0,1,2", "clamor pub: -q: 2 clients cannot be spread over 3 QoS levels; raise -c"),
        Refusal("pubsub --topology fan-out -c 9 -q 0,1", "clamor pubsub: -q: fan-out has one publisher, so one QoS"),
        Refusal(
            "pubsub --topology ring",
            "clamor pubsub: --topology: 'ring' is not one of pair, fan-in, fan-out, shared, request"
        ),
        Refusal(
            "pubsub --topology request",
            "clamor pubsub: --topology: a request is known to have come when it is acknowledged; write -q 1 or -q 2"
        ),
        Refusal(
            "pubsub --topology request -V 4 -q 1",
            "clamor pubsub: --topology: requests are of MQTT 5, and MQTT 3 has no response topic; use -V 5"
        ),
        Refusal(
            "pubsub --topology request -q 1 -m x",
            "clamor pubsub: -m: requests carry the header that their answers are known by; give -s 16 or more, or put %{ledger} into -m"
        ),
        Refusal(
            "pubsub --topology request -q 1 -s 15",
            "clamor pubsub: -s: requests carry the header that their answers are known by; give -s 16 or more, or put %{ledger} into -m"
        ),
        Refusal(
            "pubsub --topology request -q 1 -r",
            "clamor pubsub: -r: a retained request would be answered again; leave it out"
        ),
        Refusal(
            "pubsub --topology request -q 1 --correlation-data x",
            "clamor pubsub: --correlation-data: requests are numbered by it; leave it out"
        ),
        Refusal(
            "pubsub --topology request -q 1 --response-topic a/%s",
            "clamor pubsub: --response-topic: 'a/%s' would be another for each request; use %i or %c"
        ),
        Refusal(
            "pubsub --topology request -c 2 -q 1 --response-topic a",
            "clamor pubsub: --response-topic: 'a' is the same for all, and each would read all answers; add %c"
        ),
        Refusal(
            "pubsub --topology fan-out -c 3 --subscribers 4",
            "clamor pubsub: --subscribers: fan-out has one publisher, and -c counts subscribers too; leave one out"
        ),
        Refusal("pub -R 0.0", "clamor pub: -R: '0.0' is not above 0; leave it out for no limit"),
        Refusal("pub -R fast", "clamor pub: -R: 'fast' is not a rate; write it like 500/s"),
        Refusal(
            "pub --rate 1000000000000000000000/s",
            "clamor pub: --rate: '1000000000000000000000/s' is more than 1000000000/s; leave it out for no limit"
        ),
        Refusal("pub -R 5 -i 5", "clamor pub: -i: -R says the rate of connects too; leave one of the two out"),
        Refusal("pub -i x", "clamor pub: -i: 'x' is not a number of milliseconds; write it like 100, or 100ms"),
        Refusal(
            "pub --rate 5/s -I 5",
            "clamor pub: --rate: -I sets the pace too, per client; leave one of the two out"
        ),
        Refusal(
            "pub --rate 5/s --message-interval 0",
            "clamor pub: --rate: --message-interval sets the pace too, per client; leave one of the two out"
        ),
        Refusal(
            "pub --duration 10x",
            "clamor pub: --duration: '10x' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Refusal(
            "pub --storm 30%@5",
            "clamor pub: --storm: '5' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Refusal(
            "pub --connect-timeout 0s",
            "clamor pub: --connect-timeout: '0s' leaves no time to connect; write it like 10s"
        ),
        Refusal("pub -s big", "clamor pub: -s: 'big' is not a size; write it like 256, 64KiB or 1MB"),
        Refusal("pub -s 1000MB", "clamor pub: -s: MQTT carries 268000000 bytes at most"),
        Refusal("pub -s 9 -m a", "clamor pub: -m: a message has its own size; leave -s out"),
        Refusal(
            "pub -m template:///nowhere/x",
            "clamor pub: -m: cannot read /nowhere/x (no such file); check the path and its permissions"
        ),
        Refusal(
            "pub --message template:///",
            "clamor pub: --message: cannot read / (not readable); check the path and its permissions"
        ),
        Refusal("pub -C maybe", "clamor pub: -C: takes true or false; give it alone, not joined with other flags"),
        Refusal(
            "pub --validate yes",
            "clamor pub: --validate: takes on or off"
        ),
        Refusal("pub -F 2000", "clamor pub: -F: at QoS 0 it is messages per write, 1024 at most"),
        Refusal("pub --read-size 0", "clamor pub: --read-size: '0' is not a whole number of 1 to 65536"),
        Refusal("pub --read-size 65537", "clamor pub: --read-size: '65537' is not a whole number of 1 to 65536"),
        Refusal("pub --seed -1", "clamor pub: Missing value for '--seed <n>'; see clamor pub --help"),
        Refusal("pub --seed x", "clamor pub: --seed: 'x' is not a whole number of 0 or more"),
        Refusal("pub -x 5 -V 4", "clamor pub: -x: MQTT 3 has no session expiry; leave it out, or use -V 5"),
        Refusal("pub -P a -V 4", "clamor pub: -P: MQTT 3 has no password without a user name; add -u, or use -V 5"),
        Refusal(
            "conn -V 3 --prefix a-very-long-prefix -c 10",
            "clamor conn: -V: client ids of MQTT 3.1 have 23 characters at most, and 'a-very-long-prefix-conn-10' has 26; add --shortids"
        ),
        Refusal("pub -c 2 --client-id a", "clamor pub: --client-id: 'a' is the same for all 2 clients; put %i into it"),
        Refusal("pub --client-id %c", "clamor pub: --client-id: %c is the client id itself; use %i"),
        Refusal(
            "pubsub --client-id %i",
            "clamor pubsub: --client-id: would be the same for publishers and subscribers; use --prefix"
        ),
        Refusal(
            "pub -t a/#",
            "clamor pub: -t: 'a/#' has a wildcard, which only a filter may have; use a placeholder such as %i"
        ),
        Refusal("pub --no-wait -w true", "clamor pub: --no-wait: -w true says the opposite; leave one out"),
        Refusal("pub --json --quiet", "clamor pub: --quiet: --json writes to stdout; leave one of the two out"),
        Refusal(
            "pub --ifaddr eth0",
            "clamor pub: --ifaddr: 'eth0' is not an IP address; write it like 10.0.0.5,10.0.0.6"
        ),
        Refusal(
            "decode --protocol xmpp -q 1",
            "clamor decode: -q: is a matter of MQTT; leave it out, or leave --protocol xmpp out"
        ),
        Refusal(
            "decode --mqtt-version=4 --protocol=xmpp",
            "clamor decode: --mqtt-version: is a matter of MQTT; leave it out, or leave --protocol xmpp out"
        ),
        Refusal(
            "decode --protocol xmpp --topic #",
            "clamor decode: --topic: is a matter of MQTT; leave it out, or leave --protocol xmpp out"
        ),
        Refusal("decode --protocol coap", "clamor decode: --protocol: 'coap' is not one of mqtt, xmpp"),
        Refusal(
            "decode --form pipelined,bits",
            "clamor decode: --form: 'bits' is not one of pipelined, segments, fragments, cuts"
        ),
        Refusal("decode --path=pipe", "clamor decode: --path: 'pipe' is not one of memory, socket"),
        Refusal("decode --sink keep", "clamor decode: --sink: 'keep' is not one of view, copy"),
        Refusal("decode -s 64,x", "clamor decode: -s: 'x' is not a size; write it like 256, 64KiB or 1MB"),
        Refusal(
            "decode -s 64 -s 17MiB",
            "clamor decode: -s: '17825792' is too much for a stream in memory; 16777216 bytes at most"
        ),
        Refusal(
            "decode -s 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
            "clamor decode: -s: 17 sizes are too many; 16 at most"
        ),
        Refusal("decode --duration 0", "clamor decode: --duration: '0' leaves no time to measure; write it like 2s"),
        Refusal("decode --json --quiet", "clamor decode: --quiet: --json writes to stdout; leave one of the two out"),
        Refusal("decode -c 5", "clamor decode: Unknown option '-c'; see clamor decode --help"),
        Refusal("decode -S", "clamor decode: Unknown option '-S'; see clamor decode --help"),
        Refusal("pub -h a,embedded", "clamor pub: -h: 'embedded' stands alone; leave the other hosts out"),
        Refusal("pub -h embedded -p 1", "clamor pub: -p: the embedded broker takes a free port; leave -p out"),
        Refusal(
            "pub -h a,,b",
            "clamor pub: -h: '' is not a host; write it like broker.example, 10.0.0.1:1884 or [::1]:1884"
        ),
        Refusal(
            "pub --broker x",
            "clamor pub: --broker: its faults are for -h embedded; add that, or leave it out"
        ),
        Refusal(
            "pub -h embedded --broker --dorp",
            "clamor pub: --broker: --dorp is no option of the embedded broker; did you mean --drop? see clamor broker --help"
        ),
        Refusal("broker --tls-port 1", "clamor broker: --tls-port: needs --certfile and --keyfile, or --psk"),
        Refusal("broker --wss-port 1", "clamor broker: --wss-port: needs --certfile and --keyfile, or --psk"),
        Refusal("broker --ws-port 65536", "clamor broker: --ws-port: '65536' is not a whole number of 0 to 65535"),
        Refusal("broker --keyfile k", "clamor broker: --keyfile: is of use with --tls-port or --wss-port only"),
        Refusal("broker --path /x", "clamor broker: --path: is of use with --ws-port or --wss-port only"),
        Refusal("broker --ws-port 1 --path x", "clamor broker: --path: 'x' does not begin with /"),
        Refusal("broker --drop 2", "clamor broker: --drop: '2' is not a share above 0%; write it like 0.1%"),
        Refusal(
            "report /nowhere",
            "clamor report: /nowhere: no such directory; give the result directory of a run, such as results/runs/<time>-pub"
        ),
        Refusal("report /dev/null", "clamor report: /dev/null: is not a directory; give the result directory of a run"),
        Refusal("doctor --json --quiet", "clamor doctor: --quiet: --json writes to stdout; leave one of the two out"),
        Refusal("doctor -c 0", "clamor doctor: -c: '0' is not a whole number of 1 to 10000000"),
        Refusal("doctor --threads 0", "clamor doctor: --threads: '0' is not a whole number of 1 to 1024"),
        Refusal(
            "doctor --hosts 3",
            "clamor doctor: --hosts: is about a scenario; give its FILE, or leave it out"
        ),
        Refusal("doctor --rate 0", "clamor doctor: --rate: '0' is not above 0; leave it out for no limit"),
        Refusal("doctor -h a,embedded", "clamor doctor: -h: 'embedded' stands alone; leave the other hosts out"),
        Refusal(
            "doctor --ifaddr lo",
            "clamor doctor: --ifaddr: 'lo' is not an IP address; write it like 10.0.0.5,10.0.0.6"
        ),
        Refusal("report", "clamor report: DIR: is missing; give the result directory of a run"),
        Refusal(
            "pub --url host",
            "clamor pub: --url: is not a URL; write it like mqtt://broker.example:1883/"
        ),
        Refusal(
            "pub --url http://a",
            "clamor pub: --url: 'http' is no known scheme; use mqtt://, mqtts://, ws:// or wss://"
        ),
        Refusal("pub --url mqtt://a/b", "clamor pub: --url: mqtt:// has nothing behind the port; end it there"),
        Refusal("pub --url mqtt://a -h b", "clamor pub: -h: is part of --url already; leave one of the two out"),
        Refusal(
            "pub --url mqtt://u:%zz@a",
            "clamor pub: --url: the user or password has a wrong % sequence; write % itself as %25"
        ),
    ]

    @Test("each mistake has its line", arguments: single)
    func refuses(_ refusal: Refusal) {
        #expect(answer(refusal.line) == refusal.answer)
    }

    @Test("the schemes of XMPP are those of other commands", arguments: ["xmpp", "xmpps"])
    func otherSchemes(_ scheme: String) {
        #expect(
            answer("pub --url \(scheme)://h")
                == ["clamor pub: --url: \(scheme):// is for clamor xmpp, whose servers are given with -h"]
        )
    }

    @Test("many mistakes are all found, and told in a line each")
    func many() {
        #expect(
            answer("pub -c 0 -V 9 -q 7 --drain x") == [
                "clamor pub: -c: '0' is not a whole number of 1 to 10000000",
                "clamor pub: -V: '9' is not an MQTT version; it is 3 (3.1), 4 (3.1.1) or 5",
                "clamor pub: -q: '7' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once",
                "clamor pub: --drain: 'x' is not a duration; write it like 10s, 250ms or 2m",
            ]
        )
    }

    @Test("a topic, a filter and the metric of a threshold follow the rules of their own")
    func checks() {
        #expect(
            answer("pub -s 15 --threshold delivery_lost==0") == [
                "clamor pub: --threshold: 'delivery_lost==0': delivery_lost needs the ledger, which requires receivers, "
                    + "and -s 16 or more, with several audiences 20 (XMPP: 44), a message with %{ledger}, or --ledger property"
            ]
        )
        #expect(
            answer("sub -t a/#/b") == [
                "clamor sub: -t: 'a/#/b': # is the last level; write + for a level in the middle"
            ]
        )
        let long = String(repeating: "a", count: 65_536)
        #expect(
            answer("pub -t \(long)") == [
                "clamor pub: -t: '\(long)': it has 65536 bytes of UTF-8, and MQTT takes 65535 at most"
            ]
        )
    }

    @Test(
        "no refusal shows a secret",
        arguments: [
            "pub -u a -P s3cret extra", "pub -u a -P s3cret s3cret", "pub --url xmpps://a:s3cret@h",
            "pub --url mqtt://a:s3cret@h:99999", "pub mqtt://a:s3cret@h", "pub --url mqtt://a:s3cret@h/x",
            "pub --url mqtt://a:s3cret@", "pub -h mqtt://a:s3cret@h", "pub -rPs3cret", "pub --password=s3cret -q 9",
            "pub -Ps3cret -q 9", "pub --url a:s3cret@h",
            "pub -S --psk s3cret", "pub --ws --header s3cret", "pub --ws --path a?s3cret", "conn --raw s3cret",
            "xmpp login --jid a --password s3cret", "xmpp login -Ps3cret x", "xmpp ping --password=s3cret -c 0",
        ]
    )
    func secrets(_ line: String) {
        let lines = answer(line)
        #expect(!lines.isEmpty)
        #expect(!lines.joined().contains("s3cret"))
    }

    private func answer(_ line: String) -> [String] {
        let words = line.split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(words) else { return [] }
        return lines
    }
}
