import DataEncodings

internal import CZlib

/// The reason why a text is not an encoded histogram.
package enum HistogramDecodingError: Error, Hashable, Sendable, CustomStringConvertible {
    case notBase64
    case truncated
    /// The first four bytes identify another format: HdrHistogram V0 or V1, or an unknown one.
    case unknownFormat(UInt32)
    case badCompression
    /// A field of the header is out of range.
    case badLayout
    /// More counts than the range in the header has buckets, or a count that does not fit.
    case badCounts

    package var description: String {
        switch self {
        case .notBase64: "the histogram is not base64"
        case .truncated: "the histogram ends too early"
        case .unknownFormat(let cookie): "not an HdrHistogram V2 encoding: cookie 0x\(String(cookie, radix: 16))"
        case .badCompression: "the histogram's compressed part is damaged"
        case .badLayout: "the histogram's header is out of range"
        case .badCounts: "the histogram's counts do not fit its range"
        }
    }
}

extension Histogram {
    /// The V2 encoding of HdrHistogram, deflated, in base64: `HISTFAAAA...`.
    package func encodedV2() -> String {
        let payload = HistogramPayload.encode(self)
        let deflated = Deflate.compress(payload)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(deflated.count + 8)
        bytes.appendBigEndian(HistogramPayload.compressedCookie)
        bytes.appendBigEndian(UInt32(deflated.count))
        bytes += deflated
        return Base64.encode(bytes)
    }

    /// Decodes the text of `encodedV2()`, or of another HdrHistogram implementation.
    ///
    /// A value from another layout moves to the bucket that contains the middle of its old bucket.
    package init(decodingV2 text: String) throws(HistogramDecodingError) {
        guard let bytes = Base64.decode(text.utf8) else { throw .notBase64 }
        var reader = BigEndianReader(bytes)
        let cookie = try reader.read(UInt32.self)
        guard cookie == HistogramPayload.compressedCookie else { throw .unknownFormat(cookie) }
        let length = try reader.read(UInt32.self)
        guard Int(length) <= reader.remaining.count else { throw .truncated }
        guard let payload = Deflate.expand(Array(reader.remaining.prefix(Int(length)))) else { throw .badCompression }
        self = try HistogramPayload.decode(payload)
    }
}

