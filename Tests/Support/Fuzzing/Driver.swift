import CFuzzing

/// Feeds mutated inputs to a target, and keeps those that reached something new to mutate them further.
package struct Driver {
    package struct Failure: Error, CustomStringConvertible {
        package let input: [UInt8]
        package let finding: Finding

        package var description: String {
            let hex = self.input.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            return "\(self.finding)\n  input: \(hex)"
        }
    }

    package let target: any FuzzTarget
    private var mutator: Mutator
    package private(set) var corpus: [[UInt8]]
    private let seeds: [[UInt8]]
    /// A bit for each signature, by 26 bits of its hash: it must not grow, for the targets look at the process's memory.
    private var seen = [UInt64](repeating: 0, count: 1 << 20)
    private let largestCorpus: Int
    /// Longer ones cost more than they bring.
    private let largestKept: Int
    /// Seconds of processor time for the inputs between two looks at it.
    private static let patience: UInt32 = 60
    /// Since the last call of ``run(_:)`` or ``runSeeds()``.
    private var inputs = 0

    package init(_ target: Seeds.Target, seed: UInt64) {
        self.target = target.make()
        self.largestKept = target.layout == .text ? 65_536 : target.layout == .conversation ? 2_048 : 120
        self.largestCorpus = target.layout == .text ? 256 : 4_096
        self.seeds = Seeds.inputs(target)
        self.corpus = self.seeds
        self.mutator = Mutator(seed: seed, layout: target.layout, packets: target.packets)
    }

    /// Runs every seed as it is.
    package mutating func runSeeds() throws(Failure) {
        defer { self.end() }
        for input in self.corpus { try self.run(input) }
    }

    /// Runs `count` mutated inputs.
    package mutating func run(_ count: Int) throws(Failure) {
        defer { self.end() }
        for _ in 0..<count {
            // Half of them from the seeds: mutants of mutants get refused sooner.
            let bases = self.mutator.dice.below(2) == 0 ? self.seeds : self.corpus
            let base = bases[self.mutator.dice.below(bases.count)]
            let other = self.corpus[self.mutator.dice.below(self.corpus.count)]
            let input = self.mutator.mutate(base, with: other)
            let isNew = try self.run(input)
            if isNew, input.count <= self.largestKept, self.corpus.count < self.largestCorpus {
                self.corpus.append(input)
            }
        }
    }

    /// - Returns: whether it reached something new.
    @discardableResult
    private mutating func run(_ input: [UInt8]) throws(Failure) -> Bool {
        let target = self.target
        // The timer is wound once in a while only: it costs a call into the kernel.
        let patience = self.inputs & 4_095 == 0 ? Self.patience : 0
        self.inputs += 1
        do throws(Finding) {
            try input.withBytes { bytes throws(Finding) in
                clamor_input_begins(bytes.baseAddress, bytes.count, patience)
                try target.run(bytes)
            }
        } catch {
            throw Failure(input: input, finding: error)
        }
        return self.isNew(target.signature)
    }

    private mutating func isNew(_ signature: UInt64) -> Bool {
        let hash = (signature &* 0x9E37_79B9_7F4A_7C15) >> 38
        let (word, bit) = (Int(hash >> 6), UInt64(1) << (hash & 63))
        defer { self.seen[word] |= bit }
        return self.seen[word] & bit == 0
    }

    private mutating func end() {
        self.inputs = 0
        clamor_inputs_end()
    }
}
