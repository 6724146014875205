/// The four-byte acknowledgement of success, which all versions have.
public enum AcknowledgementBytes {
    package static let count = 4

    /// Writes the four bytes of a PUBACK, PUBREC, PUBREL (with its flags 0010) or PUBCOMP.
    @inlinable
    public static func write(_ type: PacketType, id: UInt16, to memory: UnsafeMutableRawPointer) {
        let first = type.firstByte(flags: type == .pubRel ? 0b0010 : 0)
        let word = UInt32(first) << 24 | 2 << 16 | UInt32(id)
        memory.storeBytes(of: word.bigEndian, as: UInt32.self)
    }
}
