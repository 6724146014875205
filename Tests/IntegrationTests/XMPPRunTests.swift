import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("clamor xmpp on real servers")
    struct XMPPRunTests {
        private static func who(_ server: XMPPServer) -> String {
            "-h 127.0.0.1 --jid user%i@\(server.domain)/clamor --password secret \(XMPPServer.patience)"
        }

        private func known(_ record: RunRecord, _ name: String, _ stanza: String) -> UInt64 {
            let metric = record.metrics.first { $0.name == name && $0.labels == ["stanza": stanza] }
            return UInt64(metric?.counter?.value ?? 0)
        }

        @Test("messages all arrive, once and in order, and the books balance", arguments: XMPPServer.Kind.installed)
        func messages(_ kind: XMPPServer.Kind) async throws {
            // Of its own: a client sends at once, and a server that is busy with other tests may take its contact's
            // presence later than its first messages, which then go to the store. On a host without an idle core that
            // happens to one of its own too. Those messages are outstanding, and the next run has to do without.
            try await XMPPServer.with(kind, users: 5, isOwn: true) { server in
                var run: ClamorRun
                var attempts = 0
                repeat {
                    run = try await ClamorRun.of(
                        "xmpp message \(Self.who(server)) -p \(server.port) --cacertfile \(server.certificates.authority) "
                            + "-c 5 -s 64 --rate 500/s -L 500 --threads 2"
                    )
                    attempts += 1
                    #expect(run.record.books.first.map { ($0.received ?? 0) + ($0.deliveryOutstanding ?? 0) } == 500)
                } while run.record.books.first?.received != 500 && attempts < 4
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.errors.isEmpty)
                for name in ["stanza_sent", "stanza_confirmed", "delivery_expected"] {
                    #expect(self.known(run.record, name, "message") == 500, "\(name)")
                }
                #expect(self.known(run.record, "delivery_lost", "message") == 0)
                #expect(self.known(run.record, "delivery_duplicated", "message") == 0)
                #expect(self.known(run.record, "delivery_reordered", "message") == 0)
                #expect(run.record.books.first?.stanza == "message")
                #expect(run.record.books.first?.received == 500)
                let xmpp: Labels = ["protocol": "xmpp"]
                // Among them 500 messages; one client at a time has its reads timed.
                #expect(run.record.count("decode_packets", xmpp) >= 500)
                #expect(run.record.count("reads", xmpp) > 0)
                let decoding = run.record.metrics.first { $0.name == "decode_time" && $0.labels == xmpp }
                #expect(try #require(decoding?.counter?.value) > 0)
                let phases = Set(run.record.metrics.filter { $0.name == "connect_duration" }.map { $0.labels["phase"] })
                #expect(phases == ["tcp", "tls", "stream", "sasl", "bind", "session", "total"])
                // STARTTLS.
                #expect(run.record.tlsVersions == ["TLSv1.3": 5])
            }
        }

        @Test("pings are all answered", arguments: XMPPServer.Kind.installed)
        func pings(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 3) { server in
                let run = try await ClamorRun.of(
                    "xmpp ping \(Self.who(server)) -p \(server.port) --tls off -c 3 -F 2 -L 300"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(self.known(run.record, "stanza_answered", "iq") == 300)
                #expect(run.record.books.first?.acked == 300)
                let count = run.record.metrics.first { $0.name == "iq_duration" }?.duration?.count
                #expect(count == 300)
            }
        }

        /// Four seconds after the first client nothing more comes through the proxy, and no connection ends.
        @Test(
            "a server that hangs for good: what it did not answer is outstanding",
            arguments: XMPPServer.Kind.installed,
            ["message", "ping"]
        )
        func hangs(_ kind: XMPPServer.Kind, _ load: String) async throws {
            try await XMPPServer.with(kind, users: 4) { server in
                let (run, _, _) = try await ProxyProgram.with(before: server.port, "--stall 10m@4s") { proxy in
                    try await ClamorRun.of(
                        "xmpp \(load) \(Self.who(server)) -p \(proxy.port) --tls off -c 4 --rate 200/s -d 8s --drain 1s",
                        "--threshold",
                        "error_rate < 0.1%"
                    )
                }
                #expect(run.status == 99, "\(run.ending.errors)")
                #expect(run.record.thresholds.map(\.state) == [.broken])
                let books = try #require(run.record.books.first)
                #expect(books.balances)
                #expect(books.offered == 1_600 && books.outstanding ?? 0 > 300)
                #expect(books.lost ?? 0 == 0)
                #expect(run.record.verdict?.reasons.contains { $0.code == "server-silent" } == true)
            }
        }

        @Test(
            "a server that limits its clients' rate is reported, and one that does not is not",
            arguments: XMPPServer.Kind.installed,
            [true, false]
        )
        func shaper(_ kind: XMPPServer.Kind, _ isLimited: Bool) async throws {
            let limit = kind == .ejabberd ? 3_000 : 10_000
            // Without the limit the load is as much as the server carries.
            try await XMPPServer.with(kind, users: 4, isOwn: true, limit: isLimited ? limit : nil) { server in
                // A wrong note must never be. That one is missing says something only where the host let the limit show:
                // other work makes the seconds uneven, and then the watch holds its tongue. Hence three turns.
                var isTold = false
                var showed = 0
                for _ in 0..<(isLimited ? 3 : 1) where !isTold {
                    let run = try await ClamorRun.of(
                        "xmpp message \(Self.who(server)) -p \(server.port) --tls off -c 4 -F 4 -s 256 --duration 12s "
                            + "--drain 1s"
                    )
                    #expect(run.status == 0, "\(run.ending.errors)")
                    let hints = (run.record.notes ?? []).filter { $0.code == "server-shaper" }
                    // However busy the host is, only a server with a limit is reported, and only with that limit.
                    #expect(hints.allSatisfy { isLimited && $0.limit == Double(limit) }, "\(hints)")
                    let calm = try Self.calmSeconds(run)
                    if run.record.state == .generatorLimited || calm.count < 4 {
                        #expect(hints.isEmpty, "\(calm) messages in calm seconds, \(run.record.reasonCodes)")
                    }
                    isTold = !hints.isEmpty
                    if !isTold, try Self.isPlain(run, calm) { showed += 1 }
                }
                if isLimited { #expect(isTold || showed < 3) }
            }
        }

        /// Messages delivered in each second of the last two thirds of the load in which the host had CPU to spare.
        private static func calmSeconds(_ run: ClamorRun) throws -> [Double] {
            let text = try String(contentsOfFile: run.directory + "/timeline.csv", encoding: .utf8)
            var order: [String] = []
            var full: Set<String> = []
            var received: [String: Double] = [:]
            for line in text.split(separator: "\n").dropFirst() {
                let cells = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
                guard cells[1] == "measure" else { continue }
                if order.last != cells[0] { order.append(cells[0]) }
                let value = Double(cells[6]) ?? 0
                if cells[2] == "host_cpu_idle", value < 0.2 { full.insert(cells[0]) }
                if cells[2] == "host_cpu_pressure", value > 0.25 { full.insert(cells[0]) }
                if cells[2] == "received", cells[3].contains("message") { received[cells[0], default: 0] += value }
            }
            return order.dropFirst(max(1, order.count / 3)).filter { !full.contains($0) }.map { received[$0] ?? 0 }
        }

        /// Whether any eye sees the limit: seven calm seconds, a tenth apart at most, and a way to the server that is much
        /// shorter than the answers take.
        private static func isPlain(_ run: ClamorRun, _ calm: [Double]) throws -> Bool {
            guard calm.count >= 7, let low = calm.min(), let high = calm.max(), low >= high * 0.9 else { return false }
            let way = run.record.metrics.first { $0.name == "connect_duration" && $0.labels["phase"] == "tcp" }
            return try #require(way?.duration?.p50) < 0.005
        }

        @Test(
            "an impossible login is reported in one line, without the password",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)")
        )
        func refusals() async throws {
            try await XMPPServer.with(.ejabberd, users: 1) { server in
                let wrong = try await ClamorRun.of(
                    "xmpp login -h 127.0.0.1 --jid user1@\(server.domain) --password s3cret -p \(server.port) "
                        + "--cacertfile \(server.certificates.authority)"
                )
                #expect(wrong.status == 69)
                #expect(
                    wrong.ending.errors.hasPrefix(
                        "clamor: every connect attempt failed: the server refused the login: not-authorized"
                    )
                )
                let text = try String(contentsOfFile: wrong.directory + "/run.json", encoding: .utf8)
                #expect(!text.contains("s3cret"))
                #expect(wrong.record.errors.map(\.kind) == ["not-authorized"])

                let stranger = try await ClamorRun.of("xmpp login \(Self.who(server)) -p \(server.port)")
                #expect(stranger.status == 69)
                #expect(stranger.record.errors.map(\.kind) == ["tls"])
                #expect(stranger.ending.errors.contains("certificate"), "\(stranger.ending.errors)")
            }
        }
    }
}
