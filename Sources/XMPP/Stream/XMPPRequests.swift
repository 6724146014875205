import NIOCore
import XMPPCodec

/// The IQs of one stream that wait for their answers.
///
/// Only an answer from the addressee counts: an id may leak, and another JID may guess that a request is pending (RFC
/// 6120 §8.1.3, §8.2.3). A request takes 56 bytes, without its JID.
struct XMPPRequests {
    struct Entry {
        /// The parts of the id: a random number that cannot be guessed, and a counter that keeps ids unique.
        let random: UInt64
        let count: UInt32
        let token: UInt64
        /// `nil`: the own account, for which the server answers.
        let to: JID?
        let deadline: NIODeadline
    }

    /// A request that an id belongs to.
    struct Place {
        fileprivate let index: Int
        /// It has timed out.
        let isLate: Bool
        let to: JID?
    }

    /// The last timed-out requests are remembered, to distinguish late answers from unexpected ones.
    private static let remembered = 16

    private(set) var entries: [Entry] = []
    private var expired: [Entry] = []
    private var count: UInt32 = 0
    private(set) var earliest = NIODeadline.distantFuture

    var isEmpty: Bool { self.entries.isEmpty }

    /// - Returns: random number and count for the next id.
    mutating func next(_ random: UInt64) -> (UInt64, UInt32) {
        self.count &+= 1
        return (random, self.count)
    }

    mutating func add(_ entry: Entry) {
        self.entries.append(entry)
        self.earliest = min(self.earliest, entry.deadline)
    }

    mutating func clear() {
        self.entries = []
        self.expired = []
        self.earliest = .distantFuture
    }

    func find(_ id: UnsafeRawBufferPointer) -> Place? {
        guard let (random, count) = StanzaID.read(id) else { return nil }
        if let index = self.entries.firstIndex(where: { $0.count == count && $0.random == random }) {
            return Place(index: index, isLate: false, to: self.entries[index].to)
        }
        guard let index = self.expired.firstIndex(where: { $0.count == count && $0.random == random }) else {
            return nil
        }
        return Place(index: index, isLate: true, to: self.expired[index].to)
    }

    /// Removes a request that was answered.
    ///
    /// - Returns: its token; `nil` if it had timed out.
    mutating func take(_ place: Place) -> UInt64? {
        if place.isLate {
            self.expired.remove(at: place.index)
            return nil
        }
        let token = self.entries.remove(at: place.index).token
        if self.entries.isEmpty { self.earliest = .distantFuture }
        return token
    }

    /// Takes out what has timed out, of those that are meant.
    mutating func expire(now: NIODeadline, where isMeant: (UInt64) -> Bool = { _ in true }) -> [UInt64] {
        guard now >= self.earliest else { return [] }
        var (late, left) = ([] as [Entry], [] as [Entry])
        for entry in self.entries {
            if entry.deadline <= now && isMeant(entry.token) { late.append(entry) } else { left.append(entry) }
        }
        self.entries = left
        self.expired = (self.expired + late.suffix(Self.remembered)).suffix(Self.remembered)
        self.earliest = left.lazy.map(\.deadline).min() ?? .distantFuture
        return late.map(\.token)
    }

    mutating func withdraw(_ token: UInt64) { self.entries.removeAll { $0.token == token } }

    /// Takes out everything, as when the connection is gone.
    mutating func takeAll() -> [UInt64] {
        let tokens = self.entries.map(\.token)
        self.clear()
        return tokens
    }
}

/// The text of an id: 16 digits of a random number, and the count.
enum StanzaID {
    static func write(_ random: UInt64, _ count: UInt32, into buffer: inout ByteBuffer) {
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 24) { bytes in
            for place in 0..<16 { bytes[place] = self.digit(random >> UInt64(60 - 4 * place)) }
            let width = max(1, (35 - count.leadingZeroBitCount) / 4)
            for place in 0..<width { bytes[16 + place] = self.digit(UInt64(count) >> UInt64(4 * (width - 1 - place))) }
            return 16 + width
        }
    }

    static func read(_ text: UnsafeRawBufferPointer) -> (UInt64, UInt32)? {
        guard (17...24).contains(text.count) else { return nil }
        var random: UInt64 = 0
        var count: UInt32 = 0
        for (place, byte) in text.enumerated() {
            let value: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            if place < 16 { random = random << 4 | UInt64(value) } else { count = count << 4 | UInt32(value) }
        }
        return (random, count)
    }

    private static func digit(_ value: UInt64) -> UInt8 {
        let value = UInt8(truncatingIfNeeded: value & 15)
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
