import EmbeddedBroker
import FaultInjection
import Foundation
import NIOCore
import RunControl
import SASL
import Scenario
import TestSupport
import Testing
import clamor

@Suite("Access to the broker, its listeners and P2P")
struct BrokerOptionsTests {
    private func broker(_ arguments: [String]) -> BrokerOptions? {
        guard case .broker(let options) = Invocation.parse(["broker"] + arguments) else { return nil }
        return options
    }

    @Test("users are read from their file: the first colon parts name and password")
    func users() throws {
        let folder = try ScratchFolder()
        let path = try folder.write("ann:sesame\r\n\nbob:with:colon\nÉve:\n", to: "users")
        var expected = BrokerAccessOptions()
        expected.users = ["ann": Array("sesame".utf8), "bob": Array("with:colon".utf8), "Éve": []]
        #expect(self.broker(["--users", path])?.access == expected)
        expected.allowsAnonymous = true
        #expect(self.broker(["--users", path, "--allow-anonymous"])?.access == expected)
        expected.allowsAnonymous = false
        let proven = try folder.write("ann:sesame\nÉve:geheim\n", to: "proven")
        expected.users = ["ann": Array("sesame".utf8), "Éve": Array("geheim".utf8)]
        for (word, hash) in [("scram-sha-1", SCRAMHash.sha1), ("scram-sha-256", .sha256)] {
            expected.scram = hash
            #expect(self.broker(["--users", proven, "--auth", word])?.access == expected)
        }
        #expect(self.broker([])?.access == BrokerAccessOptions())
    }

