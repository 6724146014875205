import Foundation
import RunControl
import Scenario
import Testing
import Transport
import Workloads
import clamor

@Suite("The command line of XMPP runs")
struct XMPPOptionsTests {
    private static let who = "--jid u%i@example.org --password p"

    private func parse(_ line: String, environment: [String: String] = [:]) -> Invocation {
        Invocation.parse(line.split(separator: " ").map(String.init), environment: environment)
    }

    private func options(_ line: String, environment: [String: String] = [:]) throws -> XMPPOptions {
        guard let options = self.parse(line, environment: environment).xmpp else {
            throw Unexpected(what: "\(self.parse(line, environment: environment))")
        }
        return options
    }

    private struct Unexpected: Error {
        let what: String
    }

    @Test("[RFC 7622 §3.2] the domain is compared as servers compare it, whatever way it was typed")
    func domain() throws {
        #expect(try self.options("xmpp login --jid u@XN--bcher-kva.Example. -P p").domain == "b\u{FC}cher.example")
    }

    @Test("has these defaults")
    func defaults() throws {
        let options = try self.options("xmpp message -h 127.0.0.1 \(Self.who)")
        #expect(options.kind == .message)
        #expect(options.name == "xmpp-message")
        #expect(options.target == .servers([Target(host: "127.0.0.1", port: 5222)]))
        #expect(options.operators == 1)
        #expect(options.listeners == 0)
        #expect(options.local == "u%i")
        #expect(options.domain == "example.org")
        #expect(options.resource == "clamor")
        #expect(options.tls == .required)
        // RFC 6120 §13.7.2.1: the domain, not the host, is who the certificate has to name.
        #expect(options.transport.tls?.domain == "example.org")
        #expect(options.window == 16)
        #expect(options.pairing == .neighbour)
        #expect(!options.isOpenLoop)
        #expect(options.hasLedger)
        #expect(try self.options("xmpp ping -h a \(Self.who)").window == 1)
        #expect(try !self.options("xmpp login -h a \(Self.who)").operates)
    }

    @Test(
        "finds the port by what is spoken",
        arguments: [
            ("", 5222), ("--tls off", 5222), ("--tls direct", 5223), ("--ws", 443), ("--ws --tls off", 80),
            ("-p 7", 7), ("--tls direct -p 7", 7),
        ]
    )
    func ports(_ flags: String, _ port: Int) throws {
        let options = try self.options("xmpp login -h a \(Self.who) \(flags)")
        #expect(options.target == .servers([Target(host: "a", port: port)]))
    }

    @Test("registers until every account is there, and removes them unless told to keep them")
    func register() throws {
        let options = try self.options("xmpp register -h a \(Self.who) -c 5")
        #expect(options.name == "xmpp-register")
        #expect(options.duration == nil)
        // So SIGINT is no regular end.
        #expect(!options.endsBySignal)
        #expect(!options.keepsAccounts)
        #expect(!options.operates)
        #expect(try self.options("xmpp register -h a \(Self.who) --keep").keepsAccounts)
        #expect(try self.options("xmpp register -h a \(Self.who) --duration 5s").duration == 5_000_000_000)
        let login = try self.options("xmpp login -h a \(Self.who) --register")
        #expect(login.registers && !login.keepsAccounts)
    }

