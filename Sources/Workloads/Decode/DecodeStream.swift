import NIOCore

/// Whole packets or stanzas, one behind the other, as a server sends them to a client.
package struct DecodeStream: Sendable {
    package let subject: DecodeSubject
    package let bytes: [UInt8]
    /// Where each packet ends.
    package let ends: [Int32]
    package let checksum: DecodeChecksum

    /// Goes on until it has so many bytes, and a whole number of cycles.
    init(_ subject: DecodeSubject, _ writer: some DecodeStreamWriter, cycle: Int, atLeast size: Int) {
        var writer = writer
        repeat {
            for _ in 0..<cycle { writer.writeNext() }
        } while writer.buffer.readableBytes < size
        self.subject = subject
        self.bytes = Array(writer.buffer.readableBytesView)
        self.ends = writer.ends
        self.checksum = writer.checksum
    }

    private init(_ other: DecodeStream, claiming checksum: DecodeChecksum) {
        self.subject = other.subject
        self.bytes = other.bytes
        self.ends = other.ends
        self.checksum = checksum
    }

    /// The same with another sum: to see that a decoder which delivers something else would be found out.
    package func claiming(_ checksum: DecodeChecksum) -> DecodeStream { DecodeStream(self, claiming: checksum) }
}

/// Writes one packet or stanza after the other, and adds up what is in them.
protocol DecodeStreamWriter {
    var buffer: ByteBuffer { get }
    var ends: [Int32] { get }
    var checksum: DecodeChecksum { get }
    mutating func writeNext()
}
