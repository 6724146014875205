import Foundation
import Ledger
import TestSupport
import Testing

@Suite("The header of 16 or 20 bytes")
struct ShortHeaderTests {
    static let now: Int64 = 1_796_054_400_123_456_789

    static func bytes(_ header: PayloadHeader, isAddressed: Bool, asText isText: Bool = false) -> [UInt8] {
        let size = isAddressed ? ShortHeader.addressedSize : ShortHeader.size
        let count = isText ? ShortHeader.textSize(isAddressed: isAddressed) : size
        var bytes = [UInt8](repeating: 0xAA, count: count)
        bytes.withUnsafeMutableBytes { memory in
            guard let base = memory.baseAddress else { return }
            ShortHeader.write(
                to: base,
                run: header.run,
                publisher: header.publisher,
                flags: header.flags,
                sequence: header.sequence,
                due: header.due,
                isAddressed: isAddressed,
                asText: isText
            )
        }
        return bytes
    }

    static func read(_ bytes: [UInt8], run: UInt32, now: Int64 = Self.now) -> PayloadHeader? {
        bytes.withUnsafeBytes { ShortHeader($0)?.header(run: run, now: now) }
    }

    static func random(_ dice: inout SeededDice, isAddressed: Bool) -> PayloadHeader {
        PayloadHeader(
            run: .random(in: 0 ... .max, using: &dice),
            publisher: .random(in: 0..<StreamKey.publisherLimit, using: &dice),
            flags: PayloadHeader.flags(
                qos: .random(in: 0...2, using: &dice),
                stage: .random(in: 0...1_000, using: &dice),
                audience: isAddressed ? .random(in: 0..<StreamKey.audienceLimit, using: &dice) : 0
            ),
            sequence: .random(in: 0..<1 << 40, using: &dice),
            due: Self.now - .random(in: -30_000_000_000_000...30_000_000_000_000, using: &dice)
        )
    }

    @Test("has the fields at the bits of its table, big-endian")
    func layout() {
        let header = PayloadHeader(
            run: 0xDEAD_BEEF,
            publisher: 0x2A_AAAA,
            flags: 0x0000_1FFD,
            sequence: 0x5_5555_5555,
            due: 0x9_8765_4321 * 1_000
        )
        let bytes = Self.bytes(header, isAddressed: true)
        // 22 bits, 12 bits, 26 bits, the upper 4 of 36 bits.
        let high: UInt64 = 0x2A_AAAA << 42 | 0xFFD << 30 | 0x155_5555 << 4 | 0x9
        let parts = bytes.map(UInt64.init)
        #expect(parts[..<8].reduce(0) { $0 << 8 | $1 } == high)
        #expect(parts[8..<12].reduce(0) { $0 << 8 | $1 } == 0x8765_4321)
        #expect(bytes[12...13] == [0xBE, 0xEF])
        #expect(parts[16..<20].reduce(0) { $0 << 8 | $1 } >> 12 == 1)
    }

    @Test("is read back: the due time in microseconds, lower bits of the sequence number", arguments: [false, true])
    func reads(_ isAddressed: Bool) {
        var dice = SeededDice(seed: 47)
        for _ in 0..<20_000 {
            let header = Self.random(&dice, isAddressed: isAddressed)
            let bytes = Self.bytes(header, isAddressed: isAddressed) + [1, 2, 3]
            guard let found = Self.read(bytes, run: header.run) else {
                Issue.record("not read: \(header)")
                return
            }
            #expect(found.isShort && found.publisher == header.publisher && found.flags == header.flags)
            #expect(found.sequence == header.sequence & 0x3FF_FFFF && ShortHeader.matches(header.sequence, found))
            #expect(abs(found.due - header.due) <= 500 && found.due % 1_000 == 0)
        }
    }

