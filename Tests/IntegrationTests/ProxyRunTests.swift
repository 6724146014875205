import Measurement
import TestSupport
import Testing

extension Integration {
    /// Measurements through `clamor proxy`, in front of the embedded broker and of other servers.
    ///
    /// The tests compare counts, and lower bounds of times, so other load on the host does not matter.
    @Suite("Faults in front of any server")
    struct ProxyRunTests {
        private static let everyQoS = "pubsub -c 6 -q 0,1,2 -s 64 -L 300 --rate 300/s"

        private static func expectAll(_ run: ClamorRun) {
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.books.flatMap(\.imbalances).isEmpty)
            #expect(run.record.errors.isEmpty)
            #expect(run.record.perQoS("delivery_expected") == [100, 100, 100])
            for name in ["delivery_lost", "delivery_duplicated", "delivery_reordered"] {
                #expect(run.record.perQoS(name) == [0, 0, 0], "\(name)")
            }
        }

        /// Twelve clients, each of which ended in good order: by its own FIN, or the server's in answer to DISCONNECT.
        private static func expectAll(_ counters: ProxyProgram.Counters) {
            #expect(counters.connections == 12)
            #expect(Set(counters.ends.keys).isSubset(of: ["client", "server"]), "\(counters.ends)")
            #expect(counters.ends.values.reduce(0, +) == 12)
            #expect(counters.isLossless)
            #expect(counters.turnedAway.isEmpty)
        }

        static let ways = ["", "--fragment 1-7", "--fragment 1", "--delay 5ms", "--delay 2ms --delay-every 2"]

        @Test(
            "every message at each QoS arrives once and in order, behind mosquitto",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
            arguments: ways
        )
        func mosquitto(_ faults: String) async throws {
            try await Mosquitto.with { broker in
                let (run, counters, errors) = try await ProxyProgram.with(before: broker.port, faults) { proxy in
                    try await ClamorRun.of("\(Self.everyQoS) -p \(proxy.port)")
                }
                Self.expectAll(run)
                Self.expectAll(counters)
                #expect(errors.isEmpty)
            }
        }

        @Test("and behind the embedded broker, with all that can be done to bytes at once")
        func embedded() async throws {
            let ((run, counters, errors), broker) = try await BrokerProgram.with { broker in
                try await ProxyProgram.with(before: broker.port, "--fragment 1-7 --delay 3ms --rate 1MB/s") { proxy in
                    try await ClamorRun.of("\(Self.everyQoS) -p \(proxy.port)")
                }
            }
            Self.expectAll(run)
            Self.expectAll(counters)
            #expect(errors.isEmpty)
            #expect(broker.received.all == [100, 100, 100])
            #expect(broker.delivered.all == [100, 100, 100])
            #expect(broker.connections == 12)
        }

        @Test("TLS goes through it in pieces of a byte", .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"))
        func tls() async throws {
            let certificates = try await Certificates.all()
            let listener = [
                "cafile \(certificates.authority)", "certfile \(certificates.certificate(.server))",
                "keyfile \(certificates.key(.server))",
            ]
            try await Mosquitto.with(listener: listener) { broker in
                let (run, counters, _) = try await ProxyProgram.with(before: broker.port, "--fragment 1") { proxy in
                    try await ClamorRun.of(
                        "\(Self.everyQoS) -p \(proxy.port) -S --cacertfile \(certificates.authority)"
                    )
                }
                Self.expectAll(run)
                #expect(counters.connections == 12)
                #expect(counters.turnedAway.isEmpty)
            }
        }

        @Test(
            "XMPP goes through it in pieces",
            .disabled(if: XMPPServer.waitsForMore, "expat of this host has servers wait for more than a piece"),
            arguments: XMPPServer.Kind.installed
        )
        func xmpp(_ kind: XMPPServer.Kind) async throws {
            try await XMPPServer.with(kind, users: 3) { server in
                let (run, counters, _) = try await ProxyProgram.with(before: server.port, "--fragment 1-7") { proxy in
                    try await ClamorRun.of(
                        "xmpp message -h 127.0.0.1 --jid user%i@\(server.domain)/clamor --password secret "
                            + "\(XMPPServer.patience) -p \(proxy.port) --cacertfile \(server.certificates.authority) -c 3 -s 64 --rate 100/s -L 60"
                    )
                }
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.errors.isEmpty)
                for (name, count) in [("delivery_expected", 60), ("delivery_lost", 0), ("delivery_duplicated", 0)] {
                    #expect(run.record.count(name, ["stanza": "message"]) == count, "\(name)")
                }
                #expect(counters.connections == 3)
                #expect(counters.turnedAway.isEmpty)
            }
        }

