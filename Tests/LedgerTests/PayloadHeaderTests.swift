import Ledger
import Testing

@Suite("The header in front of a payload")
struct PayloadHeaderTests {
    /// Written by hand after the layout: "CLM" 1, run, publisher, flags, sequence, due, all big-endian.
    static let bytes: [UInt8] = [
        0x43, 0x4C, 0x4D, 0x01, 0xDE, 0xAD, 0xBE, 0xEF, 0x00, 0x01, 0xE2, 0x40, 0x00, 0x00, 0x00, 0x02,
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x07, 0x18, 0x79, 0xB7, 0x73, 0x9A, 0x2A, 0x00, 0x00,
    ]
    static let header = PayloadHeader(
        run: 0xDEAD_BEEF,
        publisher: 123_456,
        flags: 2,
        sequence: 4_294_967_303,
        due: 0x1879_B773_9A2A_0000
    )

    @Test("is written as the layout says, at an odd address too, and leaves the following bytes unchanged")
    func writes() {
        var memory = [UInt8](repeating: 0xAA, count: 40)
        memory.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            PayloadHeader.write(
                to: base + 3,
                run: Self.header.run,
                publisher: Self.header.publisher,
                flags: Self.header.flags,
                sequence: Self.header.sequence,
                due: Self.header.due
            )
        }
        #expect(memory == [0xAA, 0xAA, 0xAA] + Self.bytes + [UInt8](repeating: 0xAA, count: 5))
    }

    @Test("is patched in its last 16 bytes alone")
    func patches() {
        var memory = Self.bytes
        memory.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            PayloadHeader.patch(sequence: 0x0102_0304_0506_0708, due: -1, at: base)
        }
        #expect(memory == Self.bytes[..<16] + [1, 2, 3, 4, 5, 6, 7, 8] + [UInt8](repeating: 0xFF, count: 8))
    }

    @Test("is read back, whatever follows it and wherever it begins")
    func reads() {
        #expect(read(Self.bytes) == Self.header)
        #expect(read(Self.bytes + [1, 2, 3]) == Self.header)
        let shifted = [0] + Self.bytes
        #expect(
            shifted.withUnsafeBytes { PayloadHeader.read(UnsafeRawBufferPointer(rebasing: $0[1...])) } == Self.header
        )
    }

    @Test(
        "gives the publisher's QoS from the lowest two flag bits",
        arguments: [(0, 0), (1, 1), (2, 2), (3, 3), (0xFD, 1)]
    )
    func qos(_ flags: UInt32, _ qos: UInt8) {
        #expect(PayloadHeader(run: 0, publisher: 0, flags: flags, sequence: 0, due: 0).qos == qos)
    }

    @Test("is patched from its flags on", arguments: [0, 0x0102_0304] as [UInt32])
    func patchesFlags(_ flags: UInt32) {
        var memory = Self.bytes
        memory.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            PayloadHeader.patch(flags: flags, sequence: 7, due: -1, at: base)
        }
        let written = (0..<4).map { UInt8(truncatingIfNeeded: flags >> (24 - 8 * $0)) }
        #expect(memory == Self.bytes[..<12] + written + [0, 0, 0, 0, 0, 0, 0, 7] + [UInt8](repeating: 0xFF, count: 8))
    }

    @Test("names the stage in bits 2 to 11", arguments: [0, 1, 2, 1_000, 1_023])
    func stages(_ stage: Int) {
        for qos: UInt8 in 0...2 {
            let flags = PayloadHeader.flags(qos: qos, stage: stage)
            #expect(flags == UInt32(stage) << 2 | UInt32(qos))
            let header = PayloadHeader(run: 0, publisher: 0, flags: flags | 0xFFFF_F000, sequence: 0, due: 0)
            #expect(header.qos == qos && header.stage == stage)
        }
    }

    @Test("is not there when the payload is shorter, at every length")
    func short() {
        for length in 0..<32 { #expect(read(Array(Self.bytes[..<length])) == nil) }
    }

    @Test("is not there when any byte of magic and version differs", arguments: 0..<4)
    func otherMagic(_ index: Int) {
        var bytes = Self.bytes
        bytes[index] ^= 0x10
        #expect(read(bytes) == nil)
    }

    private func read(_ bytes: [UInt8]) -> PayloadHeader? { bytes.withUnsafeBytes { PayloadHeader.read($0) } }
}
