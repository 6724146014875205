import Foundation
import Measurement
import TestSupport
import Testing

/// An example of the guides, made small and short, so that a server can hang in its middle.
private struct GuideExample: Hashable, CustomTestStringConvertible {
    let words: [String]

    var testDescription: String { self.words.joined(separator: " ") }

    /// The options that shape what is due, with the values that a short run has instead of the guide's.
    private static let shapes: [String: @Sendable (String) -> String] = [
        "-q": { $0 }, "-F": { $0 }, "-C": { $0 }, "-x": { $0 }, "--topology": { $0 }, "--reconnect": { $0 },
        "-c": { "\(min(Int($0) ?? 10, 12))" },
        "--rate": { "\(min(Int($0.prefix { $0.isNumber }) ?? 100, 120))/s" },
        "--rooms": { _ in "2" }, "--room-size": { _ in "4" }, "--contacts": { _ in "3" },
    ]

    init?(_ line: Substring, commands: [String]) {
        guard let all = MarkdownPage.arguments(line), let command = commands.first(where: { line.contains(" \($0) ") })
        else { return nil }
        let isRoom = all.contains("--rooms")
        var kept: [String] = []
        for (name, value) in zip(all, all.dropFirst()) {
            guard let shape = Self.shapes[name], !(isRoom && name == "-c") else { continue }
            kept += [name, shape(value)]
        }
        self.words = command.split(separator: " ").map(String.init) + kept
    }

    static func all(_ commands: String...) -> [GuideExample] {
        let lines = MarkdownPage.guides.flatMap { (try? MarkdownPage($0).blocks.flatMap(\.lines)) ?? [] }
        var examples: [GuideExample] = []
        for line in lines {
            guard let example = GuideExample(line, commands: commands), !examples.contains(example) else { continue }
            examples.append(example)
        }
        return examples
    }
}

extension Integration {
    @Suite("The examples of the guides, shortened, against a server that hangs half-way")
    struct GuideHangTests {
        private static let mqtt = GuideExample.all("pub", "pubsub")
        private static let xmpp = GuideExample.all("xmpp message", "xmpp muc", "xmpp ping", "xmpp presence")

        @Test("there are examples of each kind")
        func examples() {
            #expect(Self.mqtt.count >= 10)
            #expect(Set(Self.xmpp.map { $0.words[1] }) == ["message", "muc", "ping", "presence"])
        }

        private func expectHonest(_ run: ClamorRun) {
            #expect([69, 99].contains(run.status), "\(run.ending.output)")
            #expect(run.record.books.allSatisfy { $0.balances && $0.lost ?? 0 == 0 }, "\(run.record.books)")
            #expect(run.record.books.contains { $0.outstanding ?? 0 > 0 }, "\(run.record.books)")
        }

        @Test("none of them succeeds: MQTT", arguments: mqtt)
        fileprivate func brokers(_ example: GuideExample) async throws {
            let (run, _) = try await BrokerProgram.with("--stall 10m@2s") { broker in
                let place = ["-h", "127.0.0.1", "-p", "\(broker.port)", "-d", "4s", "--drain", "1s"]
                return try await ClamorRun.of((example.words + place).joined(separator: " "))
            }
            self.expectHonest(run)
        }

        @Test(
            "none of them succeeds: XMPP",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)"),
            arguments: xmpp
        )
        fileprivate func servers(_ example: GuideExample) async throws {
            try await XMPPServer.with(.ejabberd, users: 12) { server in
                let (run, _, _) = try await ProxyProgram.with(before: server.port, "--stall 10m@3s") { proxy in
                    let place =
                        "-h 127.0.0.1 -p \(proxy.port) --jid user%i@\(server.domain) -P \(XMPPServer.password) "
                        + "--tls off -d 5s --drain 1s"
                    return try await ClamorRun.of("\(example.words.joined(separator: " ")) \(place)")
                }
                self.expectHonest(run)
            }
        }
    }
}
