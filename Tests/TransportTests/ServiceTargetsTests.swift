import TestSupport
import Testing
import Transport

@Suite("The targets of a domain")
struct ServiceTargetsTests {
    static func record(_ priority: UInt16, _ weight: UInt16, _ target: String) -> ServiceRecord {
        ServiceRecord(priority: priority, weight: weight, port: 5222, target: target)
    }

    static func order(
        _ standard: ServiceAnswer,
        _ direct: ServiceAnswer,
        seed: UInt64 = 1
    ) -> Result<[String], LookupFailure> {
        var generator = SeededGenerator(seed: seed)
        return Result { () throws(LookupFailure) in
            try ServiceTargets.order(domain: "x.test", standard: standard, direct: direct, using: &generator)
                .map { "\($0.target)\($0.isDirectTLS ? " TLS" : "")" }
        }
    }

    static let notOffered = LookupFailure(
        "x.test says in the DNS that it offers no XMPP to clients (an SRV target of \".\")"
    )

    @Test(
        "[RFC 6120 §3.2.1, XEP-0368 §5] records, the root for a target, none, and no answer",
        arguments: [
            (.records([record(1, 0, "a")]), .nothing, .success(["a:5222"])),
            (.records([record(1, 0, "a")]), .notOffered, .success(["a:5222"])),
            (.records([record(1, 0, "a")]), .notWanted, .success(["a:5222"])),
            (.records([record(2, 0, "a")]), .records([record(1, 0, "b")]), .success(["b:5222 TLS", "a:5222"])),
            (.notOffered, .records([record(1, 0, "b")]), .success(["b:5222 TLS"])),
            (.nothing, .records([record(1, 0, "b")]), .success(["b:5222 TLS"])),
            (.notOffered, .nothing, .failure(notOffered)), (.notOffered, .notOffered, .failure(notOffered)),
            (.notOffered, .notWanted, .failure(notOffered)), (.notWanted, .notOffered, .failure(notOffered)),
            (.nothing, .nothing, .success(["x.test:5222"])), (.nothing, .notOffered, .success(["x.test:5222"])),
            (.failed(LookupFailure("no answer")), .nothing, .success(["x.test:5222"])),
            (.failed(LookupFailure("no answer")), .notWanted, .success(["x.test:5222"])),
            (.notWanted, .nothing, .success(["x.test:5223 TLS"])),
            (.records([record(1, 0, "a")]), .failed(LookupFailure("no answer")), .success(["a:5222"])),
            (.failed(LookupFailure("no answer")), .records([record(1, 0, "b")]), .success(["b:5222 TLS"])),
        ] as [(ServiceAnswer, ServiceAnswer, Result<[String], LookupFailure>)]
    )
    func answers(_ standard: ServiceAnswer, _ direct: ServiceAnswer, _ targets: Result<[String], LookupFailure>) {
        #expect(Self.order(standard, direct) == targets)
    }

    @Test("[RFC 2782] the lowest priority comes first, and no target is left out, whatever the draw")
    func priorities() throws {
        let records = [
            Self.record(20, 1, "d"), Self.record(10, 0, "a"), Self.record(10, 100, "b"), Self.record(10, 0, "c"),
        ]
        var firsts: Set<String> = []
        for seed in 0..<500 {
            let order = try Self.order(.records(records), .nothing, seed: UInt64(seed)).get()
            #expect(order.last == "d:5222" && Set(order).count == 4)
            firsts.insert(order[0])
        }
        // Without weight there is a chance, a small one.
        #expect(firsts.contains("b:5222") && firsts.isSubset(of: ["a:5222", "b:5222", "c:5222"]))
        let again = Self.order(.records(records), .nothing, seed: 3)
        #expect(Self.order(.records(records), .nothing, seed: 3) == again)
    }

    @Test("[RFC 2782] without weights all targets have the same chance")
    func weightless() throws {
        let records = ["a", "b", "c"].map { Self.record(1, 0, $0) }
        var counts: [String: Int] = [:]
        for seed in 0..<3_000 {
            let order = try Self.order(.records(records), .nothing, seed: UInt64(seed)).get()
            counts[order[0], default: 0] += 1
        }
        // 5 standard deviations of 3,000 draws are 129.
        for target in ["a:5222", "b:5222", "c:5222"] { #expect(abs(counts[target, default: 0] - 1_000) < 130) }
    }

    @Test("[RFC 2782] within a priority by weight, of both services together")
    func weights() throws {
        var counts: [String: Int] = [:]
        for seed in 0..<4_000 {
            let order = try Self.order(
                .records([Self.record(1, 60, "a"), Self.record(1, 10, "b")]),
                .records([Self.record(1, 30, "c")]),
                seed: UInt64(seed)
            ).get()
            counts[order[0], default: 0] += 1
        }
        // 4 standard deviations of 4,000 draws are 124, 76 and 116.
        #expect(abs(counts["a:5222", default: 0] - 2_400) < 130)
        #expect(abs(counts["b:5222", default: 0] - 400) < 90)
        #expect(abs(counts["c:5222 TLS", default: 0] - 1_200) < 130)
    }

    @Test("a thousand targets are not all tried")
    func limit() throws {
        let records = (0..<256).map { Self.record(UInt16($0), 0, "t\($0)") }
        #expect(try Self.order(.records(records), .nothing).get().count == 16)
    }
}