        @Test(
            "a delay is in every acknowledgement, at QoS 2 twice",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)")
        )
        func delay() async throws {
            try await Mosquitto.with { broker in
                let (run, counters, _) = try await ProxyProgram.with(before: broker.port, "--delay 20ms") { proxy in
                    try await ClamorRun.of("pub -p \(proxy.port) -c 4 -q 1,2 -s 64 -L 80 --rate 200/s")
                }
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.perQoS("publish_acked") == [0, 40, 40])
                for (labels, least) in [
                    (["qos": "1", "leg": "puback"], 0.020), (["qos": "2", "leg": "pubrec"], 0.020),
                    (["qos": "2", "leg": "pubcomp"], 0.040),
                ] as [(Labels, Double)] {
                    let reading = try #require(run.record.duration("publish_service_duration", labels))
                    #expect(reading.count == 40)
                    // To the three digits of the histogram.
                    #expect(reading.min >= least * 0.999, "\(labels)")
                }
                #expect(try #require(counters.delayHolds.min) >= 20_000_000)
            }
        }

        @Test("a stall is in the response time of what was due in it")
        func stall() async throws {
            let ((run, counters, _), _) = try await BrokerProgram.with { broker in
                try await ProxyProgram.with(before: broker.port, "--stall 500ms@3s") { proxy in
                    try await ClamorRun.of("pub -p \(proxy.port) -c 2 -q 1 -s 64 --rate 200/s --duration 6s")
                }
            }
            #expect(run.record.count("publish_acked") == 1_200)
            let stall = try #require(counters.stalls.first)
            #expect(counters.stalls.count == 1)
            // Something was due every 5 ms of it.
            let length = Double(stall.end - stall.begin) / 1e9
            #expect(try #require(run.record.duration("publish_ack_duration")).max >= (length - 0.010) * 0.999)
        }

        @Test("cuts and resets are counted by the run, the proxy and the server alike", arguments: ["cut", "reset"])
        func departures(_ kind: String) async throws {
            let ((run, counters, errors), broker) = try await BrokerProgram.with { broker in
                try await ProxyProgram.with(before: broker.port, "--\(kind) 50ms") { proxy in
                    try await ClamorRun.of(
                        "conn -p \(proxy.port) -c 4 --duration 1s --reconnect 1000 --reconnect-period 20"
                    )
                }
            }
            #expect(errors.isEmpty)
            let made = try #require(counters.ends[kind])
            #expect(made >= 1)
            // One may hit a client that is still coming up. And one may hit each of the four as it leaves: the client
            // sees it, the proxy keeps the first end of the connection as its cause.
            let seen = run.record.count("disconnects")
            #expect(seen >= 1)
            #expect(seen <= made + 4)
            #expect(run.record.count("reconnects") <= made)
            // Every connection to the proxy became one to the server.
            #expect(broker.connections == counters.connections)
            #expect(counters.ends.values.reduce(0, +) == counters.connections)
            let closed = try #require(broker.disconnects["closed"])
            #expect(closed >= 1)
            // At its end the run aborts the connects of clients that are not up: one for each of the four at most.
            #expect(closed <= made + 4)
            #expect(broker.disconnects["client", default: 0] + closed <= counters.connections)
        }

        @Test("a server that is not there: the clients hear of it, and the proxy says so in one line")
        func nobody() async throws {
            let port = try ReservedPort()
            let (run, counters, errors) = try await ProxyProgram.with(before: port.port) { proxy in
                try await ClamorRun.of("conn -p \(proxy.port) -c 3 --duration 50ms")
            }
            #expect(run.status == 69)
            #expect(counters.turnedAway == ["refused": 3])
            try #require(errors.count == 1)
            #expect(errors[0].hasSuffix(" turned away: 127.0.0.1:\(port.port) refused the connection"), "\(errors)")
        }

        @Test("more clients than there are descriptors for are turned away, in one line that says what to do")
        func descriptors() async throws {
            let ((run, counters, errors), broker) = try await BrokerProgram.with { broker in
                try await ProxyProgram.with(before: broker.port, descriptors: 128) { proxy in
                    try await ClamorRun.of("conn -p \(proxy.port) -c 60 --duration 300ms")
                }
            }
            #expect(counters.connections == 60)
            let refused = try #require(counters.turnedAway["limit"])
            #expect(refused >= 60 - 64 / 2)
            #expect(counters.turnedAway == ["limit": refused])
            #expect(run.record.errors.reduce(0) { $0 + $1.count } == refused)
            #expect(broker.connects == 60 - refused)
            try #require(errors.count == 1)
            let remedy =
                "there is room for \(counters.clientsMaximum) at a time with two descriptors each; raise ulimit -n"
            #expect(errors[0].hasSuffix(" turned away: \(remedy)"), "\(errors)")
        }

        static let refused = [
            (
                "proxy 127.0.0.1",
                "HOST:PORT: '127.0.0.1' is not a server and its port; write it like 127.0.0.1:1883 or [::1]:5222"
            ),
            ("proxy h:1 --delay 5", "--delay: '5' is not a time above 0; write it like 5ms or 1m30s"),
            ("proxy h:1 --fragment 7-1", "--fragment: '7-1' is not a range of 1 to 65536 bytes; write it like 1-7"),
        ]

        @Test("a wrong option is refused in one line", arguments: refused)
        func refuses(_ line: String, _ words: String) async throws {
            let ending = try await ClamorBinary.run(line.split(separator: " ").map(String.init))
            #expect(ending.status == 64)
            #expect(ending.output.isEmpty)
            #expect(ending.errors == "clamor proxy: \(words)\n")
        }

        @Test("a port that is taken is refused in one line")
        func portTaken() async throws {
            let port = try ReservedPort()
            let ending = try await ClamorBinary.run(["proxy", "127.0.0.1:1", "-p", "\(port.port)"])
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.hasPrefix("clamor: cannot listen on 127.0.0.1:\(port.port): "), "\(ending.errors)")
        }
    }
}
