import FaultInjection
import FaultProxy
import NIOCore
import Scenario
import Testing
import Transport
import clamor

@Suite("Options of clamor proxy")
struct ProxyOptionsTests {
    private static func parse(_ line: String) -> Invocation {
        Invocation.parse(["proxy"] + line.split(separator: " ").map(String.init))
    }

    private static func options(_ line: String) throws -> ProxyOptions {
        guard case .proxy(let options) = self.parse(line) else { throw CancellationError() }
        return options
    }

    @Test("a server alone: no faults, on a free port of loopback")
    func alone() throws {
        var expected = ProxyOptions()
        expected.target = Target(host: "broker.example", port: 1884)
        #expect(try Self.options("broker.example:1884") == expected)
        #expect(expected.port == 0)
        #expect(expected.host == "127.0.0.1")
        #expect(expected.faults == ProxyFaults())
    }

    @Test("every flag")
    func flags() throws {
        var expected = ProxyOptions()
        expected.target = Target(host: "::1", port: 5222)
        expected.host = "0.0.0.0"
        expected.port = 1885
        expected.quiet = true
        expected.faults.delay = .milliseconds(20)
        expected.faults.delayEvery = 3
        expected.faults.rate = 65_536
        expected.faults.stall = FaultStall(length: .seconds(2), after: .milliseconds(500))
        expected.faults.cutEvery = .milliseconds(250)
        expected.faults.resetEvery = .seconds(60)
        expected.faults.fragment = 1...7
        let line = """
            [::1]:5222 -h 0.0.0.0 -p 1885 --quiet --delay 20ms --delay-every 3 --rate 64KiB/s --stall 2s@500ms \
            --cut 250ms --reset 1m --fragment 1-7
            """
        #expect(try Self.options(line) == expected)
    }

    @Test(
        "a delay is a time",
        arguments: [("5ms", TimeAmount.milliseconds(5)), ("150us", .microseconds(150))]
    )
    func delays(_ text: String, _ delay: TimeAmount) throws {
        #expect(try Self.options("h:1 --delay \(text)").faults.delay == delay)
    }

    @Test(
        "a rate is bytes a second",
        arguments: [("1000/s", 1_000.0), ("64KiB/s", 65_536), ("1MB/s", 1e6), ("500", 500)]
    )
    func rates(_ text: String, _ rate: Double) throws {
        #expect(try Self.options("h:1 --rate \(text)").faults.rate == rate)
    }

    static let noServer = "is not a server and its port; write it like 127.0.0.1:1883 or [::1]:5222"
    static let refused: [(line: String, words: String)] = [
        ("", "Missing expected argument '<host:port>'"),
        ("localhost", "HOST:PORT: 'localhost' \(noServer)"),
        ("localhost:", "HOST:PORT: 'localhost:' \(noServer)"),
        (":1883", "HOST:PORT: ':1883' \(noServer)"),
        ("h:0", "HOST:PORT: 'h:0' \(noServer)"),
        ("h:65536", "HOST:PORT: 'h:65536' \(noServer)"),
        ("::1:1883", "HOST:PORT: '::1:1883' \(noServer)"),
        ("mqtt://h:1883", "HOST:PORT: 'mqtt://h:1883' \(noServer)"),
        ("h:1 -p 65536", "-p: '65536' is not a whole number of 0 to 65535"),
        ("h:1 --delay 0ms", "--delay: '0ms' is not a time above 0; write it like 5ms or 1m30s"),
        ("h:1 --delay 20", "--delay: '20' is not a time above 0; write it like 5ms or 1m30s"),
        ("h:1 --delay 0%", "--delay: '0%' is not a time above 0; write it like 5ms or 1m30s"),
        ("h:1 --delay-every 2", "--delay-every: says which reads are delayed, not how long; add --delay"),
        ("h:1 --delay 1ms --delay-every 0", "--delay-every: '0' is not a whole number of 1 or more; write it like 100"),
        ("h:1 --rate 0/s", "--rate: '0/s' is no rate of bytes; write it like 64KiB/s or 1MB/s"),
        ("h:1 --rate fast", "--rate: 'fast' is no rate of bytes; write it like 64KiB/s or 1MB/s"),
        ("h:1 --stall 2s", "--stall: '2s' is not LENGTH@AFTER, each a time; write it like 2s@10s"),
        ("h:1 --stall 0s@1s", "--stall: '0s@1s' is not LENGTH@AFTER, each a time; write it like 2s@10s"),
        ("h:1 --cut 0s", "--cut: '0s' is not a time above 0; write it like 5ms or 1m30s"),
        ("h:1 --reset soon", "--reset: 'soon' is not a time above 0; write it like 5ms or 1m30s"),
        ("h:1 --fragment 7-1", "--fragment: '7-1' is not a range of 1 to 65536 bytes; write it like 1-7"),
        ("h:1 --fragment 0", "--fragment: '0' is not a range of 1 to 65536 bytes; write it like 1-7"),
        ("h:1 --drop 1%", "Unknown option '--drop'"),
    ]

    @Test("what is wrong is said in one line", arguments: refused)
    func refuses(_ line: String, _ words: String) throws {
        guard case .refused(let lines) = Self.parse(line) else {
            Issue.record("taken")
            return
        }
        let isParsers = !words.contains(": ")
        try #require(lines.count == 1)
        #expect(isParsers ? lines[0].hasPrefix("clamor proxy: \(words)") : lines[0] == "clamor proxy: \(words)")
    }
}
