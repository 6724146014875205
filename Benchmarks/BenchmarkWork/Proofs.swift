extension Work {
    /// Work whose need is known, for the gate to see that its meters see.
    package static let proofs = [
        Work(.engine, "nothing but a call", operations: 1_000) {
            { for number in 0..<1_000 { keep(number) } }
        },
        Work(.engine, Self.allocationProof, operations: 1_000) {
            {
                for _ in 0..<1_000 {
                    let memory = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 16)
                    keep(memory)
                    memory.deallocate()
                }
            }
        },
    ]

    package static let allocationProof = "an allocation of 64 bytes"
}