    @Test("--broker hands them on as they are, behind the faults")
    func embedded() throws {
        let folder = try ScratchFolder()
        let path = try folder.write("ann:sesame", to: "users")
        let flags = "--users \(path) --drop 1% --auth scram-sha-256"
        guard let options = Invocation.parse(["conn", "-h", "embedded", "--broker", flags]).mqtt else {
            Issue.record("no run")
            return
        }
        #expect(
            options.target
                == .embedded(arguments: ["--drop", "1%", "--users", path, "--auth", "scram-sha-256"])
        )
    }

    @Test("a PROXY header is required of all clients, or of none")
    func proxy() {
        #expect(self.broker(["--proxy-protocol"])?.readsProxyHeader == true)
        #expect(self.broker([])?.readsProxyHeader == false)
    }

    @Test("a packet has 1 MiB at most, and more on request")
    func packetSize() {
        #expect(self.broker([])?.maximumPacketSize == 1_048_576)
        #expect(self.broker(["--maximum-packet-size", "5000000"])?.maximumPacketSize == 5_000_000)
        guard case .refused(let lines) = Invocation.parse(["broker", "--maximum-packet-size", "63"]) else {
            Issue.record("63 bytes are accepted")
            return
        }
        let refusal = "--maximum-packet-size: '63' is not a whole number of 64 to 268435460"
        #expect(lines.count == 1 && lines[0].hasSuffix(refusal), "\(lines)")
    }

    @Test(
        "P2P has the roots of a list, and a run hands them on",
        arguments: [
            ("", []), ("--p2p door", ["door"]), ("--p2p door,gate", ["door", "gate"]),
            ("--p2p door,gate,$x", ["door", "gate", "$x"]),
        ]
    )
    func p2p(_ flags: String, _ roots: [String]) {
        #expect(self.broker(flags.split(separator: " ").map(String.init))?.p2pRoots == roots)
        let line = ["conn", "-h", "embedded", "--broker", "--drop 1% \(flags)"]
        guard let options = Invocation.parse(line).mqtt else {
            Issue.record("no run")
            return
        }
        let handed = roots.isEmpty ? [] : ["--p2p", roots.joined(separator: ",")]
        #expect(options.target == .embedded(arguments: ["--drop", "1%"] + handed))
    }

    static let refused: [(flags: String, users: String, words: String)] = [
        ("--users /nowhere", "", "--users: cannot read /nowhere (no such file); check the path and its permissions"),
        ("--users FILE", "", "--users: FILE holds no users; write them like NAME:PASSWORD, one a line"),
        ("--users FILE", "ann:a\nsecret\n", "--users: line 2 of FILE is not NAME:PASSWORD"),
        ("--users FILE", ":secret\n", "--users: line 1 of FILE is not NAME:PASSWORD"),
        ("--users FILE", "a:b\n\na:c\n", "--users: line 3 of FILE has the name 'a' again; leave one of the two out"),
        ("--users /dev/null", "", "--users: /dev/null is no regular file; write the users into one"),
        (
            "--users FILE --auth scram-sha-256", "ann:a\nbob:\n",
            "--users: line 2 of FILE has a name or a password that SCRAM cannot use; change it"
        ),
        (
            "--users FILE --auth scram-sha-256", "ann:a\nb\u{A0}b:secret\n",
            "--users: line 2 of FILE has a name or a password that SCRAM cannot use; change it"
        ),
        (
            "--users FILE --auth scram-sha-256", "ann:a\nbob:\u{7}\n",
            "--users: line 2 of FILE has a name or a password that SCRAM cannot use; change it"
        ),
        ("--users FILE --auth plain", "a:b", "--auth: 'plain' is not one of scram-sha-256, scram-sha-1"),
        (
            "--users FILE --auth scram-sha-1 --allow-anonymous", "a:b",
            "--allow-anonymous: --auth admits no client without a user; leave one of the two out"
        ),
        ("--auth scram-sha-1", "", "--auth: is about users, and there are none; add --users"),
        ("--p2p a/b", "", "--p2p: 'a/b' is not a topic of one level; write it like --p2p door"),
        ("--p2p door,+", "", "--p2p: '+' is not a topic of one level; write it like --p2p door"),
        ("--p2p door#", "", "--p2p: 'door#' is not a topic of one level; write it like --p2p door"),
        ("--p2p door,", "", "--p2p: '' is not a topic of one level; write it like --p2p door"),
        ("--allow-anonymous", "", "--allow-anonymous: has no effect without --users; add that, or leave it out"),
    ]

    @Test("what is wrong with them is said in one line, without a password", arguments: refused)
    func refuses(_ flags: String, _ users: String, _ words: String) throws {
        let folder = try ScratchFolder()
        let path = try folder.write(users, to: "users")
        let text = flags.replacing("FILE", with: path)
        guard case .refused(let lines) = Invocation.parse(["broker"] + text.split(separator: " ").map(String.init))
        else {
            Issue.record("taken")
            return
        }
        #expect(lines == ["clamor broker: " + words.replacing("FILE", with: path)])
        // The same by way of a run.
        guard case .refused(let others) = Invocation.parse(["conn", "-h", "embedded", "--broker", text]) else {
            Issue.record("taken")
            return
        }
        #expect(others == ["clamor conn: --broker " + words.replacing("FILE", with: path)])
    }

    /// Values that the command line took in `--broker` and the broker then refused, and others.
    static let faults = [
        "--drop 0%", "--drop 2", "--drop x%", "--duplicate 0", "--reorder 1.5", "--delay 1m30", "--delay 5",
        "--delay 1ms --delay-every 0", "--delay-every 2", "--stall 2s", "--stall 0@2s", "--stall 1m30s@1",
        "--disconnect-every 0s", "--max-rate 0/s", "--max-rate 2000000000/s", "--fragment 1-100000", "--fragment 7-1",
        "--refuse 7", "--refuse 0", "--refuse 0x100", "--drop 1", "--drop 1 --refuse 7", "--drop",
        "--drop 1 2", "--drop 1 2 3", "--allow-anonymous=false",
    ]

    @Test("a wrong fault is refused in the same words by the broker and by a run", arguments: faults)
    func refusesFaults(_ text: String) {
        let words = text.split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(["broker"] + words) else {
            Issue.record("clamor broker took it")
            return
        }
        guard case .refused(let others) = Invocation.parse(["pub", "-h", "embedded", "--broker", text]) else {
            Issue.record("--broker took it")
            return
        }
        // A refusal of the argument parser names no flag of the broker.
        let isParsers = lines[0].hasSuffix("see clamor broker --help")
        #expect(
            others
                == lines.map { $0.replacing("clamor broker: ", with: "clamor pub: --broker\(isParsers ? ":" : "") ") }
        )
    }

    @Test("which messages are delayed is asked only where some are")
    func delayEvery() {
        guard case .refused(let lines) = Invocation.parse(["broker", "--delay-every", "2"]) else {
            Issue.record("taken")
            return
        }
        let words = "says which messages are delayed, not how long; add --delay"
        #expect(lines == ["clamor broker: --delay-every: \(words)"])
    }

    /// The options that the broker and the proxy have in common.
    static let shared = ["--delay-every 0", "--stall 2s", "--fragment 1-65537", "--fragment 7-1", "--stall 0@2s"]

    @Test("a wrong value is refused in the same words by the broker and the proxy", arguments: shared)
    func sharesWords(_ text: String) {
        let words = ["--delay", "1ms"] + text.split(separator: " ").map(String.init)
        guard case .refused(let broker) = Invocation.parse(["broker"] + words),
            case .refused(let proxy) = Invocation.parse(["proxy", "h:1"] + words)
        else {
            Issue.record("taken")
            return
        }
        #expect(proxy == broker.map { $0.replacing("clamor broker: ", with: "clamor proxy: ") })
    }

    @Test("a time is read as that of any other option", arguments: ["5ms", "1m30s", "1.5h", "0.25s", "1d2h3m4s5ms"])
    func times(_ text: String) throws {
        let faults = try #require(self.broker(["--delay", text, "--stall", "\(text)@\(text)"])?.faults)
        let time = TimeAmount.nanoseconds(try DurationText.parse(text))
        #expect(faults.delay == time)
        #expect(faults.stall == FaultStall(length: time, after: time))
    }

    @Test("SCRAM wants users on the other side too")
    func noUsers() {
        let line = "conn -h embedded --auth scram-sha-256 -u a -P b"
        guard case .refused(let lines) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("taken")
            return
        }
        #expect(lines == ["clamor conn: --auth: the embedded broker knows no users; add --broker '--users FILE'"])
    }
}
