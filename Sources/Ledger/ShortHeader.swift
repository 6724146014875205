/// The ledger's header in 16 bytes, or in 20 where a stream has several audiences.
///
/// From the highest bit on, big-endian:
///
/// | bits | field | range |
/// | ---: | --- | --- |
/// | 22 | publisher | whole |
/// | 12 | lower bits of the flags: stage and QoS | whole |
/// | 26 | sequence number | lower bits; the receiver knows the stream's next number, and takes the nearest |
/// | 36 | due time in µs since 1970, rounded | lower bits, 19 h; the receiver takes the time nearest to its clock |
/// | 16 | run | lower bits of the run's number |
/// | 16 | check | a hash of the whole number of the run, and of all other fields |
/// | 20 | audience, in the longer form alone | whole |
/// | 12 | more of the hash, in the longer form alone | |
///
/// A receiver of the same run takes random bytes for a header once in 2^32. A sequence number is wrong where more than
/// 33,554,431 messages of one stream in a row do not arrive, or where a receiver hears of a stream only after its
/// 67,108,864th message. A due time is wrong where a message is under way for more than 9.5 h: the length of the run
/// does not matter.
package enum ShortHeader {
    package static let size = 16
    /// With the audience.
    package static let addressedSize = 20

    private static let sequenceBits: UInt64 = 26
    private static let sequenceMask: UInt64 = (1 << 26) - 1
    private static let dueMask: UInt64 = (1 << 36) - 1
    private static let flagsMask: UInt32 = (1 << PayloadHeader.audienceShift) - 1
    /// Tells the hash of the longer form from that of the shorter one.
    private static let addressed: UInt64 = 1 << 63

    /// Writes 16 bytes, or 20 if it is addressed; `memory` needs no alignment.
    package static func write(
        to memory: UnsafeMutableRawPointer,
        run: UInt32,
        publisher: UInt32,
        flags: UInt32,
        sequence: UInt64,
        due: Int64,
        isAddressed: Bool
    ) {
        let time = UInt64(bitPattern: (due &+ 500) / 1_000) & self.dueMask
        let high =
            UInt64(publisher) << 42 | UInt64(flags & self.flagsMask) << 30
            | (sequence & self.sequenceMask) << 4 | time >> 32
        let audience = UInt64(flags >> PayloadHeader.audienceShift)
        let hash = self.hash(run, high, time, isAddressed ? audience : nil)
        let low = (time & 0xFFFF_FFFF) << 32 | UInt64(run & 0xFFFF) << 16 | hash >> 48
        memory.storeBytes(of: high.bigEndian, as: UInt64.self)
        memory.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        guard isAddressed else { return }
        let rest = UInt32(truncatingIfNeeded: audience << 12 | hash >> 36 & 0xFFF)
        memory.storeBytes(of: rest.bigEndian, toByteOffset: 16, as: UInt32.self)
    }

    /// Two rounds of multiplication, about 2 ns; the upper bits depend on all fields.
    @inline(__always)
    private static func hash(_ run: UInt32, _ high: UInt64, _ time: UInt64, _ audience: UInt64?) -> UInt64 {
        let address = audience.map { $0 << 32 | Self.addressed } ?? 0
        var hash = (high ^ UInt64(run) &* 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ hash >> 32 ^ time & 0xFFFF_FFFF ^ address) &* 0x94D0_49BB_1331_11EB
        return (hash ^ hash >> 31) &* 0xD6E8_FEB8_6659_FD93
    }

    /// Reads a header of this run; `nil` for any other bytes.
    ///
    /// The bytes begin with the header; `now` is CLOCK_REALTIME in nanoseconds since 1970.
    package static func read(_ bytes: UnsafeRawBufferPointer, run: UInt32, now: Int64) -> PayloadHeader? {
        guard let fields = Fields(bytes), fields.run == UInt16(truncatingIfNeeded: run) else { return nil }
        if fields.isOf(run, nil) { return fields.header(run, audience: 0, now: now) }
        guard bytes.count >= self.addressedSize else { return nil }
        let rest = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: self.size, as: UInt32.self))
        return fields.isOf(run, rest) ? fields.header(run, audience: rest >> 12, now: now) : nil
    }

    /// The whole sequence number with these lower bits, in a stream whose next number is `next`.
    static func whole(_ sequence: UInt64, next: UInt64) -> UInt64 {
        let lower = sequence & self.sequenceMask
        guard next > 0 else { return lower }
        let shift = 64 - self.sequenceBits
        let distance = Int64(bitPattern: (lower &- next) << shift) >> Int64(shift)
        let number = Int64(clamping: next) &+ distance
        return UInt64(number < 0 ? number + (1 << Int64(self.sequenceBits)) : number)
    }

    /// Whether a whole sequence number has the lower bits of a header's.
    package static func matches(_ sequence: UInt64, _ header: PayloadHeader) -> Bool {
        header.isShort
            ? (sequence ^ header.sequence) & self.sequenceMask == 0 : sequence == header.sequence
    }

    /// The fields of 16 bytes that may be a header.
    struct Fields: Hashable {
        var high: UInt64
        var low: UInt64

        init?(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count >= ShortHeader.size else { return nil }
            self.high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
            self.low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }

        /// The lower half of the run's number.
        var run: UInt16 { UInt16(truncatingIfNeeded: self.low >> 16) }
        private var time: UInt64 { self.high << 32 & ShortHeader.dueMask | self.low >> 32 }

        /// `rest`: the last four bytes of the longer form.
        func isOf(_ run: UInt32, _ rest: UInt32?) -> Bool {
            let hash = ShortHeader.hash(run, self.high, self.time, rest.map { UInt64($0 >> 12) })
            guard hash >> 48 == self.low & 0xFFFF else { return false }
            return rest.map { hash >> 36 & 0xFFF == UInt64($0 & 0xFFF) } ?? true
        }

        func header(_ run: UInt32, audience: UInt32, now: Int64) -> PayloadHeader {
            let clock = now / 1_000
            // The difference to the clock, which has the sign of its highest of 36 bits.
            let distance = Int64(bitPattern: (self.time &- UInt64(bitPattern: clock)) << 28) >> 28
            var header = PayloadHeader(
                run: run,
                publisher: UInt32(truncatingIfNeeded: self.high >> 42),
                flags: UInt32(truncatingIfNeeded: self.high >> 30) & ShortHeader.flagsMask
                    | audience << PayloadHeader.audienceShift,
                sequence: self.high >> 4 & ShortHeader.sequenceMask,
                due: (clock &+ distance) &* 1_000
            )
            header.isShort = true
            return header
        }
    }
}

