import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("A PROXY header from the command line")
    struct ProxyTests {
        /// How a server that wants a header ends a connection without one: by FIN or by RST.
        private static func refusal(_ run: ClamorRun) {
            #expect(run.status == 69, "\(run.ending.errors)")
            #expect(run.ending.errorLines.count == 1, "\(run.ending.errors)")
            #expect(run.record.errors.allSatisfy { ["closed", "reset"].contains($0.kind) })
            #expect(run.record.errors.reduce(0) { $0 + $1.count } == 3)
        }

        @Test(
            "ejabberd takes what --proxy-protocol sends, and refuses who does not send it",
            .enabled(if: Ejabberd.isInstalled, Comment(rawValue: Ejabberd.missing))
        )
        func ejabberd() async throws {
            try await Ejabberd.with { server in
                let account = "-u \(server.username) -P \(Ejabberd.password)"
                for version in ["v1", "v2"] {
                    let run = try await ClamorRun.of(
                        """
                        pubsub -p \(server.proxyPort) -c 3 -q 0,1,2 -L 90 --rate 300/s \(account) \
                        --proxy-protocol \(version)
                        """
                    )
                    #expect(run.status == 0, "\(run.ending.errors)")
                    #expect(run.record.perQoS("delivery_expected") == [30, 30, 30])
                    #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
                }
                let line = "conn -c 3 --duration 50ms \(account)"
                Self.refusal(try await ClamorRun.of("\(line) -p \(server.proxyPort)"))
                // The header is no CONNECT for a listener that wants none.
                Self.refusal(try await ClamorRun.of("\(line) -p \(server.port) --proxy-protocol v1"))
            }
        }

        @Test("clamor broker --proxy-protocol takes either form, tells whose connections they were, and refuses others")
        func broker() async throws {
            let (_, counters) = try await BrokerProgram.with("--proxy-protocol") { broker in
                let line = "conn -p \(broker.port) -c 3 --duration 50ms"
                for (version, source) in [("v1", "127.0.0.2"), ("v2", "127.0.0.3")] {
                    let run = try await ClamorRun.of("\(line) --proxy-protocol \(version) --ifaddr \(source)")
                    #expect(run.status == 0, "\(run.ending.errors)")
                }
                Self.refusal(try await ClamorRun.of(line))
            }
            #expect(counters.proxied == ["127.0.0.2": 3, "127.0.0.3": 3])
            #expect(counters.proxyRefused == 3)
            #expect(counters.connects == 6)
            #expect(counters.connections == 6)
        }

        @Test("the embedded broker takes it below TLS and WebSocket too", arguments: ["", "-S", "--ws", "--ws -S"])
        func embedded(_ flags: String) async throws {
            let run = try await ClamorRun.of(
                "pubsub -h embedded -c 3 -q 0,1,2 -L 30 --proxy-protocol v2 \(flags)"
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.perQoS("delivery_expected") == [10, 10, 10])
            #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
            #expect(run.record.books.allSatisfy { $0.balances })
        }
    }
}
