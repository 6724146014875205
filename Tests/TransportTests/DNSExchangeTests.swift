import TestSupport
import Testing
import Transport

@Suite("A question to the DNS, without IO")
struct DNSExchangeTests {
    static let question = DNSQuestion("x.test", .srv)
    static let record = DNSBytes.record(DNSBytes.pointer, 33, seconds: 30, DNSBytes.service(1, 2, 5222, "a.test"))
    static let service = ServiceRecord(priority: 1, weight: 2, port: 5222, target: "a.test")

    static func begun(servers: [String] = ["one", "two"]) -> DNSExchange {
        var exchange = DNSExchange(self.question, servers: servers)
        #expect(exchange.begin(id: 7) == .ask(server: 0, isTCP: false, id: 7))
        return exchange
    }

    @Test("takes the answer, and how long it holds")
    func answer() {
        var exchange = Self.begun()
        let found = DNSRecord(name: "x.test", timeToLive: 30, content: .service(Self.service))
        let order = exchange.received(DNSBytes.message(answers: [Self.record]), nextID: 8)
        #expect(order == .done(.records([found], timeToLive: 30)))
        #expect(exchange.gaveUp(id: 9) == .wait)
        #expect(exchange.received(DNSBytes.message(answers: [Self.record]), nextID: 8) == .wait)
    }

    @Test(
        "[RFC 2308 §2] no such name, no such records: nothing, for as long as the server says",
        arguments: [
            (DNSBytes.message(flags: 0x8183, authorities: [DNSBytes.authority(seconds: 300, minimum: 60)]), 60),
            (DNSBytes.message(authorities: [DNSBytes.authority(seconds: 20, minimum: 60)]), 20),
            (DNSBytes.message(flags: 0x8183), 1),
            (DNSBytes.message(authorities: [DNSBytes.authority(seconds: 999_999, minimum: 999_999)]), 86_400),
            // Of another name.
            (
                DNSBytes.message(answers: [DNSBytes.record(DNSBytes.name("y.test"), 33, DNSBytes.service(1, 2, 3, "b"))]
                ), 1
            ),
        ] as [([UInt8], UInt32)]
    )
    func nothing(_ bytes: [UInt8], _ seconds: UInt32) {
        var exchange = Self.begun()
        #expect(exchange.received(bytes, nextID: 8) == .done(.nothing(timeToLive: seconds)))
    }

    @Test(
        "[RFC 5452 §9] what does not answer this question is as if it had not come",
        arguments: [
            DNSBytes.message(id: 8, answers: [record]), DNSBytes.message("y.test", answers: [record]),
            DNSBytes.message("x.test", 1, answers: [record]), DNSBytes.message(flags: 0x0100, answers: [record]),
            [], Array("hello".utf8), Array(DNSBytes.message(answers: [record]).dropLast()),
        ] as [[UInt8]]
    )
    func foreign(_ bytes: [UInt8]) {
        var exchange = Self.begun()
        #expect(exchange.received(bytes, nextID: 8) == .wait)
        guard case .done(.records) = exchange.received(DNSBytes.message(answers: [Self.record]), nextID: 8) else {
            Issue.record("the answer does not count any more")
            return
        }
    }

    @Test("[RFC 1035 §4.2.1] an answer that is cut short is asked for over TCP, under another id")
    func truncated() {
        var exchange = Self.begun()
        let cut = DNSBytes.message(flags: 0x8380, answers: [Self.record])
        #expect(exchange.received(cut, nextID: 99) == .ask(server: 0, isTCP: true, id: 99))
        let found = DNSRecord(name: "x.test", timeToLive: 30, content: .service(Self.service))
        let order = exchange.received(DNSBytes.message(id: 99, answers: [Self.record]), nextID: 8)
        #expect(order == .done(.records([found], timeToLive: 30)))
    }

    @Test("over TCP whatever is no answer is the server's fault, and the next one is asked")
    func brokenOverTCP() {
        for bytes in [[1, 2], DNSBytes.message(id: 7), DNSBytes.message(id: 99, flags: 0x8380)] as [[UInt8]] {
            var exchange = Self.begun()
            _ = exchange.received(DNSBytes.message(flags: 0x8380), nextID: 99)
            #expect(exchange.received(bytes, nextID: 5) == .ask(server: 1, isTCP: false, id: 5))
        }
    }

    @Test("[RFC 1035 §7.2] asks the servers in turn, four times in all, and tells what the last one said")
    func turns() {
        var exchange = Self.begun()
        #expect(exchange.received(DNSBytes.message(flags: 0x8182), nextID: 1) == .ask(server: 1, isTCP: false, id: 1))
        #expect(exchange.gaveUp(id: 2) == .ask(server: 0, isTCP: false, id: 2))
        #expect(exchange.gaveUp(because: "it cannot be reached", id: 3) == .ask(server: 1, isTCP: false, id: 3))
        let refused = exchange.received(DNSBytes.message(id: 3, flags: 0x8185), nextID: 4)
        #expect(refused == .done(.failed(LookupFailure("two: REFUSED"))))
        var alone = Self.begun(servers: ["one"])
        for id in 1...3 { #expect(alone.gaveUp(id: UInt16(id)) == .ask(server: 0, isTCP: false, id: UInt16(id))) }
        #expect(alone.gaveUp(id: 4) == .done(.failed(LookupFailure("one: no answer"))))
    }
}
