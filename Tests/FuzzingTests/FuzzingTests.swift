import Fuzzing
import TestSupport
import Testing

@Suite("Mutated inputs")
struct FuzzingTests {
    /// Inputs of one run: a few seconds altogether.
    private static func count(_ target: Seeds.Target) -> Int {
        switch target {
        case .decoder: 40_000
        case .session, .broker, .tokenizer: 15_000
        // Each a whole conversation.
        case .stream: 4_000
        }
    }

    @Test("break no rule", arguments: Seeds.Target.allCases, [1, 2, 3] as [UInt64])
    func mutated(_ target: Seeds.Target, _ seed: UInt64) throws {
        var driver = Driver(target, seed: seed)
        do {
            try driver.runSeeds()
            try driver.run(Self.count(target))
        } catch {
            Issue.record("\(target.rawValue), seed \(seed): \(error)")
        }
        let reached = driver.target.reached
        #expect(reached.inputs > Self.count(target))
        // A fuzzer whose inputs are refused at the door finds nothing.
        #expect(reached.withPacket * 3 > reached.inputs)
    }

    @Test("reach every packet and every error of the decoder")
    func reachesDecoder() throws {
        var driver = Driver(.decoder, seed: 1)
        try driver.runSeeds()
        try driver.run(Self.count(.decoder))
        #expect(driver.target.reached.packetTypesMissing == [])
        #expect(driver.target.reached.errorsMissing == [])
    }

    @Test("reach every error of the tokenizer")
    func reachesTokenizer() throws {
        var driver = Driver(.tokenizer, seed: 1)
        try driver.runSeeds()
        try driver.run(Self.count(.tokenizer))
        let target = try #require(driver.target as? TokenizerTarget)
        #expect(target.errorsMissing == [])
    }

    @Test("found these once", arguments: Seeds.crashes)
    func found(_ crash: Seeds.Crash) throws {
        let target = try #require(Seeds.Target(rawValue: crash.target)).make()
        try target.run(hex(crash.bytes))
    }

    @Test("are the same from the same seed", arguments: Seeds.Target.allCases)
    func repeatable(_ target: Seeds.Target) throws {
        let reached = try (0..<2).map { _ in
            var driver = Driver(target, seed: 7)
            try driver.run(500)
            return driver.target.reached.description
        }
        #expect(reached[0] == reached[1])
    }
}
