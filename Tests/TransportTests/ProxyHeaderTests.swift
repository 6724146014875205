import NIOCore
import TestSupport
import Testing
import Transport

@Suite("The PROXY header, read")
struct ProxyHeaderTests {
    static let signature = ProxyLayerTests.signature

    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        /// Source and destination with their ports.
        let addresses: [String]?

        init(_ name: String, _ bytes: [UInt8], _ addresses: [String]? = nil) {
            self.testDescription = name
            self.bytes = bytes
            self.addresses = addresses
        }

        init(_ name: String, _ text: String, _ addresses: [String]? = nil) {
            self.init(name, Array(text.utf8), addresses)
        }
    }

    private static let ones = Array(repeating: "ffff", count: 8).joined(separator: ":")

    static let vectors = [
        Vector(
            "v1, IPv4",
            "PROXY TCP4 192.0.2.1 198.51.100.2 56324 1883\r\n",
            ["192.0.2.1:56324", "198.51.100.2:1883"]
        ),
        Vector(
            "v1, the longest of IPv4",
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
            ["255.255.255.255:65535", "255.255.255.255:65535"]
        ),
        Vector("v1, IPv4 of zeroes", "PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", ["0.0.0.0:0", "0.0.0.0:0"]),
        Vector(
            "v1, IPv4 in IPv6, as proxies write it",
            "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 443 8883\r\n",
            ["::ffff:192.0.2.1:443", "::ffff:192.0.2.2:8883"]
        ),
        Vector("v1, IPv6", "PROXY TCP6 2001:DB8::1 ::1 443 8883\r\n", ["2001:db8::1:443", "::1:8883"]),
        Vector(
            "v1, the longest of IPv6",
            "PROXY TCP6 \(ones) \(ones) 65535 65535\r\n",
            ["\(ones):65535", "\(ones):65535"]
        ),
        Vector("v1, unknown", "PROXY UNKNOWN\r\n"),
        Vector("v1, unknown, and what is ignored", "PROXY UNKNOWN anything at  all \u{E9}\r\n"),
        Vector("v1, the longest line of all", "PROXY UNKNOWN \(ones) \(ones) 65535 65535\r\n"),
        Vector(
            "v2, IPv4",
            signature + hex("21 11 000c c0000201 c6336402 dc04 075b"),
            ["192.0.2.1:56324", "198.51.100.2:1883"]
        ),
        Vector(
            "v2, IPv6",
            signature
                + hex("21 21 0024 20010db8000000000000000000000001 00000000000000000000000000000001 01bb ffff"),
            ["2001:db8::1:443", "::1:65535"]
        ),
        Vector(
            "v2, IPv4 followed by a TLV",
            signature + hex("21 11 0011 c0000201 c6336402 dc04 075b 0200026162"),
            ["192.0.2.1:56324", "198.51.100.2:1883"]
        ),
        Vector("v2, the proxy's own", signature + hex("20 00 0000")),
        Vector(
            "v2, the proxy's own, with addresses to skip",
            signature + hex("20 11 000c c0000201 c6336402 dc04 075b")
        ),
        Vector("v2, the proxy's own, of a family to ignore", signature + hex("20 ff 0002 0102")),
        Vector("v2, unspecified", signature + hex("21 00 0000")),
        Vector("v2, unspecified, with bytes to skip", signature + hex("21 00 0003 010203")),
        Vector("v2, datagrams", signature + hex("21 12 000c c0000201 c6336402 dc04 075b")),
        Vector("v2, a family without a transport", signature + hex("21 10 000c c0000201 c6336402 dc04 075b")),
        Vector("v2, paths", signature + hex("21 31 00d8") + [UInt8](repeating: 0x61, count: 216)),
        Vector(
            "v2, as long as is taken",
            signature + hex("20 00 1000") + [UInt8](repeating: 7, count: ProxyHeader.maximumBlock)
        ),
    ]

    @Test("either form tells the addresses and its own length, and waits at every cut before that", arguments: vectors)
    func reads(_ vector: Vector) throws {
        for cut in 0..<vector.bytes.count {
            #expect(try ProxyHeader.read(Array(vector.bytes[..<cut])) == nil)
        }
        for more in [[], Array("PROXY ".utf8), [UInt8](repeating: 0x0D, count: 200)] {
            let header = try #require(try ProxyHeader.read(vector.bytes + more))
            #expect(header.size == vector.bytes.count)
            let addresses = header.addresses.map { [$0.source, $0.destination] }
            #expect(addresses?.map { "\($0.ipAddress ?? ""):\($0.port ?? -1)" } == vector.addresses)
        }
    }

    @Test("reads what we write", arguments: ProxyProtocol.allCases)
    func roundTrip(_ version: ProxyProtocol) throws {
        for host in ["127.0.0.1", "::1", "2001:db8::ff00:42:8329"] {
            let source = try SocketAddress(ipAddress: host, port: 50_000)
            let destination = try SocketAddress(ipAddress: host, port: 1)
            let bytes = version.header(from: source, to: destination)
            let addresses = ProxyHeader.Addresses(source: source, destination: destination)
            #expect(try ProxyHeader.read(bytes) == ProxyHeader(addresses: addresses, size: bytes.count))
        }
        let bytes = version.header(from: nil, to: nil)
        #expect(try ProxyHeader.read(bytes) == ProxyHeader(addresses: nil, size: bytes.count))
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let problem: ProxyHeader.Problem

        init(_ name: String, _ bytes: [UInt8], _ problem: ProxyHeader.Problem) {
            self.testDescription = name
            self.bytes = bytes
            self.problem = problem
        }

        init(_ text: String, _ problem: ProxyHeader.Problem) { self.init(text, Array(text.utf8), problem) }
    }

    static let refusals =
        [
            Refusal("a CONNECT", hex("100c 0004 4d515454 04 02 003c 0000"), .noHeader),
            Refusal("a ClientHello", hex("160301"), .noHeader), Refusal("GET / HTTP/1.1\r\n", .noHeader),
            Refusal("PROXI", .noHeader), Refusal("PROXY\r\n", .noHeader), Refusal("PROXY\tTCP4", .noHeader),
            Refusal("\r\n\r\n\0\r\nQUIT\r", .noHeader), Refusal("\r\n\r\n\r", .noHeader),
            Refusal("PROXY " + String(repeating: "x", count: 101), .lineTooLong),
            Refusal("PROXY " + String(repeating: "x", count: 100) + "\r", .lineTooLong),
            Refusal("PROXY " + String(repeating: "x", count: 100) + "\r\n", .lineTooLong),
            Refusal("PROXY UNKNOWN\n", .lineEnd), Refusal("PROXY UNKNOWN\r\r\n", .lineEnd),
            Refusal("PROXY TCP4 192.0.2.1\n198.51.100.2 1 2\r\n", .lineEnd),
            Refusal("another version", signature + hex("11"), .version(1)),
            Refusal("version 3", signature + hex("31 11 000c"), .version(3)),
            Refusal("an undefined command", signature + hex("22"), .command(2)),
            Refusal("an undefined family", signature + hex("21 41"), .family(0x41)),
            Refusal("an undefined transport", signature + hex("21 13"), .family(0x13)),
            Refusal("IPv4 addresses that are cut", signature + hex("21 11 000b"), .addressesCut(11)),
            Refusal("IPv6 addresses that are cut", signature + hex("21 21 0023"), .addressesCut(35)),
            Refusal("more than is taken", signature + hex("20 00 1001"), .tooLong(4_097)),
            Refusal("the longest that can be said", signature + hex("21 11 ffff"), .tooLong(65_535)),
        ]
        + [
            "PROXY \r\n", "PROXY TCP4\r\n", "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4.5 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.+4 1 2\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 -2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 999999\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP6 ::1%lo ::1 1 2\r\n", "PROXY TCP6 1::2::3 ::1 1 2\r\n",
            "PROXY TCP6 1:2:3:4:5:6:7 ::1 1 2\r\n", "PROXY TCP6 12345::1 ::1 1 2\r\n", "PROXY TCP6 : ::1 1 2\r\n",
            "PROXY UNKNOWNS\r\n",
        ].map { Refusal($0, .line) }

    @Test("what is neither form is refused, and by no part of it taken", arguments: refusals)
    func refuses(_ refusal: Refusal) {
        #expect(throws: refusal.problem) { try ProxyHeader.read(refusal.bytes) }
        for cut in 0..<refusal.bytes.count {
            // Waited for, or refused already.
            #expect((try? ProxyHeader.read(Array(refusal.bytes[..<cut]))) == nil)
        }
    }

    @Test("whatever the bytes, a header is never longer than they are, and more than it can have is never waited for")
    func hostile() {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<20_000 {
            var bytes = Self.vectors[Int.random(in: 0..<Self.vectors.count, using: &generator)].bytes.prefix(300)
            for _ in 0..<Int.random(in: 0...4, using: &generator) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            let whole = Array(bytes) + [UInt8](repeating: 0, count: 16 + ProxyHeader.maximumBlock)
            guard let header = try? ProxyHeader.read(Array(bytes)) else {
                // Refused, or waiting for something that a whole block's length must end.
                do { #expect(try ProxyHeader.read(whole) != nil) } catch {}
                continue
            }
            #expect(header.size <= bytes.count)
        }
        #expect(throws: ProxyHeader.Problem.lineTooLong) {
            try ProxyHeader.read(Array("PROXY ".utf8) + [UInt8](repeating: 0x20, count: 1 << 16))
        }
    }
}
