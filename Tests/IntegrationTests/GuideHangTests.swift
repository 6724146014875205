import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("The examples of the guides, shortened, against a server that hangs half-way")
    struct GuideHangTests {
        private static let xmpp = GuideExample.all("xmpp message", "xmpp muc", "xmpp ping", "xmpp presence")

        @Test("there are examples of each kind")
        func examples() {
            #expect(Set(Self.xmpp.map { $0.words[1] }) == ["message", "muc", "ping", "presence"])
        }

        private func expectHonest(_ run: ClamorRun) {
            #expect([69, 99].contains(run.status), "\(run.ending.output)")
            #expect(run.record.books.allSatisfy { $0.balances && $0.lost ?? 0 == 0 }, "\(run.record.books)")
            // On a busy host the stall may begin before the first client is ready for its load.
            let hasLoad = run.record.population?.up ?? 0 > 0
            #expect(!hasLoad || run.record.books.contains { $0.outstanding ?? 0 > 0 }, "\(run.record.books)")
        }

        @Test(
            "none of them succeeds: XMPP",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)"),
            arguments: xmpp
        )
        func servers(_ example: GuideExample) async throws {
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