/// Finds the run of short headers for receivers that know of no publisher.
///
/// Two headers with the same half of a run's number, of which both have the check of one whole number, name it; a third
/// confirms it. Foreign payloads with the same bytes in that place are confirmed once in 2^32 payloads.
package struct ShortRunFinder: Sendable {
    private typealias Candidate = (fields: ShortHeader.Fields, rest: UInt32?)
    private var first: Candidate?
    private var found: UInt32?

    package init() {}

    /// The run, once a payload confirms it.
    package mutating func run(_ bytes: UnsafeRawBufferPointer) -> UInt32? {
        guard let fields = ShortHeader.Fields(bytes), fields != self.first?.fields else { return nil }
        let hasRest = bytes.count >= ShortHeader.addressedSize
        let rest = hasRest ? UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self)) : nil
        let candidate: Candidate = (fields, rest)
        defer { self.first = candidate }
        if let found = self.found {
            if Self.isOf(found, candidate) { return found }
            self.found = nil
        }
        guard let first = self.first, first.fields.run == fields.run else { return nil }
        // The other half is looked for: 65,536 numbers take less than a millisecond.
        self.found = (0...UInt32(UInt16.max)).lazy.map { $0 << 16 | UInt32(fields.run) }
            .first { Self.isOf($0, first) && Self.isOf($0, candidate) }
        return nil
    }

    private static func isOf(_ run: UInt32, _ candidate: Candidate) -> Bool {
        candidate.fields.isOf(run, nil) || candidate.rest.map { candidate.fields.isOf(run, $0) } ?? false
    }
}

