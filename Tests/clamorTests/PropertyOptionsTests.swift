import LoadEngine
import MQTTCodec
import NIOCore
import RunControl
import SASL
import Scenario
import TestSupport
import Testing
import Workloads
import clamor

@Suite("Properties, will, authentication and departures on the command line")
struct PropertyOptionsTests {
    @Test("CONNECT: MQTTX's names")
    func connect() throws {
        let line =
            "conn --receive-maximum 5 --maximum-packet-size 6 --topic-alias-maximum 7 --req-response-info "
            + "--no-req-problem-info --conn-user-properties=a:b --conn-user-properties=a:c"
        let connect = try options(line).connect
        #expect(connect.receiveMaximum == 5)
        #expect(connect.maximumPacketSize == 6)
        #expect(connect.topicAliasMaximum == 7)
        #expect(connect.requestsResponseInformation)
        #expect(!connect.requestsProblemInformation)
        #expect(connect.userProperties == [UserProperty("a", "b"), UserProperty("a", "c")])
    }

    @Test(
        "clients and the embedded broker take 1 MiB, or what the messages of the run need",
        arguments: [
            (["sub"], 1_048_576), (["pubsub -s 700000"], 1_048_576), (["pubsub -s 64..2MiB"], 2_359_296),
            (["sub", "pub -s 3MiB", "pub -s 2MiB"], 3_407_872), (["pub -s 268000000"], 268_262_144),
        ] as [([String], Int)]
    )
    func packetLimit(_ groups: [String], _ bytes: Int) throws {
        let all = try groups.map { try options($0) }
        #expect(MQTTOptions.packetLimit(all) == bytes)
    }

    @Test("the largest packet of a client is an option of every version", arguments: [3, 4, 5])
    func packetSize(_ version: Int) throws {
        #expect(try options("sub -V \(version) --maximum-packet-size 2000000").connect.maximumPacketSize == 2_000_000)
    }

    @Test("a will with all its properties, in the order of the standard's table")
    func will() throws {
        let line =
            "conn --will-topic a/%i --will-message gone --will-qos 2 --will-retain --will-delay-interval 1 "
            + "--will-payload-format-indicator --will-message-expiry-interval 2 --will-content-type t "
            + "--will-response-topic r --will-correlation-data c --will-user-properties=k:v"
        var will = WillOptions(topic: "a/%i")
        will.message = Array("gone".utf8)
        will.qos = 2
        will.retain = true
        will.properties = [
            .willDelayInterval(1), .payloadFormatIndicator(1), .messageExpiryInterval(2), .contentType("t"),
            .responseTopic("r"), .correlationData(Array("c".utf8)), .userProperty("k", "v"),
        ]
        #expect(try options(line).will == will)
        #expect(try options("conn").will == nil)
        #expect(try options("conn -V 4 --will-topic a").will == WillOptions(topic: "a"))
    }