/// The uncompressed V2 form: a header of 40 bytes, then the counts as zig-zag LEB128; runs of zeros are negative.
package enum HistogramPayload {
    // The second digit from the right means "word size from LEB128".
    package static let cookie: UInt32 = 0x1C84_9313
    package static let compressedCookie: UInt32 = 0x1C84_9314
    package static let significantDigits: UInt32 = 3

    package static func encode(_ histogram: Histogram) -> [UInt8] {
        var counts: [UInt8] = []
        let range = histogram.touched
        var index = 0
        while index < range.upperBound {
            let count = index < range.lowerBound ? 0 : histogram.count(at: index)
            if count > 0 {
                counts.appendZigZag(Int64(clamping: count))
                index += 1
                continue
            }
            let start = index
            index = Swift.max(index, range.lowerBound)
            while histogram.count(at: index) == 0 { index += 1 }
            // A single zero is written as it is, a run as its negative length.
            counts.appendZigZag(index - start == 1 ? 0 : -Int64(index - start))
        }
        // The Java and C encoders write the bucket of the maximum, which is 0 in an empty histogram.
        if counts.isEmpty { counts.appendZigZag(0) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(counts.count + 40)
        bytes.appendBigEndian(Self.cookie)
        bytes.appendBigEndian(UInt32(counts.count))
        bytes.appendBigEndian(UInt32(0))  // normalizing index offset
        bytes.appendBigEndian(Self.significantDigits)
        bytes.appendBigEndian(UInt64(1))  // lowest discernible value
        bytes.appendBigEndian(UInt64(Histogram.highest))
        bytes.appendBigEndian((1.0).bitPattern)  // integer to double conversion ratio
        return bytes + counts
    }

    package static func decode(_ bytes: [UInt8]) throws(HistogramDecodingError) -> Histogram {
        var reader = BigEndianReader(bytes)
        let cookie = try reader.read(UInt32.self)
        guard cookie == Self.cookie else { throw .unknownFormat(cookie) }
        let length = try reader.read(UInt32.self)
        let offset = try reader.read(UInt32.self)
        let digits = try reader.read(UInt32.self)
        let lowest = try reader.read(UInt64.self)
        _ = try reader.read(UInt64.self)  // the highest value, not needed: the counts have their own end
        _ = try reader.read(UInt64.self)
        guard offset == 0, digits <= 5, lowest >= 1, lowest < 1 << 40 else { throw .badLayout }
        guard Int(length) <= reader.remaining.count else { throw .truncated }
        let layout = ForeignLayout(digits: Int(digits), lowest: lowest)

        var histogram = Histogram()
        var index = 0
        var counts = ZigZagReader(reader.remaining.prefix(Int(length)))
        while let count = try counts.next() {
            if count < 0 {
                guard count > -Int64(ForeignLayout.mostBuckets) else { throw .badCounts }
                index += Int(-count)
            } else {
                if count > 0 {
                    guard let value = layout.value(at: index) else { throw .badCounts }
                    histogram.record(value, count: UInt64(count))
                }
                index += 1
            }
            guard index <= ForeignLayout.mostBuckets else { throw .badCounts }
        }
        histogram.widenExtremes()
        return histogram
    }
}

/// The buckets of an HDR histogram of any resolution.
private struct ForeignLayout {
    /// 5 digits over 63 powers of two, rounded up; no valid histogram has more.
    package static let mostBuckets = 1 << 24

    private let halfCount: Int
    private let unit: Int

    init(digits: Int, lowest: UInt64) {
        var steps = 2
        for _ in 0..<digits { steps *= 10 }
        // The next power of two, halved.
        self.halfCount = 1 << (Int.bitWidth - (steps - 1).leadingZeroBitCount - 1)
        self.unit = 63 - lowest.leadingZeroBitCount
    }

    /// The middle of a bucket; from the standard layout it maps to the same bucket.
    func value(at index: Int) -> Int64? {
        let power = Swift.max(index / self.halfCount - 1, 0)
        let shift = power + self.unit
        let step = index - power * self.halfCount
        guard shift < 62 - (Int.bitWidth - step.leadingZeroBitCount) else { return nil }
        return Int64(step) << Int64(shift) + (Int64(1) << Int64(shift)) / 2
    }
}

private struct BigEndianReader {
    private(set) var remaining: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { self.remaining = bytes[...] }

    mutating func read<Word: FixedWidthInteger>(_: Word.Type) throws(HistogramDecodingError) -> Word {
        let size = Word.bitWidth / 8
        guard self.remaining.count >= size else { throw .truncated }
        defer { self.remaining.removeFirst(size) }
        return self.remaining.prefix(size).reduce(0) { $0 << 8 | Word($1) }
    }
}

private struct ZigZagReader {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// The next number, or nil at the end.
    mutating func next() throws(HistogramDecodingError) -> Int64? {
        guard !self.bytes.isEmpty else { return nil }
        var value: UInt64 = 0
        for position in 0..<9 {
            guard let byte = self.bytes.popFirst() else { throw .truncated }
            // The ninth byte, if there is one, has eight bits and no continuation.
            let isLast = byte & 0x80 == 0 || position == 8
            value |= UInt64(position == 8 ? byte : byte & 0x7F) << UInt64(7 * position)
            if isLast { break }
        }
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }
}

package enum Deflate {
    package static func compress(_ bytes: [UInt8]) -> [UInt8] {
        var size = compressBound(uLong(bytes.count))
        let room = Int(size)
        return [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            // Fails only for a buffer below compressBound, or without memory.
            let status = compress2(buffer.baseAddress, &size, bytes, uLong(bytes.count), Z_DEFAULT_COMPRESSION)
            precondition(status == Z_OK, "zlib could not compress: \(status)")
            count = Int(size)
        }
    }

    /// The expanded bytes, or nil if they are damaged or exceed 64 MiB.
    package static func expand(_ bytes: [UInt8]) -> [UInt8]? {
        var room = Swift.max(bytes.count * 8, 4096)
        while room <= 64 << 20 {
            var size = uLongf(room)
            var status = Z_OK
            let expanded = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                status = uncompress(buffer.baseAddress, &size, bytes, uLong(bytes.count))
                count = status == Z_OK ? Int(size) : 0
            }
            if status == Z_OK { return expanded }
            guard status == Z_BUF_ERROR else { return nil }
            room *= 4
        }
        return nil
    }
}

extension [UInt8] {
    fileprivate mutating func appendBigEndian<Word: FixedWidthInteger>(_ word: Word) {
        for shift in stride(from: Word.bitWidth - 8, through: 0, by: -8) {
            self.append(UInt8(truncatingIfNeeded: word >> Word(shift)))
        }
    }

    fileprivate mutating func appendZigZag(_ number: Int64) {
        var value = UInt64(bitPattern: number << 1 ^ number >> 63)
        for _ in 0..<8 where value > 0x7F {
            self.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        self.append(UInt8(truncatingIfNeeded: value))
    }
}
