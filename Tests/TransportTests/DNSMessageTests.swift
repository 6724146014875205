import TestSupport
import Testing
import Transport

/// Puts answers of the DNS together, byte by byte.
struct DNSBytes {
    static func short(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    static func long(_ number: Int) -> [UInt8] { self.short(number >> 16) + self.short(number & 0xFFFF) }

    static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    static func record(_ name: [UInt8], _ kind: Int, seconds: Int = 60, _ data: [UInt8]) -> [UInt8] {
        name + self.short(kind) + self.short(1) + self.long(seconds) + self.short(data.count) + data
    }

    static func service(_ priority: Int, _ weight: Int, _ port: Int, _ target: String) -> [UInt8] {
        self.short(priority) + self.short(weight) + self.short(port) + self.name(target)
    }

    static func authority(seconds: Int, minimum: Int) -> [UInt8] {
        let data =
            self.name("ns.test") + self.name("root.test") + [1, 2, 3, 4].flatMap { self.long($0) } + self.long(minimum)
        return self.record(self.name("test"), 6, seconds: seconds, data)
    }

    /// Points to the question's name.
    static let pointer: [UInt8] = [0xC0, 12]

    static func message(
        id: Int = 7,
        flags: Int = 0x8180,
        _ name: String = "x.test",
        _ kind: Int = 33,
        answers: [[UInt8]] = [],
        authorities: [[UInt8]] = []
    ) -> [UInt8] {
        self.short(id) + self.short(flags) + self.short(1) + self.short(answers.count) + self.short(authorities.count)
            + self.short(0) + self.name(name) + self.short(kind) + self.short(1) + answers.flatMap { $0 }
            + authorities.flatMap { $0 }
    }
}

@Suite("Messages of the DNS")
struct DNSMessageTests {
    static let question = DNSQuestion("x.test", .srv)

    @Test("[RFC 1035 §4.1] a question on the wire")
    func query() {
        let bytes = DNSMessage.query(DNSQuestion("_xmpp-client._tcp.x.test", .srv), id: 0x1234)
        #expect(
            bytes == hex("1234 0100 0001 0000 0000 0000") + [12] + Array("_xmpp-client".utf8) + [4] + Array("_tcp".utf8)
                + [1] + Array("x".utf8) + [4] + Array("test".utf8) + hex("00 0021 0001")
        )
    }

    @Test("[RFC 2782] services, by compressed names, whatever the case")
    func services() throws {
        let record = DNSBytes.record(DNSBytes.pointer, 33, DNSBytes.service(1, 2, 5222, "A.x.test"))
        let message = try DNSMessage(DNSBytes.message("X.Test", answers: [record]))
        #expect(message.id == 7 && message.code == 0 && !message.isTruncated)
        #expect(message.name == "x.test" && message.kind == 33)
        let service = ServiceRecord(priority: 1, weight: 2, port: 5222, target: "a.x.test")
        let expected = DNSRecord(name: "x.test", timeToLive: 60, content: .service(service))
        #expect(message.answers(to: Self.question) == [expected])
    }

    @Test("[RFC 1034 §3.6.2] follows aliases to what is asked for, and no further than eight")
    func aliases() throws {
        func alias(_ from: String, _ to: String) -> [UInt8] {
            DNSBytes.record(DNSBytes.name(from), 5, DNSBytes.name(to))
        }
        let address = DNSBytes.record(DNSBytes.name("c.test"), 1, [10, 0, 0, 1])
        let stranger = DNSBytes.record(DNSBytes.name("d.test"), 1, [10, 0, 0, 2])
        let message = try DNSMessage(
            DNSBytes.message(
                "x.test",
                1,
                answers: [stranger, address, alias("b.test", "c.test"), alias("x.test", "b.test")]
            )
        )
        let found = message.answers(to: DNSQuestion("x.test", .a))
        #expect(found.map(\.content) == [.address([10, 0, 0, 1])])
        let circle = try DNSMessage(DNSBytes.message("x.test", 1, answers: [alias("x.test", "x.test")]))
        #expect(circle.answers(to: DNSQuestion("x.test", .a)) == [])
    }

    @Test("[RFC 2308 §5] how long nothing holds")
    func negative() throws {
        let message = try DNSMessage(
            DNSBytes.message(flags: 0x8183, authorities: [DNSBytes.authority(seconds: 300, minimum: 120)])
        )
        #expect(message.code == 3 && message.negativeTimeToLive == 120)
        #expect(try DNSMessage(DNSBytes.message()).negativeTimeToLive == nil)
    }

    @Test("[RFC 2181 §8] a time with its highest bit set is none")
    func times() throws {
        let record = DNSBytes.record(DNSBytes.pointer, 1, seconds: 0x8000_0001, [10, 0, 0, 1])
        #expect(try DNSMessage(DNSBytes.message(answers: [record])).records.map(\.timeToLive) == [0])
    }

