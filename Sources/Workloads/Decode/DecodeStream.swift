import NIOCore

/// Whole packets or stanzas in sequence, as a server sends them to a client.
package struct DecodeStream: Sendable {
    package let subject: DecodeSubject
    package let bytes: [UInt8]
    /// End offset of each packet.
    package let ends: [Int32]
    package let checksum: DecodeChecksum

    /// Writes whole cycles until the stream has at least `size` bytes.
    init(_ subject: DecodeSubject, _ writer: some DecodeStreamWriter, cycle: Int, atLeast size: Int) {
        var writer = writer
        var ends: [Int32] = []
        repeat {
            for _ in 0..<cycle {
                writer.writeNext()
                ends.append(Int32(writer.buffer.writerIndex))
            }
        } while writer.buffer.readableBytes < size
        writer.checksum.packets = UInt64(ends.count)
        self.subject = subject
        self.bytes = Array(writer.buffer.readableBytesView)
        self.ends = ends
        self.checksum = writer.checksum
    }

    private init(_ other: DecodeStream, claiming checksum: DecodeChecksum) {
        self.subject = other.subject
        self.bytes = other.bytes
        self.ends = other.ends
        self.checksum = checksum
    }

    /// The same stream with a different checksum, to test that a wrong decoder is detected.
    package func claiming(_ checksum: DecodeChecksum) -> DecodeStream { DecodeStream(self, claiming: checksum) }
}

/// Writes packets or stanzas one after another, and adds up their content.
protocol DecodeStreamWriter {
    var buffer: ByteBuffer { get }
    var checksum: DecodeChecksum { get set }
    mutating func writeNext()
}