    /// The shorter form's check alone would take one of 32,768.
    @Test("no header is taken for one of the other form")
    func forms() {
        var dice = SeededDice(seed: 53)
        var wrong = 0
        for number in 0..<400_000 {
            let isAddressed = number.isMultiple(of: 2)
            let header = Self.random(&dice, isAddressed: isAddressed)
            let found = Self.read(Self.bytes(header, isAddressed: isAddressed) + [1, 2, 3, 4], run: header.run)
            if found?.flags != header.flags { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    @Test("a due time is the nearest to the receiver's clock, up to nine hours off", arguments: [-34_000, 0, 34_000])
    func dueTimes(_ seconds: Int64) {
        let due = Self.now / 1_000_000 * 1_000_000
        let header = PayloadHeader(run: 1, publisher: 2, flags: 1, sequence: 3, due: due)
        let read = Self.read(Self.bytes(header, isAddressed: false), run: 1, now: due + seconds * 1_000_000_000)
        #expect(read?.due == due)
    }

    @Test("a changed bit, and another run, are refused", arguments: [false, true])
    func damage(_ isAddressed: Bool) {
        var dice = SeededDice(seed: 48)
        for _ in 0..<200 {
            let header = Self.random(&dice, isAddressed: isAddressed)
            let bytes = Self.bytes(header, isAddressed: isAddressed)
            #expect(Self.read(bytes, run: header.run &+ 0x1_0000) == nil)
            for bit in 0..<bytes.count * 8 {
                var damaged = bytes
                damaged[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(Self.read(damaged, run: header.run) == nil, "bit \(bit)")
            }
            #expect(Self.read(Array(bytes.dropLast()), run: header.run) == nil)
        }
    }

    /// One of 2^32 random payloads passes: with this seed none of them, with one of 430 seeds one.
    @Test("of 10,000,000 random payloads, and 100,000 of other runs, none is followed")
    func foreign() {
        var dice = SeededDice(seed: 147)
        let run: UInt32 = 0x1234_5678
        var followed = 0
        withUnsafeTemporaryAllocation(byteCount: 24, alignment: 8) { memory in
            for _ in 0..<10_000_000 {
                for offset in [0, 8, 16] { memory.storeBytes(of: dice.next(), toByteOffset: offset, as: UInt64.self) }
                let header = ShortHeader(UnsafeRawBufferPointer(memory))?.header(run: run, now: Self.now)
                if header != nil { followed += 1 }
            }
        }
        #expect(followed == 0)
        var alike = 0
        for number in 0..<150_000 {
            var header = Self.random(&dice, isAddressed: number.isMultiple(of: 2))
            // The last third has the lower half of the run's number, which a foreign run has once in 65,536.
            let isAlike = number >= 100_000
            if isAlike { header.run = header.run << 16 | run & 0xFFFF }
            let bytes = Self.bytes(header, isAddressed: number.isMultiple(of: 2))
            guard header.run != run, Self.read(bytes, run: run) != nil else { continue }
            if isAlike { alike += 1 } else { followed += 1 }
        }
        #expect(followed == 0)
        // The check lets one of 65,536 pass.
        #expect(alike <= 5)
    }

    // MARK: - Sequence numbers

    @Test("a stream goes on over the end of 26 bits, with gaps and late messages")
    func wraps() {
        var ledger = SubscriberLedger(publishers: 4)
        let subscription = ledger.addSubscription(0)
        func arrive(_ sequence: UInt64) -> StreamLedger.Arrival? {
            var header = PayloadHeader(run: 1, publisher: 2, flags: 1, sequence: sequence & 0x3FF_FFFF, due: 0)
            header.isShort = true
            let whole = ledger.whole(subscription: subscription, header)
            #expect(whole == sequence)
            return ledger.arrived(subscription: subscription, publisher: 2, qos: 1, sequence: whole)
        }
        let period: UInt64 = 1 << 26
        #expect(arrive(0) == .new)
        #expect(arrive(period / 2 - 1) == .new)
        #expect(arrive(period - 2) == .new)
        #expect(arrive(period + 1) == .new)
        #expect(arrive(period - 1) == .newLate)
        #expect(arrive(period) == .newLate)
        #expect(arrive(period + 1) == .duplicate)
        #expect(arrive(period + period / 2) == .new)
        #expect(arrive(2 * period - 5) == .new)
    }

    @Test("members of a share group count over the end of 26 bits as well")
    func wrapsInShares() {
        var members = ShareMembers(publishers: 4)
        let member = members.addMember(group: 9)
        var sequence: UInt64 = 3
        for _ in 0..<12 {
            var header = PayloadHeader(run: 1, publisher: 2, flags: 1, sequence: sequence & 0x3FF_FFFF, due: 0)
            header.isShort = true
            #expect(members.whole(member: member, header) == sequence)
            members.arrived(
                member: member,
                .init(publisher: 2, qos: 1, sequence: sequence, lane: 0, due: 0, at: 0)
            )
            sequence += 30_000_000
        }
    }

    // MARK: - Receivers that know no run

    @Test("two headers name the run, and a third confirms it", arguments: [false, true])
    func finds(_ isAddressed: Bool) {
        var dice = SeededDice(seed: 50)
        for _ in 0..<20 {
            var finder = ShortRunFinder()
            let first = Self.random(&dice, isAddressed: isAddressed)
            let runs = (0..<5).map { _ in
                var header = Self.random(&dice, isAddressed: isAddressed)
                header.due = Self.now - 1_000_000
                header.run = first.run
                return Self.bytes(header, isAddressed: isAddressed).withUnsafeBytes { bytes in
                    ShortHeader(bytes).flatMap { finder.run($0, now: Self.now) }
                }
            }
            #expect(runs == [nil, nil, first.run, first.run, first.run])
        }
    }

    @Test("no foreign payload names a run: random ones, and texts that are alike")
    func findsNone() {
        var dice = SeededDice(seed: 51)
        var finder = ShortRunFinder()
        var found = 0
        for number in 0..<300_000 {
            let text = Array("{\"n\":\(number % 97_000 + 100_000),\"unit\":\"C\",\"v\":1}".utf8)
            let random = (0..<20).map { _ in UInt8.random(in: 0 ... .max, using: &dice) }
            for payload in [text, random] {
                let run = payload.withUnsafeBytes { bytes in
                    ShortHeader(bytes).flatMap { finder.run($0, now: Self.now) }
                }
                if run != nil { found += 1 }
            }
        }
        #expect(found == 0)
    }

    // MARK: - As text

    @Test("as text it takes 24 or 29 characters that JSON and XML need not escape", arguments: [false, true])
    func text(_ isAddressed: Bool) {
        var dice = SeededDice(seed: 52)
        let safe = Set("~ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var offset = 0
        for round in 0..<2_000 {
            let header = Self.random(&dice, isAddressed: isAddressed)
            let text = Self.bytes(header, isAddressed: isAddressed, asText: true)
            // Base64url of the same bytes (RFC 4648 §5).
            let plain = Data(Self.bytes(header, isAddressed: isAddressed)).base64EncodedString()
            let url = plain.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
            #expect(String(decoding: text, as: UTF8.self) == (isAddressed ? "~M" : "~L") + url)
            #expect(text.count == (isAddressed ? 29 : 24) && safe.isSuperset(of: text))
            // Marks without a header come before it, at another place each time.
            let front = Array(repeating: Array("~L ~M~L{".utf8), count: round % 3).flatMap(\.self)
            let payload = front + text + Array("} ~".utf8)
            let found = payload.withUnsafeBytes { payload in
                ShortHeader.find(in: payload, at: &offset) { $0.header(run: header.run, now: Self.now) }
            }
            #expect(found?.sequence == header.sequence & 0x3FF_FFFF && offset == front.count)
            let none = payload.withUnsafeBytes { payload in
                ShortHeader.find(in: payload, at: &offset) { $0.header(run: ~header.run, now: Self.now) }
            }
            #expect(none == nil)
        }
    }
}