/// A ``ShortHeader`` in a text: a mark of two characters, then base64url without padding (RFC 4648 §5).
package enum HeaderText {
    private static let tilde = UInt8(ascii: "~")
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// Characters with the mark: 24, or 29 with the audience.
    package static func size(isAddressed: Bool) -> Int { isAddressed ? 29 : 24 }

    /// The second character of the mark.
    private static func mark(isAddressed: Bool) -> UInt8 { isAddressed ? UInt8(ascii: "M") : UInt8(ascii: "L") }

    /// Writes the text of a header of 16 or 20 bytes.
    package static func write(
        _ header: UnsafeRawPointer,
        isAddressed: Bool,
        to text: UnsafeMutableRawPointer
    ) {
        text.storeBytes(of: self.tilde, as: UInt8.self)
        text.storeBytes(of: self.mark(isAddressed: isAddressed), toByteOffset: 1, as: UInt8.self)
        let alphabet = self.alphabet.utf8Start
        let count = isAddressed ? ShortHeader.addressedSize : ShortHeader.size
        var (bits, held, place) = (UInt32(0), 0, 2)
        for index in 0..<count {
            bits = bits << 8 | UInt32(header.load(fromByteOffset: index, as: UInt8.self))
            held += 8
            while held >= 6 {
                held -= 6
                text.storeBytes(of: alphabet[Int(bits >> UInt32(held) & 63)], toByteOffset: place, as: UInt8.self)
                place += 1
            }
        }
        text.storeBytes(of: alphabet[Int(bits << UInt32(6 - held) & 63)], toByteOffset: place, as: UInt8.self)
    }

    /// The bytes of a header whose mark begins the text: 16 or 20, in front of `body`'s buffer; `nil` without one.
    package static func decode<Result>(
        _ text: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) -> Result?
    ) -> Result? {
        guard text.count >= self.size(isAddressed: false), text[0] == self.tilde else { return nil }
        let isAddressed = text[1] == self.mark(isAddressed: true)
        let size = self.size(isAddressed: isAddressed)
        guard isAddressed || text[1] == self.mark(isAddressed: false), text.count >= size else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: ShortHeader.addressedSize, alignment: 8) { bytes in
            var (bits, held, count) = (UInt32(0), 0, 0)
            for index in 2..<size {
                guard let value = self.value(text[index]) else { return nil }
                bits = bits << 6 | value
                held += 6
                guard held >= 8 else { continue }
                held -= 8
                bytes[count] = UInt8(truncatingIfNeeded: bits >> UInt32(held))
                count += 1
            }
            return body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
    }

    private static func value(_ character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a") + 26)
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0") + 52)
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }

    /// The header in a text, by `read`: at the offset where the last one was, else at the first mark that holds one.
    package static func find<Result>(
        in text: UnsafeRawBufferPointer,
        at offset: inout Int,
        _ read: (UnsafeRawBufferPointer) -> Result?
    ) -> Result? {
        if offset < text.count, let found = self.decode(UnsafeRawBufferPointer(rebasing: text[offset...]), read) {
            return found
        }
        var rest = text
        while let mark = rest.firstIndex(of: self.tilde) {
            let part = UnsafeRawBufferPointer(rebasing: rest[mark...])
            if let found = self.decode(part, read) {
                offset = text.count - part.count
                return found
            }
            rest = UnsafeRawBufferPointer(rebasing: part.dropFirst())
        }
        return nil
    }
}