    @Test("PUBLISH")
    func publish() throws {
        let line =
            "pub --payload-format-indicator --message-expiry-interval 9 --topic-alias --response-topic r/%i "
            + "--correlation-data c --content-type t --user-properties=k:v --subscription-identifier 3"
        let options = try options(line)
        #expect(
            options.publishProperties == [
                .payloadFormatIndicator(1), .messageExpiryInterval(9), .contentType("t"),
                .correlationData(Array("c".utf8)), .userProperty("k", "v"), .subscriptionIdentifier(3),
            ]
        )
        #expect(options.responseTopic == "r/%i")
        #expect(options.topicAlias == .automatic)
        #expect(try clamorTests.options("pub --topic-alias 4").topicAlias == .fixed(4))
        #expect(try clamorTests.options("pub").publishProperties.entries.isEmpty)
    }

    @Test("SUBSCRIBE; in pubsub user properties are those of PUBLISH")
    func subscribe() throws {
        let line =
            "--no_local --retain-as-published --retain-handling 2 --subscription-identifier 7 --user-properties=k:v"
        let sub = try options("sub " + line)
        #expect(sub.subscribe.noLocal && sub.subscribe.retainAsPublished)
        #expect(sub.subscribe.retainHandling == .doNotSend)
        #expect(sub.subscribe.properties == [.subscriptionIdentifier(7), .userProperty("k", "v")])
        let pubsub = try options("pubsub " + line)
        #expect(pubsub.subscribe.properties == [.subscriptionIdentifier(7)])
        #expect(pubsub.publishProperties == [.userProperty("k", "v")])
    }

    @Test(
        "MQTT 3 refuses what is MQTT 5's, by name",
        arguments: [
            "--receive-maximum 5", "--rcv-max 5", "--topic-alias-maximum 1", "--req-response-info",
            "--no-req-problem-info", "--conn-user-properties a:b",
            "--payload-format-indicator", "--message-expiry-interval 5", "--topic-alias", "--response-topic a",
            "--correlation-data a", "--content-type a", "--user-properties a:b", "--subscription-identifier 4",
            "--no_local", "--retain-as-published", "--retain-handling 1", "--will-delay-interval 1",
            "--will-content-type a", "--will-user-properties a:b",
        ]
    )
    func version5Only(_ flag: String) {
        let name = flag.split(separator: " ")[0]
        let line = "pubsub -V 4 --will-topic w " + flag
        #expect(
            refusal(line) == [
                "clamor pubsub: \(name): MQTT 3 has no such property; leave it out, or use -V 5"
            ]
        )
    }

    @Test("aliyun: group and instance, the publisher's id, keep-alives of 1, 60 and 120 s, tokens from a file")
    func aliyunOptions() throws {
        let folder = try ScratchFolder()
        let file = try folder.write("R|reads|W|writes\n", to: "tokens")
        let options = try options("conn --auth aliyun -u ak -P sk --group-id G --prefix p")
        #expect(options.auth == .aliyun(AliyunOptions(groupID: "G")))
        #expect(options.publisherID == "G@@@p-conn-%i")
        #expect(options.keepAlive == 60)
        var newer = AliyunOptions(groupID: "G")
        newer.instanceID = "i"
        #expect(
            try clamorTests.options("conn --auth aliyun -u ak -P sk --group-id G --instance-id i -k 120").auth
                == .aliyun(newer)
        )
        for keepAlive in [1, 120] {
            #expect(
                try clamorTests.options("conn --auth aliyun -u a -P b --group-id G -k \(keepAlive)").keepAlive
                    == keepAlive
            )
        }
        newer.tokens = "R|reads|W|writes"
        #expect(
            try clamorTests.options("conn --auth aliyun -u a --group-id G --instance-id i --token-file \(file)").auth
                == .aliyun(newer)
        )
    }

    @Test("without a ledger a stored copy spoils nothing", arguments: ["-s 8", "-m x"])
    func retainWithoutLedger(_ payload: String) throws {
        #expect(try options("pubsub \(payload) -r --retain-as-published").subscribe.retainAsPublished)
    }

    @Test("SCRAM", arguments: [SCRAMHash.sha1, .sha256])
    func scram(_ hash: SCRAMHash) throws {
        #expect(try options("conn --auth \(hash.word) -u a -P b").auth == .scram(hash))
    }

    @Test("churn and storms, earliest first")
    func departures() throws {
        let options = try options("pub --duration 21s --churn 50/s --storm 30%@20s:disconnect --storm 100%@5s")
        #expect(options.churn == DeparturePlan.Churn(perSecond: 50, cuts: false))
        #expect(
            try clamorTests.options("conn --churn 50:cut").churn == DeparturePlan.Churn(perSecond: 50, cuts: true)
        )
        #expect(
            options.storms == [
                DeparturePlan.Storm(share: 1, at: .seconds(5), cuts: true),
                DeparturePlan.Storm(share: 0.3, at: .seconds(20), cuts: false),
            ]
        )
    }

    @Test("subscriptions that come and go", arguments: ["conn", "pub", "sub", "pubsub"])
    func subscriptionChurn(_ command: String) throws {
        var churn = SubscriptionChurnOption(perSecond: 50)
        #expect(try options(command).subscriptionChurn == nil)
        let plain = try options("\(command) --subscription-churn 50/s")
        #expect(plain.subscriptionChurn == churn)
        #expect(plain.load(run: 1, seed: 1).problem() == nil)
        churn.filter = "x/%i/#"
        let own = try options("\(command) --subscription-churn 50/s --subscription-churn-filter x/%i/#")
        #expect(own.subscriptionChurn == churn)
    }

    @Test(
        "a subscription that comes and goes hears nothing of the run",
        arguments: [
            ("pub -t a/%i --subscription-churn-filter a/+", "'a/+'"), ("pubsub --subscription-churn-filter #", "'#'"),
            ("pubsub --topology shared --subscription-churn-filter clamor/7", "'clamor/7'"),
            ("pub -t a/%i/b --subscription-churn-filter a/#", "'a/#'"),
            ("pub -t a/%i/b --subscription-churn-filter $share/g/a/%i/b", "'$share/g/a/+/b'"),
            ("pub -t a --subscription-churn-filter a/#", "'a/#'"),
        ]
    )
    func churnHears(_ line: String, _ filter: String) throws {
        let load = try options("\(line) --subscription-churn 9/s").load(run: 1, seed: 1)
        let topics = load.topic.filterOfAllClients
        let words = "filter \(filter) of the subscription churn matches this run's topics '\(topics)'"
        #expect(load.problem() == "\(words), and messages would come twice; give another")
    }

    @Test(
        "a subscription that comes and goes is not one that is there for good, of no client",
        arguments: [
            ("sub -t a/%i -t b/# --subscription-churn-filter b/#", "b/#"),
            ("sub -c 10 -t a/%i --subscription-churn-filter a/5", "a/5"),
            ("sub -c 10 -t a/7 --subscription-churn-filter a/%i", "a/7"),
        ]
    )
    func churnOwn(_ line: String, _ filter: String) throws {
        let words = "filter '\(filter)' of the subscription churn is what its client subscribes to for good"
        let problem = try options("\(line) --subscription-churn 9/s").load(run: 1, seed: 1).problem()
        #expect(problem == "\(words); give another")
    }

    @Test(
        "and others are let be",
        arguments: [
            "pub -t a/%i --subscription-churn-filter a", "pub -t a --subscription-churn-filter a/+",
            "pub -t a/%i --subscription-churn-filter a/+/b", "pub -t a/b --subscription-churn-filter a/c/#",
            "sub -t # --subscription-churn-filter a/#", "sub -t +/+",
            "sub -c 10 -t a/%i --subscription-churn-filter a/11", "conn --subscription-churn-filter #",
        ]
    )
    func churnApart(_ line: String) throws {
        #expect(try options("\(line) --subscription-churn 9/s").load(run: 1, seed: 1).problem() == nil)
    }

    @Test(
        "problems of a filter are reported in words",
        arguments: [
            ("", "it has at least one character"), ("a\u{0}", "it has no character U+0000"),
            ("a/b+", "+ and # must be alone in their level, as in a/+/b or a/#"),
            ("a/#/b", "# is the last level; write + for a level in the middle"),
            (
                "$share/+/a",
                "the name after $share/ must not be empty, nor contain + or #; write it like $share/name/a/#"
            ),
            ("$share/g", "a filter follows the name; write it like $share/name/a/#"),
            (String(repeating: "x", count: 65_536), "it has 65536 bytes of UTF-8, and MQTT takes 65535 at most"),
        ]
    )
    func filterWords(_ filter: String, _ words: String) {
        do throws(TopicError) {
            _ = try TopicFilter(validating: filter)
            Issue.record("is taken")
        } catch {
            #expect(error.words == words)
        }
        #expect(throws: TopicError.wildcardInName) { try TopicName.validate("a/#") }
        #expect(TopicError.wildcardInName.words == "a topic to publish to has no + and no #")
    }

    static let forbidden: [(line: String, problem: String)] = [
        (
            "conn --prefix a+b --subscription-churn 9/s",
            "filter 'clamor-churn/a+b-conn-1' of the subscription churn: + and # must be alone in their level, as in a/+/b or a/#"
        ),
        (
            "sub --prefix a+b -t x/%c",
            "filter 'x/a+b-sub-1' of client 'a+b-sub-1': + and # must be alone in their level, as in a/+/b or a/#"
        ),
        (
            "pub --prefix a+b -t x/%c",
            "topic 'x/a+b-pub-1' of client 'a+b-pub-1': a topic to publish to has no + and no #"
        ),
        (
            "conn --prefix a+b --will-topic x/%c",
            "client 'a+b-conn-1': the topic of the will is wrong: a topic to publish to has no + and no #"
        ),
        (
            "conn --prefix p -u \(String(repeating: "u", count: 65_536))",
            "client 'p-conn-1': the user name has 65536 bytes, and MQTT takes 65535 at most"
        ),
    ]

    @Test("packets that MQTT forbids to clients are reported before the first connection", arguments: forbidden)
    func forbiddenOfClients(_ row: (line: String, problem: String)) throws {
        #expect(try options(row.line).load(run: 1, seed: 1).problem() == row.problem)
    }

    @Test("--raw")
    func raw() throws {
        #expect(try options("conn --raw c000").raw == [0xC0, 0])
    }

    @Test(
        "each mistake has its line",
        arguments: [
            (
                "pubsub -r --retain-as-published",
                "--retain-as-published: with -r a stored copy looks like a new message (MQTT 5 §3.8.3.1); "
                    + "add --retain-handling 2"
            ),
            (
                "pubsub -r --retain-as-published --retain-handling 1",
                "--retain-as-published: with -r a stored copy looks like a new message (MQTT 5 §3.8.3.1); "
                    + "add --retain-handling 2"
            ),
            (
                "pubsub --separate",
                "--separate: there is one target; give several with -h A,B, or leave it out"
            ),
            (
                "pubsub -h a,b --separate --topology fan-in -c 4",
                "--separate: 2 servers each need a publisher and a subscriber, and this run has 4 and 1; "
                    + "raise -c and --subscribers, or use another --topology"
            ),
            ("conn --receive-maximum 0", "--receive-maximum: '0' is not a whole number of 1 to 65535"),
            ("conn --will-message a", "--will-message: belongs to a will, which needs a topic; add --will-topic"),
            ("conn --will-topic a --will-qos 3", "--will-qos: '3' is not a whole number of 0 to 2"),
            (
                "conn --conn-user-properties a",
                "--conn-user-properties: 'a' is not a user property; write it like 'name: value'"
            ),
            ("pub --topic-alias 0", "--topic-alias: '0' is not a topic alias; it is 1 to 65535, or auto"),
            (
                "pub --topic-alias -t a/%s",
                "--topic-alias: needs a topic that stays the same for a client; leave %s, %t and %rand_N out of -t"
            ),
            ("sub --retain-handling 3", "--retain-handling: '3' is not a whole number of 0 to 2"),
            (
                "sub --subscription-identifier 0",
                "--subscription-identifier: '0' is not a whole number of 1 to 268435455"
            ),
            ("conn --auth kerberos", "--auth: 'kerberos' is not one of aliyun, scram-sha-256, scram-sha-1"),
            ("conn --auth scram-sha-256 -u a", "--auth: scram-sha-256 needs a user and a password; add -u and -P"),
            (
                "conn --auth scram-sha-1 -u a -P b -V 4",
                "--auth: MQTT 3 has no scram-sha-1; leave it out, or use -V 5"
            ),
            (
                "conn --auth aliyun -u a -P b",
                "--auth: aliyun needs the group that the clients are of; add --group-id GID_..."
            ),
            ("conn --auth aliyun --group-id g -P b", "--auth: aliyun needs the access key; add -u"),
            ("conn --auth aliyun --group-id g -u a", "--auth: aliyun needs the secret key; add -P, or --token-file"),
            (
                "conn --auth aliyun --group-id g -u a -P b -k 121",
                "-k: Alibaba Cloud takes 1 to 120 seconds"
            ),
            ("conn --group-id g", "--group-id: is a matter of Alibaba Cloud; add --auth aliyun, or leave it out"),
            ("conn --churn 0", "--churn: '0' is not above 0; leave it out for no limit"),
            (
                "conn --subscription-churn-filter x",
                "--subscription-churn-filter: goes with --subscription-churn; add that, or leave it out"
            ),
            (
                "conn --subscription-churn 0/s",
                "--subscription-churn: '0/s' is not above 0; leave it out for no limit"
            ),
            (
                "conn --subscription-churn 1/s --raw 00",
                "--subscription-churn: clients of --raw have no session to subscribe in; leave one of the two out"
            ),
            ("conn --storm 30%", "--storm: '30%' is not a storm; write it like 30%@5s, or 30%@5s:disconnect"),
            ("conn --storm 0%@1s", "--storm: 0% is no client; write it like 30%@5s, or leave it out"),
            ("conn --storm 5@1s", "--storm: '5' is not a share; write it like 0.1%, from 0% to 100%"),
            (
                "conn --storm 30%@20s",
                "--storm: 20s is not before the load's end, which --warmup and --duration put at 10s; raise --duration, "
                    + "or let the storm begin earlier"
            ),
            (
                "conn --storm 1%@1s --storm 30%@2500ms --duration 2s --warmup 500ms",
                "--storm: 2500ms is not before the load's end, which --warmup and --duration put at 2500ms; "
                    + "raise --duration, or let the storm begin earlier"
            ),
            (
                "conn --raw zz",
                "--raw: is neither bytes in hexadecimal, such as 'c0 00', nor a file, such as @connect.bin"
            ),
            ("conn --raw @/nowhere", "--raw: cannot read /nowhere (no such file); check the path and its permissions"),
        ]
    )
    func refuses(_ line: String, _ answer: String) {
        #expect(refusal(line) == ["clamor \(line.prefix { $0 != " " }): " + answer])
    }

    @Test(
        "what belongs to CONNECT is refused beside --raw",
        arguments: [
            "-u a", "--username a", "--auth scram-sha-1 -u a -P b", "-u a -P b", "-u a --password-file /etc/passwd",
            "--will-topic a", "--will-topic a --will-qos 1", "--receive-maximum 5", "--rcv-max 5",
            "--maximum-packet-size 6", "--topic-alias-maximum 7", "--req-response-info", "--no-req-problem-info",
            "--conn-user-properties=a:b", "-x 5", "--session-expiry-interval 5",
        ]
    )
    func besideRaw(_ flags: String) throws {
        _ = try options("conn " + flags)
        let names = flags.split(separator: " ").filter { $0.hasPrefix("-") }.map { $0.prefix { $0 != "=" } }
        let answer = refusal("conn --raw c000 " + flags)
        #expect(answer.count == names.count)
        for name in names {
            #expect(
                answer.contains(
                    "clamor conn: \(name): belongs to CONNECT, and --raw takes its place; leave one of the two out"
                )
            )
        }
    }

    @Test("a user in the URL is refused beside --raw too, and what is the client's own is not")
    func besideRawElse() throws {
        #expect(
            refusal("conn --raw c000 --url mqtt://a:b@h")
                == [
                    "clamor conn: --url: its user belongs to CONNECT, and --raw takes its place; leave one of the two out"
                ]
        )
        #expect(try options("conn --raw c000 --url mqtt://h -V 4 -k 5 -C false").raw == [0xC0, 0])
    }

    private func refusal(_ line: String) -> [String] {
        guard case .refused(let lines) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            return []
        }
        return lines
    }
}
