import NIOCore
import TestSupport
import Testing
import Transport

@Suite("A client of the DNS", .timeLimit(.minutes(10)))
struct DNSClientTests {
    static let question = DNSQuestion("_xmpp-client._tcp.x.test", .srv)

    /// The right answer to a question for services.
    static func answer(
        _ query: DNSPeer.Query,
        id: Int? = nil,
        flags: Int = 0x8180,
        target: String = "a.test"
    ) -> [UInt8] {
        DNSBytes.message(
            id: id ?? query.id,
            flags: flags,
            query.name,
            query.kind,
            answers: [DNSBytes.record(DNSBytes.pointer, 33, seconds: 300, DNSBytes.service(1, 2, 5222, target))]
        )
    }

    static func outcome(_ target: String) -> DNSOutcome {
        let service = ServiceRecord(priority: 1, weight: 2, port: 5222, target: target)
        let record = DNSRecord(name: Self.question.name, timeToLive: 300, content: .service(service))
        return .records([record], timeToLive: 300)
    }

    @Test("[RFC 5452 §9] ten thousand guessed answers are ignored, and the real one after them is accepted")
    func guesses() async throws {
        try await withDNSPeer { query in
            let wrong = (1...200).map { Self.answer(query, id: query.id ^ $0, target: "evil.test") }
            let other = DNSBytes.message(
                id: query.id,
                "y.test",
                33,
                answers: [DNSBytes.record(DNSBytes.pointer, 33, DNSBytes.service(1, 2, 5222, "evil.test"))]
            )
            return wrong + [other, [], [1, 2, 3], Array(Self.answer(query, target: "evil.test").dropLast())]
                + [Self.answer(query)]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                let outcome = try await loop.ask(Self.question)
                #expect(outcome == Self.outcome("a.test"))
                // More than one only where the host stood still for two seconds.
                #expect(try await peer.queries().count >= 1)
            }
        }
    }

    @Test("[RFC 1035 §4.2.2] an answer cut short is fetched over TCP, in pieces")
    func overTCP() async throws {
        try await withDNSPeer { query in
            [query.isTCP ? Self.answer(query) : Self.answer(query, flags: 0x8380)]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                #expect(try await loop.ask(Self.question) == Self.outcome("a.test"))
                let queries = try await peer.queries()
                #expect(queries.contains { $0.isTCP } && queries.contains { !$0.isTCP })
            }
        }
    }

    @Test("[RFC 1035 §7.2] a server that refuses, is silent over TCP or not there is passed over")
    func nextServer() async throws {
        try await withDNSPeer { query in
            [DNSBytes.message(id: query.id, flags: 0x8185, query.name, query.kind)]
        } _: { refusing in
            try await withDNSPeer { query in
                query.isTCP ? [] : [Self.answer(query, flags: 0x8380)]
            } _: { cutting in
                try await withDNSPeer { query in
                    [Self.answer(query)]
                } _: { good in
                    let reserved = try ReservedPort(ofDatagrams: true)
                    let nobody = try SocketAddress(ipAddress: "127.0.0.1", port: reserved.port)
                    let servers = [nobody, try refusing.address, try cutting.address, try good.address]
                    try await withDNSLoop(servers) { loop in
                        let outcome = try await loop.ask(Self.question)
                        #expect(outcome == Self.outcome("a.test"))
                        #expect(try await good.queries().count >= 1)
                    }
                    reserved.release()
                }
            }
        }
    }

    @Test("a question that is not answered in two seconds is put again")
    func retry() async throws {
        try await withDNSPeer { query in
            query.number == 0 ? [] : [Self.answer(query)]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                #expect(try await loop.ask(Self.question) == Self.outcome("a.test"))
                let queries = try await peer.queries()
                #expect(queries.count >= 2 && Set(queries.map(\.id)).count >= 2)
            }
        }
    }

    @Test("without an answer the lookup fails after four queries, naming the server")
    func nobody() async throws {
        let port = try ReservedPort(ofDatagrams: true)
        try await withDNSLoop([try SocketAddress(ipAddress: "127.0.0.1", port: port.port)]) { loop in
            let outcome = try await loop.ask(Self.question)
            #expect(outcome == .failed(LookupFailure("127.0.0.1:\(port.port): it cannot be reached")))
        }
        port.release()
    }

    @Test("a server that is given up over TCP costs one question, and the next one's answer is heard")
    func givenUpOverTCP() async throws {
        try await withDNSPeer { query in
            [query.isTCP ? Self.answer(query, id: query.id ^ 1) : Self.answer(query, flags: 0x8380)]
        } _: { wrong in
            try await withDNSPeer { query in
                [Self.answer(query)]
            } _: { good in
                // Four questions are all there are: two each for the wrong ones would be too many.
                let servers = [try wrong.address, try wrong.address, try good.address]
                try await withDNSLoop(servers) { loop in
                    let outcome = try await loop.ask(Self.question)
                    #expect(outcome == Self.outcome("a.test"))
                }
            }
        }
    }

    @Test("[RFC 8305 §3] a server that never answers for IPv6 does not hold up who has an IPv4 address")
    func halfAnAnswer() async throws {
        try await withDNSPeer { query in
            guard query.kind == 1 else { return [] }
            let record = DNSBytes.record(DNSBytes.pointer, 1, seconds: 300, [10, 0, 0, 1])
            return [DNSBytes.message(id: query.id, query.name, 1, answers: [record])]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                for _ in 0..<2 {
                    let found = try await loop.resolve("a.test").get()
                    #expect(found.map(\.ipAddress) == ["10.0.0.1"])
                }
                // The fourth question for IPv6 would be the last.
                let queries = try await peer.queries()
                #expect(queries.filter { $0.kind == 28 }.count < 4)
            }
        }
    }

    @Test("a thousand askers make one question, and the answer is kept as long as it says")
    func cache() async throws {
        try await withDNSPeer { query in
            [Self.answer(query)]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                try await withThrowingTaskGroup(of: DNSOutcome.self) { group in
                    for _ in 0..<1_000 { group.addTask { try await loop.ask(Self.question) } }
                    for try await outcome in group { #expect(outcome == Self.outcome("a.test")) }
                }
                #expect(try await loop.questions() == 1)
                // The record's TTL is five minutes.
                _ = try await loop.ask(Self.question, in: .seconds(200))
                #expect(try await loop.questions() == 1)
                _ = try await loop.ask(Self.question, in: .seconds(301))
                #expect(try await loop.questions() == 2)
            }
        }
    }

    @Test("addresses of both families, behind an alias; IPv4 first; localhost without a question")
    func addresses() async throws {
        try await withDNSPeer { query in
            let alias = DNSBytes.record(DNSBytes.pointer, 5, DNSBytes.name("b.test"))
            let data = query.kind == 1 ? [10, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]
            let record = DNSBytes.record(DNSBytes.name("b.test"), query.kind, data)
            return [DNSBytes.message(id: query.id, query.name, query.kind, answers: [alias, record])]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                let found = try await loop.resolve("A.test.").get()
                #expect(found.map(\.ipAddress) == ["10.0.0.1", "::1"])
                #expect(try await loop.resolve("localhost").get().map(\.ipAddress) == ["127.0.0.1", "::1"])
                #expect(try await loop.resolve("x.localhost").get().count == 2)
                #expect(try await loop.questions() == 2)
                #expect(try await loop.resolve("a b") == .failure(LookupFailure("'a b' is no host name")))
            }
        }
    }

    @Test("a name without addresses is reported as such, and a failed lookup with its reason")
    func noAddresses() async throws {
        try await withDNSPeer { query in
            let isBroken = query.name == "broken.test" && query.kind == 28
            return [DNSBytes.message(id: query.id, flags: isBroken ? 0x8182 : 0x8183, query.name, query.kind)]
        } _: { peer in
            try await withDNSLoop([try peer.address]) { loop in
                let none = try await loop.resolve("none.test")
                #expect(none == .failure(LookupFailure("no address")))
                let words = "127.0.0.1:\(peer.port): SERVFAIL"
                #expect(try await loop.resolve("broken.test") == .failure(LookupFailure(words)))
            }
        }
    }

    @Test(
        "whom to ask",
        arguments: [
            ("127.0.0.1:5353", "127.0.0.1", 5353), ("127.0.0.1", "127.0.0.1", 53), ("[::1]:54", "::1", 54),
            ("[::1]", "::1", 53), ("::1", "::1", 53),
        ]
    )
    func parse(_ text: String, _ host: String, _ port: Int) {
        let address = NameServers.parse(text)
        #expect(address?.ipAddress == host && address?.port == port)
    }

    @Test(
        "an invalid address names no server",
        arguments: ["", "a.test", "a.test:53", "127.0.0.1:", "127.0.0.1:0", "1.2.3.4:99999", "[::1", "::1]:5"]
    )
    func parseRefuses(_ text: String) {
        #expect(NameServers.parse(text) == nil)
    }

    @Test("resolv.conf(5): three servers at most, this host without any")
    func system() throws {
        let folder = try ScratchFolder()
        let path = try folder.write(
            "# first\nsearch x.test\nnameserver 10.0.0.1\n nameserver\t::1 # a comment\nnameserver nonsense\n"
                + "options ndots:2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n",
            to: "resolv.conf"
        )
        #expect(NameServers.system(path).map(\.ipAddress) == ["10.0.0.1", "::1", "10.0.0.3"])
        #expect(NameServers.system(folder.path("missing")).map(\.ipAddress) == ["127.0.0.1"])
    }
}
