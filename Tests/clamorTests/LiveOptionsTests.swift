import RunControl
import Scenario
import Testing
import clamor

@Suite("The endpoint and the watched servers on the command line")
struct LiveOptionsTests {
    private func options(_ line: String) throws -> LiveOptions {
        let invocation = Invocation.parse(line.split(separator: " ").map(String.init))
        switch invocation {
        case .run(let scenario): return scenario.common.live
        case .capacity(let options): return options.live
        default: throw ScenarioFile.Unexpected(what: "\(invocation)")
        }
    }

    static let endpoints: [(words: String, host: String, port: Int)] = [
        ("--prometheus", "127.0.0.1", 9464),
        ("--prometheus -c 2", "127.0.0.1", 9464),
        ("--restapi", "127.0.0.1", 9464),
        ("--prometheus 9000", "127.0.0.1", 9000),
        ("--restapi=9000", "127.0.0.1", 9000),
        ("--prometheus 0", "127.0.0.1", 0),
        ("--prometheus 0.0.0.0:9000", "0.0.0.0", 9000),
        ("--prometheus [::1]:9000", "::1", 9000),
    ]

    @Test("an endpoint has a port, and on request another address", arguments: endpoints)
    func endpoint(_ words: String, _ host: String, _ port: Int) throws {
        let endpoint = try #require(try self.options("pub -h a \(words)").endpoint)
        #expect((endpoint.host, endpoint.port) == (host, port))
    }

    @Test("without the option there is none")
    func none() throws {
        let options = try self.options("pub -h a")
        #expect(options.endpoint == nil)
        #expect(!options.watches)
    }

    @Test("a search has one too, and its steps none")
    func capacity() throws {
        let invocation = Invocation.parse(
            ["capacity", "--prometheus", "9000", "--slo", "publish_ack_duration p99 < 1s", "pub", "-h", "a", "-q", "1"]
        )
        guard case .capacity(let options) = invocation else {
            Issue.record("\(invocation)")
            return
        }
        #expect(options.live.endpoint?.port == 9000)
        #expect(!options.arguments(load: 1, directory: "d").contains("--prometheus"))
    }

    @Test("each URL begins a page, and the words after it are its series")
    func pages() throws {
        let options = try self.options(
            "pub -h a --watch-prometheus http://b:1/metrics up emqx_* http://c/m -q 1 --watch-pid 12 --watch-pid beam.smp"
        )
        #expect(options.pages.map(\.url) == ["http://b:1/metrics", "http://c/m"])
        #expect(options.pages.map(\.patterns) == [["up", "emqx_*"], []])
        #expect(options.processes == ["12", "beam.smp"])
        #expect(options.watches)
        #expect(try self.options("pub -h a --watch-sys").readsSys)
    }

    @Test("the server is asked for its name unless the option or the environment say otherwise")
    func serverName() throws {
        #expect(try self.options("pub -h a").asksServer)
        #expect(try !self.options("pub -h a --server-name off").asksServer)
        for (words, isAsked) in [("", false), (" --server-name on", true)] {
            let words = "pub -h a\(words)".split(separator: " ").map(String.init)
            guard let options = Invocation.parse(words, environment: ["CLAMOR_SERVER_NAME": "off"]).mqtt else {
                Issue.record("\(words)")
                continue
            }
            #expect(options.common.live.asksServer == isAsked)
        }
    }

    static let refusals: [(line: String, answer: String)] = [
        (
            "pub -h a --prometheus 70000",
            "clamor pub: --prometheus: '70000' is no port of 0 to 65,535; write it like 9464, or 0.0.0.0:9464"
        ),
        (
            "pub -h a --prometheus here:x",
            "clamor pub: --prometheus: 'here:x' is no port of 0 to 65,535; write it like 9464, or 0.0.0.0:9464"
        ),
        (
            "pub -h a --prometheus-linger 1s",
            "clamor pub: --prometheus-linger: is the wait of --prometheus; add that, or leave it out"
        ),
        (
            "pub -h a --watch-pid /usr/sbin/mosquitto",
            "clamor pub: --watch-pid: '/usr/sbin/mosquitto' is neither a process identifier nor a name; write it like 4711 or mosquitto"
        ),
        (
            "pub -h a --watch-prometheus up",
            "clamor pub: --watch-prometheus: 'up' comes before a URL; write it like http://127.0.0.1:9090/metrics 'up'"
        ),
        (
            "pub -h a --watch-prometheus ftp://b/m",
            "clamor pub: --watch-prometheus: 'ftp://b/m' is no page of metrics; write it like http://127.0.0.1:9090/metrics"
        ),
        (
            "pub -h embedded --watch-pid mosquitto",
            "clamor pub: --watch-pid: the load goes to the embedded broker; name the server with -h, or leave it out"
        ),
        ("pub -h a --color red", "clamor pub: --color: 'red' is not one of auto, always, never"),
    ]

    @Test("each mistake has its line", arguments: refusals)
    func refuses(_ line: String, _ answer: String) {
        guard case .refused(let lines) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("is taken")
            return
        }
        #expect(lines == [answer])
    }

    @Test(
        "a threshold on a server needs the option that watches it",
        arguments: [
            ("server_cpu max < 1", ["--watch-pid", "x"], "server_cpu needs --watch-pid NAME"),
            ("server_sys{topic=broker/clients/connected} max < 1", ["--watch-sys"], "server_sys needs --watch-sys"),
            (
                "server_metric{series=up} min > 0", ["--watch-prometheus", "http://b/m"],
                "server_metric needs --watch-prometheus URL"
            ),
        ]
    )
    func thresholds(_ sentence: String, _ option: [String], _ reason: String) {
        let words = ["pub", "-h", "a", "-q", "1", "--threshold", sentence]
        guard case .refused(let lines) = Invocation.parse(words) else {
            Issue.record("is taken")
            return
        }
        #expect(lines == ["clamor pub: --threshold: '\(sentence)': \(reason)"])
        guard case .run = Invocation.parse(words + option) else {
            Issue.record("\(Invocation.parse(words + option))")
            return
        }
    }

    @Test("of several segments the first one watches the server, and none has the endpoint")
    func segments() {
        let words = [
            "pub", "-h", "a", "-c", "2", "--watch-pid", "mosquitto", "--watch-prometheus", "http://b/m", "up",
            "--watch-sys",
            "--prometheus", "0", "-q", "1", "--threshold", "server_cpu max < 9",
        ]
        let processes = SegmentOptions.Processes(count: 2, arguments: words)
        let own = (0..<2).map { processes.arguments(of: $0, seed: 1, threads: 1, directory: "d") }
        #expect(own[0].starts(with: words.filter { !["--prometheus", "0"].contains($0) }))
        #expect(own[1].starts(with: ["pub", "-h", "a", "-c", "2", "-q", "1", "--threshold", "server_cpu max < 9"]))
        // A segment takes the threshold although another one watches.
        for arguments in own {
            guard case .run = Invocation.parse(arguments) else {
                Issue.record("\(Invocation.parse(arguments))")
                continue
            }
        }
    }
}
