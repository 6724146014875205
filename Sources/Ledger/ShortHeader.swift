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
/// | 15 | check | a hash of the whole number of the run, and of all other fields |
/// | 1 | form | set in the longer one |
/// | 20 | audience, in the longer form alone | whole |
/// | 12 | more of the hash, in the longer form alone | |
///
/// A receiver of the same run takes random bytes for a header once in 2^32. A sequence number is wrong where more than
/// 33,554,431 messages of one stream in a row do not arrive, or where a receiver hears of a stream only after its
/// 67,108,864th message. A due time is wrong where a message is under way for more than 9.5 h: the length of the run
/// does not matter.
package struct ShortHeader: Hashable, Sendable {
    package static let size = 16
    /// With the audience.
    package static let addressedSize = 20

    private static let sequenceBits: UInt64 = 26
    private static let sequenceMask: UInt64 = (1 << 26) - 1
    private static let dueMask: UInt64 = (1 << 36) - 1
    private static let flagsMask: UInt32 = (1 << PayloadHeader.audienceShift) - 1
    private var high: UInt64
    private var low: UInt64
    /// The last four bytes of the longer form.
    private var rest: UInt32

    @inline(__always)
    private init(run: UInt32, publisher: UInt32, flags: UInt32, sequence: UInt64, due: Int64, isAddressed: Bool) {
        let time = UInt64(bitPattern: (due &+ 500) / 1_000) & Self.dueMask
        let audience = UInt64(flags >> PayloadHeader.audienceShift)
        self.high =
            UInt64(publisher) << 42 | UInt64(flags & Self.flagsMask) << 30
            | (sequence & Self.sequenceMask) << 4 | time >> 32
        let hash = Self.hash(run, self.high, time, isAddressed ? audience : 0)
        self.low =
            (time & 0xFFFF_FFFF) << 32 | UInt64(run & 0xFFFF) << 16 | (hash >> 49) << 1 | (isAddressed ? 1 : 0)
        self.rest = isAddressed ? UInt32(truncatingIfNeeded: audience << 12 | hash >> 37 & 0xFFF) : 0
    }

    private var isAddressed: Bool { self.low & 1 != 0 }

    /// Two rounds of multiplication, about 2 ns; the upper bits depend on all fields.
    @inline(__always)
    private static func hash(_ run: UInt32, _ high: UInt64, _ time: UInt64, _ audience: UInt64) -> UInt64 {
        var hash = (high ^ UInt64(run) &* 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ hash >> 32 ^ time & 0xFFFF_FFFF ^ audience << 32) &* 0x94D0_49BB_1331_11EB
        return (hash ^ hash >> 31) &* 0xD6E8_FEB8_6659_FD93
    }

    // MARK: - As bytes

    /// Writes 16 bytes, or 20 if it is addressed, as text 24 characters or 29; `memory` needs no alignment.
    package static func write(
        to memory: UnsafeMutableRawPointer,
        run: UInt32,
        publisher: UInt32,
        flags: UInt32,
        sequence: UInt64,
        due: Int64,
        isAddressed: Bool,
        asText isText: Bool = false
    ) {
        let header = Self(
            run: run,
            publisher: publisher,
            flags: flags,
            sequence: sequence,
            due: due,
            isAddressed: isAddressed
        )
        if isText { return header.writeText(to: memory) }
        memory.storeBytes(of: header.high.bigEndian, as: UInt64.self)
        memory.storeBytes(of: header.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        if isAddressed { memory.storeBytes(of: header.rest.bigEndian, toByteOffset: 16, as: UInt32.self) }
    }

    /// Bytes that may begin with a header; `nil` if they are too few.
    @inline(__always)
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.size else { return nil }
        self.high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        self.low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        self.rest = 0
        guard self.isAddressed else { return }
        guard bytes.count >= Self.addressedSize else { return nil }
        self.rest = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
    }

    // MARK: - Fields

    /// The lower half of the run's number.
    fileprivate var half: UInt32 { UInt32(truncatingIfNeeded: self.low >> 16) & 0xFFFF }
    private var time: UInt64 { self.high << 32 & Self.dueMask | self.low >> 32 }
    private var audience: UInt32 { self.rest >> 12 }

    @inline(__always)
    fileprivate func isOf(_ run: UInt32) -> Bool {
        let hash = Self.hash(run, self.high, self.time, UInt64(self.audience))
        guard hash >> 49 == self.low >> 1 & 0x7FFF else { return false }
        return !self.isAddressed || hash >> 37 & 0xFFF == UInt64(self.rest & 0xFFF)
    }

    /// The difference to a clock in microseconds, which has the sign of its highest of 36 bits.
    @inline(__always)
    fileprivate func distance(to clock: Int64) -> Int64 {
        Int64(bitPattern: (self.time &- UInt64(bitPattern: clock)) << 28) >> 28
    }

    /// The header, if it is one of this run; `now` is CLOCK_REALTIME in nanoseconds since 1970.
    @inline(__always)
    package func header(run: UInt32, now: Int64) -> PayloadHeader? {
        guard self.half == run & 0xFFFF, self.isOf(run) else { return nil }
        let clock = now / 1_000
        let distance = self.distance(to: clock)
        var header = PayloadHeader(
            run: run,
            publisher: UInt32(truncatingIfNeeded: self.high >> 42),
            flags: UInt32(truncatingIfNeeded: self.high >> 30) & Self.flagsMask
                | self.audience << PayloadHeader.audienceShift,
            sequence: self.high >> 4 & Self.sequenceMask,
            due: (clock &+ distance) &* 1_000
        )
        header.isShort = true
        return header
    }

    // MARK: - Sequence numbers

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

    // MARK: - As text

    // A mark of two characters, then base64url without padding (RFC 4648 §5).
    private static let tilde = UInt8(ascii: "~")
    private static let plainMark = UInt8(ascii: "L")
    private static let addressedMark = UInt8(ascii: "M")
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// Characters with the mark: 24, or 29 with the audience.
    package static func textSize(isAddressed: Bool) -> Int { isAddressed ? 29 : 24 }

    /// Writes 24 characters, or 29 if it is addressed.
    private func writeText(to text: UnsafeMutableRawPointer) {
        text.storeBytes(of: Self.tilde, as: UInt8.self)
        text.storeBytes(of: self.isAddressed ? Self.addressedMark : Self.plainMark, toByteOffset: 1, as: UInt8.self)
        // 60, 60 and 8 bits; the last 8 are followed by zeros, or by those of the longer form.
        Self.encode(self.high >> 4, digits: 10, to: text + 2)
        Self.encode(self.high << 56 | self.low >> 8, digits: 10, to: text + 12)
        let last = self.low & 0xFF
        if self.isAddressed {
            Self.encode((last << 32 | UInt64(self.rest)) << 2, digits: 7, to: text + 22)
        } else {
            Self.encode(last << 4, digits: 2, to: text + 22)
        }
    }

    /// The lowest bits of a number, six for each digit.
    @inline(__always)
    private static func encode(_ bits: UInt64, digits: Int, to text: UnsafeMutableRawPointer) {
        let alphabet = Self.alphabet.utf8Start
        for place in 0..<digits {
            let digit = Int(truncatingIfNeeded: bits >> UInt64(6 * (digits - 1 - place)) & 63)
            text.storeBytes(of: alphabet[digit], toByteOffset: place, as: UInt8.self)
        }
    }

    /// A text whose mark is at the offset; `nil` if there is none, or if digits of another kind follow it.
    private init?(_ text: UnsafeRawBufferPointer, at offset: Int) {
        guard offset >= 0, text.count - offset >= Self.textSize(isAddressed: false), let base = text.baseAddress,
            text[offset] == Self.tilde
        else { return nil }
        let isLong = text[offset + 1] == Self.addressedMark
        guard isLong || text[offset + 1] == Self.plainMark, text.count - offset >= Self.textSize(isAddressed: isLong),
            let first = Self.decode(base + offset + 2, digits: 10),
            let second = Self.decode(base + offset + 12, digits: 10),
            let third = Self.decode(base + offset + 22, digits: isLong ? 7 : 2)
        else { return nil }
        self.high = first << 4 | second >> 56
        self.low = second << 8 | (isLong ? third >> 34 : third >> 4)
        self.rest = isLong ? UInt32(truncatingIfNeeded: third >> 2) : 0
        guard self.isAddressed == isLong else { return nil }
    }

    @inline(__always)
    private static func decode(_ text: UnsafeRawPointer, digits: Int) -> UInt64? {
        var bits: UInt64 = 0
        var wrong: UInt8 = 0
        for place in 0..<digits {
            let value = self.value(text.load(fromByteOffset: place, as: UInt8.self))
            wrong |= value
            bits = bits << 6 | UInt64(value & 63)
        }
        return wrong < 64 ? bits : nil
    }

    /// Six bits; 255 for a character outside the alphabet.
    @inline(__always)
    private static func value(_ character: UInt8) -> UInt8 {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: 255
        }
    }

    /// The header in a text, by `read`: at the offset where the last one was, else at the first mark that holds one.
    ///
    /// The search costs about 1 ns for each character.
    package static func find(
        in text: UnsafeRawBufferPointer,
        at offset: inout Int,
        _ read: (ShortHeader) -> PayloadHeader?
    ) -> PayloadHeader? {
        if let found = Self(text, at: offset).flatMap(read) { return found }
        var place = 0
        while place < text.count {
            if text[place] == self.tilde, let found = Self(text, at: place).flatMap(read) {
                offset = place
                return found
            }
            place += 1
        }
        return nil
    }
}