    @Test(
        "a password file loses its line end, whichever it is, and nothing else",
        arguments: [
            ("s3cret", "s3cret"), ("s3cret\n", "s3cret"), ("s3cret\r\n", "s3cret"), ("s3cret\n\n", "s3cret\n"),
            ("s3cret\r", "s3cret\r"), (" s \r\n", " s "), ("s%i\n", "s%%i"),
        ]
    )
    func passwordFile(_ text: String, _ password: String) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "password-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(text.utf8).write(to: URL(filePath: path))
        #expect(try self.options("xmpp login -h a --jid u@x --password-file \(path)").password == password)
        guard let run = self.parse("conn -u u --password-file \(path)").mqtt else {
            throw Unexpected(what: "it was refused")
        }
        #expect(run.password == password)
    }

    @Test("a password file that is no UTF-8 is refused", arguments: ["xmpp login -h a --jid u@x", "conn -u u"])
    func foreignPassword(_ line: String) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "password-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data([0x73, 0xFF, 0x0A]).write(to: URL(filePath: path))
        guard case .refused(let lines) = self.parse("\(line) --password-file \(path)") else {
            throw Unexpected(what: "it was taken")
        }
        let words = ": --password-file: \(path) is no UTF-8, which passwords are sent as; convert it"
        #expect(lines.count == 1 && lines[0].hasSuffix(words), "\(lines)")
    }

    @Test("[RFC 6120 §3.2.1] without a host the domain is looked up")
    func service() throws {
        let options = try self.options("xmpp login \(Self.who) --resolver 127.0.0.1:53")
        #expect(options.target == .service(domain: "example.org", resolver: "127.0.0.1:53"))
    }

    @Test("takes several hosts, in turn")
    func hosts() throws {
        let options = try self.options("xmpp login -h a,b:7 \(Self.who)")
        #expect(options.target == .servers([Target(host: "a", port: 5222), Target(host: "b", port: 7)]))
    }

    @Test("takes the password from the environment, and shows it nowhere")
    func password() throws {
        let environment = ["CLAMOR_PASSWORD": "s3cret"]
        let options = try self.options("xmpp login -h a --jid u@b", environment: environment)
        #expect(options.password == "s3cret")
        let given = try self.options("xmpp login -h a --jid u@b --password s3cret")
        #expect(given.redactedCommand.joined(separator: " ") == "clamor xmpp login -h a --jid u@b --password ***")
    }

    @Test("reads a table of users, of which -n and -c choose")
    func table() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "users-\(UUID()).csv").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try "\u{FEFF}a@x,one\r\nb@x/phone,two,three\n\nc@x,\n".write(toFile: path, atomically: true, encoding: .utf8)
        let options = try self.options("xmpp login -h a -c 2 -n 1 --users \(path)")
        #expect(
            options.users == [
                XMPPUser(local: "b", domain: "x", resource: "phone", password: "two,three"),
                XMPPUser(local: "c", domain: "x", resource: "clamor", password: ""),
            ]
        )
        #expect(
            self.refusal("xmpp login -h a -c 4 --users \(path)")
                == "--users: \(path) has 3 users, too few for -c 4; add some"
        )
        try "a@x,one\ns3cret\n".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(self.refusal("xmpp login -h a --users \(path)") == "--users: line 2 of \(path) is not JID,PASSWORD")
        try "\"a@x\",\"s3cret\"\n".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(
            self.refusal("xmpp login -h a --users \(path)")
                == "--users: line 1 of \(path) is quoted; write JID,PASSWORD as they are"
        )
    }

    private func refusal(_ line: String) -> String? {
        guard case .refused(let lines) = self.parse(line) else { return nil }
        return lines.first.map { $0.replacing("clamor xmpp login: ", with: "") }
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let line: String
        let answer: String
        var testDescription: String { self.line }

        init(_ line: String, _ answer: String) {
            self.line = line
            self.answer = answer
        }
    }

    static let refusals = [
        Refusal(
            "xmpp",
            "clamor xmpp: which one? The commands are login, message, ping, muc, presence, register; see clamor xmpp --help"
        ),
        Refusal("xmpp -h", "clamor xmpp: -h is the host and needs a value; for help: clamor xmpp --help"),
        Refusal(
            "xmpp shout",
            "clamor xmpp: there is no command 'shout'; the commands are login, message, ping, muc, presence, register"
        ),
        Refusal(
            "xmpp login -p 5222 \(who)",
            "clamor xmpp login: -p: without -h the DNS says the port; add -h, or leave -p out"
        ),
        Refusal(
            "xmpp login --ws \(who)",
            "clamor xmpp login: --ws: the DNS tells of no WebSocket; add -h"
        ),
        Refusal(
            "xmpp login --resolver dns \(who)",
            "clamor xmpp login: --resolver: 'dns' is not an address; write it like 127.0.0.1:53"
        ),
        Refusal(
            "xmpp login -h a --password p",
            "clamor xmpp login: --jid: is missing: whom to log in as, such as 'user%i@example.org'; or give --users"
        ),
        Refusal(
            "xmpp login -h a --jid example.org --password p",
            "clamor xmpp login: --jid: 'example.org' is no user's JID; write it like 'user%i@example.org/clamor'"
        ),
        Refusal(
            "xmpp login -h a --jid u@x/ --password p",
            "clamor xmpp login: --jid: 'u@x/' is no user's JID; write it like 'user%i@example.org/clamor'"
        ),
        Refusal(
            "xmpp login -h a --jid u@x --password p -c 2",
            "clamor xmpp login: --jid: 'u@x' is the same for all 2 clients; put %i into it"
        ),
        Refusal(
            "xmpp login -h a --jid u%i@x%i --password p",
            "clamor xmpp login: --jid: the domain is the same for all clients; leave placeholders out of it"
        ),
        Refusal(
            "xmpp login -h a --jid u@x",
            "clamor xmpp login: -P: is missing; add it, or set CLAMOR_PASSWORD in the environment"
        ),
        Refusal(
            "xmpp login -h embedded \(who)",
            "clamor xmpp login: -h: the embedded broker speaks MQTT alone; name a server"
        ),
        Refusal(
            "xmpp login -h a \(who) --tls maybe",
            "clamor xmpp login: --tls: 'maybe' is not one of allowed, preferred, required, direct, off"
        ),
        Refusal(
            "xmpp login -h a \(who) --tls off --insecure",
            "clamor xmpp login: --insecure: is a matter of TLS; leave it out, or leave --tls off out"
        ),
        Refusal(
            "xmpp login -h a \(who) --ws --tls required",
            "clamor xmpp login: --tls: a WebSocket has its TLS below it; use --tls direct or --tls off with --ws"
        ),
        Refusal(
            "xmpp login -h a \(who) --mechanism CRAM-MD5",
            "clamor xmpp login: --mechanism: 'CRAM-MD5' is not one of SCRAM-SHA-512-PLUS, SCRAM-SHA-256-PLUS, "
                + "SCRAM-SHA-1-PLUS, SCRAM-SHA-512, SCRAM-SHA-256, SCRAM-SHA-1, PLAIN, DIGEST-MD5, EXTERNAL, ANONYMOUS"
        ),
        Refusal(
            "xmpp login -h a \(who) --mechanism EXTERNAL",
            "clamor xmpp login: --mechanism: EXTERNAL shows a certificate; add --certfile and --keyfile"
        ),
        Refusal(
            "xmpp login -h a \(who) --resolver 127.0.0.1:53",
            "clamor xmpp login: --resolver: -h says where the server is; leave one of the two out"
        ),
        Refusal(
            "xmpp message -h a \(who) --pairing ring",
            "clamor xmpp message: --pairing: 'ring' is not one of neighbour, random, hotspot"
        ),
        Refusal(
            "xmpp message -h a \(who) --pairing hotspot",
            "clamor xmpp message: --pairing: hotspot has no answers to go by, so it needs a pace; add --rate or -I"
        ),
        Refusal("xmpp message -h a \(who) -F 0", "clamor xmpp message: -F: '0' is not a whole number of 1 to 65535"),
        Refusal(
            "xmpp message -h a \(who) -s 2MB",
            "clamor xmpp message: -s: a stanza carries 1000000 bytes at most"
        ),
        Refusal(
            "xmpp message -h a \(who) -m \u{01}",
            "clamor xmpp message: -m: is not text that XML can hold: UTF-8 without control characters but tab and line "
                + "ends, nor U+FFFE and U+FFFF"
        ),
        Refusal(
            "xmpp message -h a \(who) -m a\u{FFFE}",
            "clamor xmpp message: -m: is not text that XML can hold: UTF-8 without control characters but tab and line "
                + "ends, nor U+FFFE and U+FFFF"
        ),
        Refusal(
            "xmpp message -h a \(who) -m \u{FFFF}",
            "clamor xmpp message: -m: is not text that XML can hold: UTF-8 without control characters but tab and line "
                + "ends, nor U+FFFE and U+FFFF"
        ),
        Refusal(
            "xmpp ping -h a \(who) -F 1025",
            "clamor xmpp ping: -F: '1025' is not a whole number of 1 to 1024"
        ),
        Refusal(
            "xmpp message -h a --jid u%i@x --mechanism ANONYMOUS",
            "clamor xmpp message: --mechanism: with ANONYMOUS the server names the clients, so no client could write to another"
        ),
        Refusal(
            "xmpp login -h a \(who) --keep",
            "clamor xmpp login: --keep: is about the accounts that --register creates; add that, or leave it out"
        ),
        Refusal(
            "xmpp login -h a --jid u%i@x --mechanism ANONYMOUS --register",
            "clamor xmpp login: --register: ANONYMOUS has no account that could be created"
        ),
        Refusal(
            "xmpp register -h a --jid u%i@x --password a\u{01}b",
            "clamor xmpp register: --password: a password has characters that XML cannot hold, so no account can be created "
                + "with it"
        ),
        Refusal(
            "xmpp register -h a \(who) --register",
            "clamor xmpp register: --register: is what this command does anyway; leave it out"
        ),
        Refusal(
            "xmpp register -h a \(who) --sm",
            "clamor xmpp register: --sm: no client stays logged in here; leave it out"
        ),
        Refusal(
            "xmpp register -h a \(who) --churn 5/s",
            "clamor xmpp register: --churn: an account is created once, and its connection ends then; leave it out"
        ),
        Refusal(
            "xmpp register -h a \(who) --reconnect 3",
            "clamor xmpp register: --reconnect: an account is created once, and its connection ends then; leave it out"
        ),
        Refusal(
            "xmpp register -h a --jid u@x/%i --password p -c 2",
            "clamor xmpp register: --jid: is one account for all 2 clients; put %i before the @"
        ),
        Refusal(
            "xmpp register -h a \(who) -L 5",
            "clamor xmpp register: Unknown option '-L'; see clamor xmpp register --help"
        ),
        Refusal(
            "xmpp ping -h a \(who) -s 5",
            "clamor xmpp ping: Unknown option '-s'; see clamor xmpp ping --help"
        ),
    ]

    @Test("each mistake has its line", arguments: refusals)
    func refuses(_ refusal: Refusal) {
        guard case .refused(let lines) = self.parse(refusal.line) else {
            Issue.record("it was taken")
            return
        }
        #expect(lines.first == refusal.answer)
    }

    @Test("a body is the header's text and more, or there is no ledger", arguments: [("44", true), ("43", false)])
    func ledger(_ size: String, _ hasLedger: Bool) throws {
        #expect(try self.options("xmpp message -h a \(Self.who) -s \(size)").hasLedger == hasLedger)
    }
}
