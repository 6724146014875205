import NIOCore
import Synchronization
import TestSupport
import Testing
import Transport

@Suite("The way to a domain", .timeLimit(.minutes(10)))
struct ServiceConnectorTests {
    /// A name server's answers: services by question, 127.0.0.1 for each host, and no other address.
    static func script(_ services: [String: [[UInt8]]]) -> DNSPeer.Script {
        { query in
            switch query.kind {
            case 33:
                guard let records = services[query.name] else { break }
                let answers = records.map { DNSBytes.record(DNSBytes.pointer, 33, seconds: 300, $0) }
                return [DNSBytes.message(id: query.id, query.name, 33, answers: answers)]
            case 1 where !query.name.hasPrefix("nowhere"):
                let record = DNSBytes.record(DNSBytes.pointer, 1, [127, 0, 0, 1])
                return [DNSBytes.message(id: query.id, query.name, 1, answers: [record])]
            default: break
            }
            let authorities = [DNSBytes.authority(seconds: 300, minimum: 300)]
            return [DNSBytes.message(id: query.id, flags: 0x8183, query.name, query.kind, authorities: authorities)]
        }
    }

    static let standard = "_xmpp-client._tcp.x.test"
    static let direct = "_xmpps-client._tcp.x.test"

    @Test("[RFC 6120 §3.2.1] goes to the best target, times the lookup once, and says where it is")
    func best() async throws {
        try await withScriptedPeer { peer in
            let services = [
                Self.standard: [DNSBytes.service(20, 0, 1, "b.test"), DNSBytes.service(10, 0, peer.port, "a.test")]
            ]
            try await withDNSPeer(Self.script(services)) { dns in
                try await withServiceLoop("X.test", servers: [try dns.address]) { loop in
                    let first = try await loop.connect()
                    #expect(first.target == Target(host: "a.test", port: peer.port) && !first.isDirectTLS)
                    #expect(first.phases.dns != nil && first.phases.tcp != nil)
                    #expect(try await loop.questions() == 3)
                    // Cached answers are used at once, without another query.
                    for _ in 0..<20 { #expect(try await loop.connect().phases.dns == nil) }
                    #expect(try await loop.questions() == 3)
                }
            }
        }
    }

    @Test("tries every target in turn")
    func inTurn() async throws {
        let nobody = try ReservedPort()
        try await withScriptedPeer { peer in
            let services = [
                Self.standard: [
                    DNSBytes.service(1, 0, nobody.port, "a.test"), DNSBytes.service(2, 0, 5222, "nowhere.test"),
                    DNSBytes.service(3, 0, peer.port, "c.test"),
                ]
            ]
            try await withDNSPeer(Self.script(services)) { dns in
                try await withServiceLoop("x.test", servers: [try dns.address]) { loop in
                    let result = try await loop.connect()
                    #expect(result.error == nil && result.target == Target(host: "c.test", port: peer.port))
                }
            }
        }
    }

    @Test("a target that never answers has its share of the time, not all of it")
    func share() async throws {
        try await withScriptedPeer { silent in
            try await withScriptedPeer { peer in
                let certificates = try await Certificates.all()
                let services = [
                    // It takes the connection, and says nothing in TLS.
                    Self.direct: [DNSBytes.service(1, 0, silent.port, "a.test")],
                    Self.standard: [DNSBytes.service(2, 0, peer.port, "b.test")],
                ]
                try await withDNSPeer(Self.script(services)) { dns in
                    let tls = trusting(certificates)
                    try await withServiceLoop("x.test", servers: [try dns.address], tls: tls) { loop in
                        let result = try await loop.connect(within: .seconds(20))
                        #expect(result.target == Target(host: "b.test", port: peer.port) && !result.isDirectTLS)
                    }
                }
            }
        }
    }

    @Test("if all fail, the last target and its reason are reported")
    func allFail() async throws {
        let nobody = try ReservedPort()
        let services = [
            Self.standard: [
                DNSBytes.service(1, 0, 5222, "nowhere.test"), DNSBytes.service(2, 0, nobody.port, "a.test"),
            ]
        ]
        try await withDNSPeer(Self.script(services)) { dns in
            try await withServiceLoop("x.test", servers: [try dns.address]) { loop in
                let result = try await loop.connect()
                #expect(result.error?.reason == .refused)
                #expect(result.error?.description == "a.test:\(nobody.port) refused the connection")
            }
        }
    }

    @Test("[RFC 6120 §3.2.1] the root for a target is an end: no host is tried")
    func notOffered() async throws {
        try await withDNSPeer(Self.script([Self.standard: [DNSBytes.service(0, 0, 0, "")]])) { dns in
            try await withServiceLoop("x.test", servers: [try dns.address]) { loop in
                let result = try await loop.connect()
                let words = "x.test says in the DNS that it offers no XMPP to clients (an SRV target of \".\")"
                #expect(result.error?.reason == .resolve(words))
                #expect(try await dns.queries().allSatisfy { $0.kind == 33 })
            }
        }
    }

    @Test("[XEP-0368 §5] a target of direct TLS is reported as such, with TLS up, for the domain and not the host")
    func direct() async throws {
        let certificates = try await Certificates.all()
        var serving = server(certificates, .serviceName)
        serving.applicationProtocols = ["xmpp-client"]
        try await withTLSPeer(serving) { peer in
            let services = ["_xmpps-client._tcp.service.test": [DNSBytes.service(1, 0, peer.port, "host.test")]]
            try await withDNSPeer(Self.script(services)) { dns in
                var tls = trusting(certificates)
                tls.xmppDomain = "service.test"
                tls.applicationProtocols = ["xmpp-client"]
                try await withServiceLoop("service.test", servers: [try dns.address], tls: tls) { loop in
                    let result = try await loop.connect()
                    #expect(result.error == nil && result.isDirectTLS && result.phases.tls != nil)
                    #expect(result.target == Target(host: "host.test", port: peer.port))
                    let seen = try await peer.until { $0.handshakes == 1 }
                    #expect(seen.serverNames == ["service.test"] && seen.protocols == ["xmpp-client"])
                }
            }
        }
    }

    @Test("[RFC 6120 §3.2.2] without records the domain itself is the target, at 5222; direct TLS alone at 5223")
    func fallBack() async throws {
        try await withDNSPeer(Self.script([:])) { dns in
            for (kinds, port) in [(ServiceKinds.both, 5222), (.standard, 5222), (.direct, 5223)] {
                try await withServiceLoop("nowhere.test", servers: [try dns.address], kinds: kinds) { loop in
                    let result = try await loop.connect()
                    #expect(result.error?.reason == .resolve("no address"))
                    #expect(result.target == Target(host: "nowhere.test", port: port))
                }
            }
        }
    }

    @Test("without TLS there is no direct TLS, and no connection is called secure")
    func noTLS() async throws {
        try await withScriptedPeer { peer in
            let services = [
                Self.direct: [DNSBytes.service(1, 0, peer.port, "a.test")],
                Self.standard: [DNSBytes.service(2, 0, peer.port, "b.test")],
            ]
            try await withDNSPeer(Self.script(services)) { dns in
                try await withServiceLoop("x.test", servers: [try dns.address]) { loop in
                    let result = try await loop.connect()
                    #expect(result.target?.host == "b.test" && !result.isDirectTLS)
                }
                try await withServiceLoop("x.test", servers: [try dns.address], kinds: .direct) { loop in
                    let result = try await loop.connect()
                    #expect(result.target?.host == "a.test" && !result.isDirectTLS)
                }
            }
        }
    }

    @Test("a name server that cannot be queried is reported at once, without waiting for the deadline")
    func failsAtOnce() async throws {
        // connect(2) refuses it on the spot.
        let broadcast = try SocketAddress(ipAddress: "255.255.255.255", port: 53)
        try await withServiceLoop("x.test", servers: [broadcast]) { loop in
            let result = try await loop.connect()
            #expect(result.error?.reason == .resolve("255.255.255.255:53: it cannot be reached"))
        }
    }

    @Test("the callback of a failure may cancel all other attempts")
    func cancelsWithin() async throws {
        try await withDNSPeer(Self.script([Self.standard: [DNSBytes.service(0, 0, 0, "")]])) { dns in
            try await withServiceLoop("x.test", servers: [try dns.address]) { loop in
                let reasons = try await loop.connectTogether(3) { $0.cancelAll() }
                guard case .resolve? = reasons.first else {
                    Issue.record("\(reasons)")
                    return
                }
                #expect(reasons.dropFirst() == [.cancelled, .cancelled])
            }
        }
    }

    @Test("an answer that runs out while the other is waited for is used, not asked for again")
    func runsOut() async throws {
        let certificates = try await Certificates.all()
        try await withScriptedPeer { peer in
            let record = DNSBytes.record(DNSBytes.pointer, 33, seconds: 1, DNSBytes.service(1, 0, peer.port, "a.test"))
            let drops = DroppedOnce()
            let script: DNSPeer.Script = { query in
                if query.name == Self.direct, drops.isFirst() { return [] }
                guard query.name == Self.standard else { return Self.script([:])(query) }
                return [DNSBytes.message(id: query.id, query.name, 33, answers: [record])]
            }
            try await withDNSPeer(script) { dns in
                try await withServiceLoop("x.test", servers: [try dns.address], tls: trusting(certificates)) { loop in
                    let result = try await loop.connect()
                    #expect(result.error == nil && result.target?.host == "a.test")
                    // Two for services, two for addresses.
                    #expect(try await loop.questions() == 4)
                }
            }
        }
    }

    @Test("a lookup that takes longer than the connect may is given up at the deadline; so is what is cancelled")
    func deadline() async throws {
        try await withDNSPeer({ _ in [] }) { dns in
            try await withServiceLoop("x.test", servers: [try dns.address]) { loop in
                let late = try await loop.connect(within: .milliseconds(200))
                #expect(late.error?.reason == .timedOut(.dns))
                #expect(try await loop.cancelled() == .cancelled)
            }
        }
    }

    @Test("a domain that is an address has no records")
    func literal() async throws {
        try await withDNSPeer({ _ in [] }) { dns in
            try await withServiceLoop("127.0.0.1", servers: [try dns.address]) { loop in
                let result = try await loop.connect()
                #expect(result.target == Target(host: "127.0.0.1", port: 5222))
                #expect(try await dns.queries().isEmpty)
            }
        }
    }

    @Test(
        "[RFC 2782] against dnsmasq: services, their hosts, names without, and an answer that needs TCP",
        .enabled(if: Dnsmasq.isInstalled, "\(Dnsmasq.missing)")
    )
    func dnsmasq() async throws {
        try await withScriptedPeer { peer in
            let many = (0..<60).map {
                "srv-host=_xmpp-client._tcp.many.test,host-with-a-long-name-\($0).many.test,5222,\($0)"
            }
            let records =
                [
                    "srv-host=_xmpp-client._tcp.x.test,a.x.test,\(peer.port),5,1",
                    "srv-host=_xmpps-client._tcp.x.test,a.x.test,1,9,1", "host-record=a.x.test,127.0.0.1",
                    "srv-host=_xmpp-client._tcp.none.test", "host-record=plain.test,127.0.0.1,::1",
                    "cname=alias.test,plain.test",
                ] + many
            try await Dnsmasq.with(records) { server in
                let address = try SocketAddress(ipAddress: "127.0.0.1", port: server.port)
                try await withServiceLoop("x.test", servers: [address]) { loop in
                    let result = try await loop.connect()
                    #expect(result.error == nil && result.target == Target(host: "a.x.test", port: peer.port))
                }
                try await withServiceLoop("none.test", servers: [address]) { loop in
                    guard case .resolve(let words)? = try await loop.connect().error?.reason else {
                        Issue.record("offered")
                        return
                    }
                    #expect(words.hasPrefix("none.test says in the DNS that it offers no XMPP"))
                }
                try await withDNSLoop([address]) { loop in
                    guard
                        case .records(let records, let seconds) = try await loop.ask(
                            DNSQuestion("_xmpp-client._tcp.many.test", .srv)
                        )
                    else {
                        Issue.record("no records")
                        return
                    }
                    #expect(records.count == 60 && seconds > 0)
                    #expect(try await loop.resolve("plain.test").get().map(\.ipAddress) == ["127.0.0.1", "::1"])
                    #expect(try await loop.resolve("alias.test").get().map(\.ipAddress) == ["127.0.0.1", "::1"])
                    #expect(try await loop.resolve("missing.test") == .failure(LookupFailure("no address")))
                }
            }
        }
    }
}

/// Says of the first that it is.
private final class DroppedOnce: Sendable {
    private let isOver = Mutex(false)

    func isFirst() -> Bool {
        self.isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
    }
}
