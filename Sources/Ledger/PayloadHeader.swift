/// The header of a message that the ledger follows: 32 bytes at the front of its payload.
///
/// Payloads without room for it, and texts of the user, carry a ``ShortHeader``. All numbers are big-endian, as
/// everywhere in MQTT: magic and version (`43 4C 4D 01`, "CLM" and 1), run, publisher, flags (4 bytes each), sequence
/// number, due time (8 bytes each).
package struct PayloadHeader: Hashable, Sendable {
    package static let size = 32
    /// "CLM" and the version of the layout.
    package static let magic: UInt32 = 0x434C_4D01
    /// "CLR" and the version: the payload of a reply, with the fields of the message that it answers.
    private static let replyMagic: UInt32 = 0x434C_5201

    /// ``patch(flags:sequence:due:at:)`` writes from here to the end.
    private static let flagsOffset = 12
    private static let sequenceOffset = 16
    private static let dueOffset = 24

    /// The run's number, which distinguishes its messages from those left over from another run.
    package var run: UInt32
    package var publisher: UInt32
    /// In MQTT, bits 0–1 are the publisher's QoS, bits 2–11 its ``stage`` and bits 12–31 the ``audience``.
    package var flags: UInt32
    /// 0 for the publisher's first message to this audience, then without gaps.
    package var sequence: UInt64
    /// Time when the publish was due, CLOCK_REALTIME in nanoseconds since 1970.
    package var due: Int64
    /// It was read from a ``ShortHeader``, which has only the lower bits of the sequence number.
    package var isShort = false

    package init(run: UInt32, publisher: UInt32, flags: UInt32, sequence: UInt64, due: Int64) {
        self.run = run
        self.publisher = publisher
        self.flags = flags
        self.sequence = sequence
        self.due = due
    }

    /// The publisher's QoS, 0...2; only a damaged payload has 3.
    package var qos: UInt8 { UInt8(truncatingIfNeeded: self.flags & 3) }

    @inlinable package static var stageShift: UInt32 { 2 }
    @inlinable package static var audienceShift: UInt32 { 12 }
    private static let stageMask: UInt32 = 0x3FF

    /// The flags for a publisher's QoS, ``stage`` and ``audience``.
    @inlinable package static func flags(qos: UInt8, stage: Int, audience: UInt32 = 0) -> UInt32 {
        UInt32(qos) | UInt32(truncatingIfNeeded: stage) << Self.stageShift | audience << Self.audienceShift
    }

    /// The publisher's number for the set of receivers that the message reaches.
    package var audience: UInt32 { self.flags >> Self.audienceShift }

    /// The stage of the load in which the message was due, from 1; 0 for a message that is not recorded.
    ///
    /// The publisher determines it, since the times of a receiver in another process differ.
    package var stage: Int { Int(self.flags >> Self.stageShift & Self.stageMask) }

    /// Writes the whole header; `memory` has space for ``size`` bytes and needs no alignment.
    package static func write(
        to memory: UnsafeMutableRawPointer,
        run: UInt32,
        publisher: UInt32,
        flags: UInt32,
        sequence: UInt64,
        due: Int64
    ) {
        memory.storeBytes(of: Self.magic.bigEndian, as: UInt32.self)
        memory.storeBytes(of: run.bigEndian, toByteOffset: 4, as: UInt32.self)
        memory.storeBytes(of: publisher.bigEndian, toByteOffset: 8, as: UInt32.self)
        self.patch(flags: flags, sequence: sequence, due: due, at: memory)
    }

    /// Overwrites flags, sequence number and due time of an existing header.
    package static func patch(flags: UInt32, sequence: UInt64, due: Int64, at memory: UnsafeMutableRawPointer) {
        memory.storeBytes(of: flags.bigEndian, toByteOffset: Self.flagsOffset, as: UInt32.self)
        self.patch(sequence: sequence, due: due, at: memory)
    }

    /// Overwrites the sequence number and due time of an existing header.
    package static func patch(sequence: UInt64, due: Int64, at memory: UnsafeMutableRawPointer) {
        memory.storeBytes(of: sequence.bigEndian, toByteOffset: Self.sequenceOffset, as: UInt64.self)
        memory.storeBytes(of: due.bigEndian, toByteOffset: Self.dueOffset, as: Int64.self)
    }

    /// Reads the header of a payload; `nil` if the payload is shorter, or has another magic or version.
    package static func read(_ payload: UnsafeRawBufferPointer) -> PayloadHeader? { self.read(payload, self.magic) }

    /// Reads the payload of a reply; `nil` if it is none.
    package static func readReply(_ payload: UnsafeRawBufferPointer) -> PayloadHeader? {
        self.read(payload, self.replyMagic)
    }

    /// Writes the payload of a reply to this message: ``size`` bytes.
    package func writeReply(to memory: UnsafeMutableRawPointer) {
        Self.write(
            to: memory,
            run: self.run,
            publisher: self.publisher,
            flags: self.flags,
            sequence: self.sequence,
            due: self.due
        )
        memory.storeBytes(of: Self.replyMagic.bigEndian, as: UInt32.self)
    }

    private static func read(_ payload: UnsafeRawBufferPointer, _ magic: UInt32) -> PayloadHeader? {
        guard payload.count >= Self.size, UInt32(bigEndian: payload.loadUnaligned(as: UInt32.self)) == magic
        else { return nil }
        return PayloadHeader(
            run: UInt32(bigEndian: payload.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
            publisher: UInt32(bigEndian: payload.loadUnaligned(fromByteOffset: 8, as: UInt32.self)),
            flags: UInt32(bigEndian: payload.loadUnaligned(fromByteOffset: Self.flagsOffset, as: UInt32.self)),
            sequence: UInt64(bigEndian: payload.loadUnaligned(fromByteOffset: Self.sequenceOffset, as: UInt64.self)),
            due: Int64(bigEndian: payload.loadUnaligned(fromByteOffset: Self.dueOffset, as: Int64.self))
        )
    }
}