    @Test(
        "[RFC 1035 §4.1.4] refuses what is broken, and pointers that lead nowhere",
        arguments: [
            ([], .truncated), (Array(DNSBytes.message().dropLast()), .truncated),
            (DNSBytes.message(flags: 0x0100), .notAnAnswer), (DNSBytes.message(flags: 0x9180), .notAnAnswer),
            (hex("0007 8180 0000 0000 0000 0000"), .questions),
            (DNSBytes.message(answers: [[0xC0]]), .truncated),
            // To itself, forwards, back and forth between two of them.
            (DNSBytes.message(answers: [DNSBytes.record([0xC0, 24], 1, [1, 2, 3, 4])]), .name),
            (DNSBytes.message(answers: [DNSBytes.record([0xC0, 40], 1, [1, 2, 3, 4])]), .name),
            (DNSBytes.message(answers: [DNSBytes.record([1, 0x61, 0xC0, 24], 1, [1, 2, 3, 4])]), .name),
            (DNSBytes.message(answers: [[0xC0, 26, 0xC0, 24]]), .name),
            (DNSBytes.message(answers: [DNSBytes.record([0x40, 0x61, 0], 1, [])]), .name),
            (DNSBytes.message(answers: [DNSBytes.record([3, 0x61, 0x2E, 0x62, 0], 1, [1, 2, 3, 4])]), .name),
            (DNSBytes.message(answers: [DNSBytes.record([1, 0x0A, 0], 1, [1, 2, 3, 4])]), .name),
            (DNSBytes.message(answers: [DNSBytes.record(DNSBytes.pointer, 1, [1, 2, 3])]), .data),
            (DNSBytes.message(answers: [DNSBytes.record(DNSBytes.pointer, 28, [1, 2, 3, 4])]), .data),
            (DNSBytes.message(answers: [DNSBytes.record(DNSBytes.pointer, 33, [0, 1, 0, 2, 0, 3])]), .data),
            (
                DNSBytes.message(answers: [DNSBytes.record(DNSBytes.pointer, 33, DNSBytes.service(0, 0, 1, "a") + [0])]
                ), .data
            ),
            (DNSBytes.message(answers: [DNSBytes.record(DNSBytes.pointer, 5, [0, 0])]), .data),
        ] as [([UInt8], DNSMessageError)]
    )
    func refuses(_ bytes: [UInt8], _ error: DNSMessageError) {
        #expect(throws: error) { try DNSMessage(bytes) }
    }

    @Test("[RFC 1035 §2.3.4] a name has 255 bytes, however it is put together")
    func longNames() throws {
        let label = [63] + [UInt8](repeating: 0x61, count: 63)
        let long = (0..<3).flatMap { _ in label } + [61] + [UInt8](repeating: 0x61, count: 61) + [0]
        #expect(long.count == 255)
        #expect(try DNSMessage(DNSBytes.message(answers: [DNSBytes.record(long, 1, [1, 2, 3, 4])])).records.count == 1)
        // Four labels of 63 behind one another, by pointers: each is short by itself.
        let question = DNSBytes.message()
        var answers = DNSBytes.record(label + DNSBytes.pointer, 1, [1, 2, 3, 4])
        var place = question.count
        for _ in 0..<4 {
            let next = question.count + answers.count
            answers += DNSBytes.record(label + [0xC0 | UInt8(place >> 8), UInt8(place & 0xFF)], 1, [1, 2, 3, 4])
            place = next
        }
        var bytes = question + answers
        bytes[7] = 5
        #expect(throws: DNSMessageError.name) { try DNSMessage(bytes) }
    }

    @Test("a thousand records, and what they claim to be, cost no more than the first 256")
    func manyRecords() throws {
        let record = DNSBytes.record(DNSBytes.pointer, 33, DNSBytes.service(1, 2, 3, "a"))
        let message = try DNSMessage(DNSBytes.message(answers: (0..<1_000).map { _ in record }))
        #expect(message.records.count == 256)
        var claims = DNSBytes.message(answers: [record])
        claims[6] = 0xFF
        #expect(throws: DNSMessageError.truncated) { try DNSMessage(claims) }
    }

    @Test("no mutation of an answer traps")
    func mutations() throws {
        let answer = DNSBytes.message(
            answers: [
                DNSBytes.record(DNSBytes.pointer, 33, DNSBytes.service(1, 2, 5222, "a.x.test")),
                DNSBytes.record(DNSBytes.pointer, 5, DNSBytes.name("b.test")),
                DNSBytes.record(DNSBytes.pointer, 28, [UInt8](repeating: 7, count: 16)),
            ],
            authorities: [DNSBytes.authority(seconds: 300, minimum: 120)]
        )
        var generator = SeededGenerator(seed: 11)
        var read = 0
        for _ in 0..<100_000 {
            var bytes = answer
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(
                    in: .min ... .max,
                    using: &generator
                )
            }
            if Bool.random(using: &generator) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator)) }
            if let message = try? DNSMessage(bytes) {
                read += 1
                _ = message.answers(to: Self.question)
            }
        }
        #expect(read > 1_000 && read < 99_000)
    }
}