/// Finds the run of short headers for receivers that know of no publisher.
///
/// Two headers with the same half of a run's number, of which both have the check of one whole number, name it; a third
/// confirms it. Foreign payloads with the same bytes in that place are confirmed once in 2^30 payloads.
package struct ShortRunFinder: Sendable {
    /// A search looks through 65,536 numbers, 0.1 ms; foreign payloads may ask for one each.
    private static let searchesPerSecond = 16
    /// A header is plausible that was due so many microseconds from now at most.
    private static let longestDelay: Int64 = 600_000_000

    private var first: ShortHeader?
    private var found: UInt32?
    private var second: Int64 = 0
    private var searches = 0

    package init() {}

    /// The run, once a header confirms it; `now` is CLOCK_REALTIME in nanoseconds since 1970.
    package mutating func run(_ header: ShortHeader, now: Int64) -> UInt32? {
        guard header != self.first, abs(header.distance(to: now / 1_000)) < Self.longestDelay else { return nil }
        defer { self.first = header }
        if let found = self.found {
            if header.isOf(found) { return found }
            self.found = nil
        }
        guard let first = self.first, first.half == header.half else { return nil }
        if now / 1_000_000_000 != self.second { (self.second, self.searches) = (now / 1_000_000_000, 0) }
        self.searches += 1
        guard self.searches <= Self.searchesPerSecond else { return nil }
        self.found = (0...UInt32(UInt16.max)).lazy.map { $0 << 16 | header.half }
            .first { first.isOf($0) && header.isOf($0) }
        return nil
    }
}
