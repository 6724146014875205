/// Changes inputs so that most of them stay packets: it knows where they begin, and can mend their lengths.
package struct Mutator {
    package var dice: Dice
    private let layout: FuzzInput.Layout
    /// Whole packets to splice in.
    private let packets: [[UInt8]]
    /// How many calls a target knows.
    private static let calls = 24
    private var largest: Int {
        switch self.layout {
        case .program: 256
        case .stream, .xml: 1_024
        case .conversation: 6_144
        case .text: 65_536
        }
    }

    package init(seed: UInt64, layout: FuzzInput.Layout, packets: [[UInt8]]) {
        self.dice = Dice(seed: seed)
        self.layout = layout
        self.packets = packets
    }

    /// A changed `input`; `other` lends a part now and then.
    package mutating func mutate(_ input: [UInt8], with other: [UInt8]) -> [UInt8] {
        var result = FuzzInput(input, self.layout)
        // Programs of many steps are rare.
        if self.layout == .program, self.dice.below(8) > 0 { result.settings[2] |= 0x10 }
        let rounds = 1 + self.dice.below(4)
        for _ in 0..<rounds { self.change(&result, with: other) }
        let bytes = result.bytes(self.layout)
        return bytes.count <= self.largest ? bytes : Array(bytes.prefix(self.largest))
    }

    private mutating func change(_ input: inout FuzzInput, with other: [UInt8]) {
        if self.layout == .xml { return self.changeXML(&input, with: other) }
        if self.layout == .text { return self.changeText(&input, with: other) }
        switch self.dice.below(16) {
        case 0: input.settings[self.dice.below(input.settings.count)] = self.dice.byte()
        case 1: self.crossOver(&input, FuzzInput(other, self.layout))
        case 2...5 where self.layout == .program || self.layout == .conversation: self.changeSteps(&input)
        default:
            let feeds = input.steps.indices.filter { if case .feed = input.steps[$0] { true } else { false } }
            guard !feeds.isEmpty else { return self.changeSteps(&input) }
            let index = feeds[self.dice.below(feeds.count)]
            guard case .feed(let connection, var stream) = input.steps[index] else { return }
            if self.layout == .conversation {
                XMLMutator(elements: self.packets).change(&stream, &self.dice)
            } else {
                self.change(&stream)
            }
            input.steps[index] = .feed(connection: connection, stream)
        }
    }

    /// The settings stay as they are: a file is read as what it is.
    private mutating func changeText(_ input: inout FuzzInput, with other: [UInt8]) {
        guard case .feed(_, var text)? = input.steps.first else { return }
        TextMutator().change(&text, with: Array(other.dropFirst(FuzzInput.settingsCount)), &self.dice)
        input.steps = [.feed(connection: 0, text)]
    }

    private mutating func changeXML(_ input: inout FuzzInput, with other: [UInt8]) {
        guard case .feed(_, var stream)? = input.steps.first else { return }
        switch self.dice.below(16) {
        case 0: input.settings[self.dice.below(input.settings.count)] = self.dice.byte()
        case 1:
            let tail = other.dropFirst(FuzzInput.settingsCount)
            stream = Array(stream.prefix(self.dice.below(stream.count + 1)))
            stream += tail.dropFirst(self.dice.below(tail.count + 1))
        default: XMLMutator(elements: self.packets).change(&stream, &self.dice)
        }
        input.steps = [.feed(connection: 0, stream)]
    }

    private mutating func crossOver(_ input: inout FuzzInput, _ other: FuzzInput) {
        if self.layout == .stream {
            guard case .feed(_, let stream)? = input.steps.first, case .feed(_, let tail)? = other.steps.first else {
                return
            }
            let head = Packets.starts(stream)
            let cut = Packets.starts(tail)
            input.steps = [
                .feed(
                    connection: 0,
                    Array(stream[..<(head.isEmpty ? 0 : head[self.dice.below(head.count)])])
                        + Array(tail[(cut.isEmpty ? 0 : cut[self.dice.below(cut.count)])...])
                )
            ]
        } else {
            input.steps = Array(input.steps.prefix(self.dice.below(input.steps.count + 1)))
            input.steps += other.steps.dropFirst(self.dice.below(other.steps.count + 1))
        }
    }

    private mutating func changeSteps(_ input: inout FuzzInput) {
        guard !input.steps.isEmpty else { return input.steps = [.call(0, self.dice.byte())] }
        let index = self.dice.below(input.steps.count)
        switch self.dice.below(8) {
        case 0, 1, 2:
            input.steps.insert(.call(UInt8(self.dice.below(Self.calls)), self.dice.byte()), at: index + 1)
        case 3: input.steps.remove(at: index)
        case 4: input.steps.insert(input.steps[index], at: self.dice.below(input.steps.count + 1))
        case 5: input.steps.swapAt(index, self.dice.below(input.steps.count))
        case 6:
            let packet = self.packets[self.dice.below(self.packets.count)]
            input.steps.insert(.feed(connection: UInt8(self.dice.below(4)), packet), at: index + 1)
        default:
            guard case .feed(let connection, let stream) = input.steps[index] else { return }
            let cut = self.dice.below(stream.count + 1)
            input.steps[index] = .feed(connection: connection, Array(stream[..<cut]))
            input.steps.insert(.feed(connection: connection, Array(stream[cut...])), at: index + 1)
        }
    }

    // MARK: Bytes of a stream

    private mutating func change(_ stream: inout [UInt8]) {
        guard !stream.isEmpty else { return stream = self.packets[self.dice.below(self.packets.count)] }
        let place = self.dice.below(stream.count)
        switch self.dice.below(16) {
        case 0: stream[place] ^= 1 << UInt8(self.dice.below(8))
        case 1: stream[place] = self.edge()
        case 2: stream.insert(self.edge(), at: place)
        case 3: stream.removeSubrange(place..<min(place + 1 + self.dice.below(4), stream.count))
        case 4: stream.removeSubrange(place...)
        case 5: stream.insert(contentsOf: self.packets[self.dice.below(self.packets.count)], at: self.boundary(stream))
        case 6: self.movePacket(&stream)
        default: self.changePacket(&stream)
        }
    }

    private mutating func boundary(_ stream: [UInt8]) -> Int {
        let starts = Packets.starts(stream)
        let choice = self.dice.below(starts.count + 1)
        return choice < starts.count ? starts[choice] : stream.count
    }

    private mutating func movePacket(_ stream: inout [UInt8]) {
        let ranges = Packets.ranges(stream)
        guard !ranges.isEmpty else { return }
        let range = ranges[self.dice.below(ranges.count)]
        let packet = Array(stream[range])
        let kind = self.dice.below(3)
        if kind > 0 { stream.removeSubrange(range) }
        if kind < 2 { stream.insert(contentsOf: packet, at: self.boundary(stream)) }
    }

    private mutating func changePacket(_ stream: inout [UInt8]) {
        let ranges = Packets.ranges(stream)
        guard !ranges.isEmpty else { return }
        let range = ranges[self.dice.below(ranges.count)]
        var first = stream[range.lowerBound]
        let header = Packets.header(stream, at: range.lowerBound)
        var body = Array(stream[min(range.lowerBound + header, range.upperBound)..<range.upperBound])
        var length = Packets.length(body.count)
        switch self.dice.below(10) {
        case 0: first = first & 0xF0 | self.dice.byte() & 0x0F
        case 1: first = UInt8(self.dice.below(16)) << 4 | first & 0x0F
        case 2: length = Packets.length(Self.lengths[self.dice.below(Self.lengths.count)])
        case 3:
            // Longer than it has to be, and once in a while too long.
            length[length.count - 1] |= 0x80
            for _ in 0..<self.dice.below(3) { length.append(0x80) }
            length.append(UInt8(self.dice.below(2)))
        case 4, 5:
            self.insertProperty(&body, type: first)
            length = Packets.length(body.count)
        default:
            self.changeBody(&body)
            length = Packets.length(body.count)
        }
        stream.replaceSubrange(range, with: [first] + length + body)
    }

    /// Changes a body, and corrects its length afterwards.
    private mutating func changeBody(_ body: inout [UInt8]) {
        guard !body.isEmpty else { return body.append(self.edge()) }
        let place = self.dice.below(body.count)
        switch self.dice.below(7) {
        case 0: body[place] ^= 1 << UInt8(self.dice.below(8))
        case 1: body[place] = self.edge()
        case 2: body.insert(self.edge(), at: place)
        case 3: body.remove(at: place)
        case 4: body.append(self.edge())
        case 5: body.removeSubrange(place...)
        default:
            // A length of two bytes, or a packet identifier.
            guard place + 1 < body.count else { return }
            let value = [0, 1, 2, 3, body.count - place - 2, body.count, 0x0100, 0xFFFF][self.dice.below(8)]
            body[place] = UInt8(truncatingIfNeeded: value >> 8)
            body[place + 1] = UInt8(truncatingIfNeeded: value)
        }
    }

    /// Puts a property behind the property length, and counts it there.
    private mutating func insertProperty(_ body: inout [UInt8], type first: UInt8) {
        let place: Int
        switch first >> 4 {
        case 1: place = 10
        case 3:
            guard body.count >= 2 else { return }
            place = 2 + Int(body[0]) << 8 + Int(body[1]) + (first & 6 == 0 ? 0 : 2)
        case 4...7: place = 3
        case 14, 15: place = 1
        default: place = 2
        }
        while body.count < place, body.count < 4 { body.append(0) }
        let property = Self.properties[self.dice.below(Self.properties.count)]
        if place == body.count { body.append(0) }
        guard place < body.count, Int(body[place]) + property.count < 128 else { return }
        body[place] += UInt8(property.count)
        body.insert(contentsOf: property, at: place + 1)
    }

    private mutating func edge() -> UInt8 {
        let edges: [UInt8] = [0, 1, 2, 3, 0x23, 0x24, 0x2B, 0x2F, 0x7F, 0x80, 0xC0, 0xFF]
        let choice = self.dice.below(edges.count * 2)
        return choice < edges.count ? edges[choice] : self.dice.byte()
    }

    private static let lengths = [
        0, 1, 2, 3, 4, 126, 127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455,
    ]

    /// Every property once, and some values that are wrong.
    private static let properties: [[UInt8]] = [
        [0x01, 1], [0x01, 2], [0x02, 0, 0, 0, 1], [0x03, 0, 1, 0x61], [0x08, 0, 1, 0x72], [0x08, 0, 1, 0x2B],
        [0x09, 0, 2, 0, 0xFF], [0x0B, 1], [0x0B, 0], [0x0B, 0xFF, 0xFF, 0xFF, 0x7F], [0x0B, 0x80, 0x00],
        [0x0B, 0x80, 0x80, 0x80, 0x80, 0x01], [0x11, 0, 0, 0, 10], [0x11, 0xFF, 0xFF, 0xFF, 0xFF], [0x12, 0, 1, 0x63],
        [0x13, 0, 1], [0x13, 0, 0], [0x15, 0, 1, 0x6D], [0x16, 0, 1, 0x64], [0x17, 0], [0x17, 1], [0x18, 0, 0, 0, 5],
        [0x19, 1], [0x1A, 0, 1, 0x69], [0x1C, 0, 1, 0x73], [0x1F, 0, 1, 0x6E], [0x1F, 0, 1, 0], [0x1F, 0, 1, 0xC0],
        [0x1F, 0, 1, 0x01], [0x21, 0, 1], [0x21, 0, 0], [0x21, 0xFF, 0xFF], [0x22, 0, 1], [0x23, 0, 1], [0x23, 0, 0],
        [0x24, 0], [0x24, 1], [0x25, 0], [0x26, 0, 1, 0x6B, 0, 1, 0x76], [0x27, 0, 0, 0, 0], [0x27, 0, 0, 0, 20],
        [0x28, 0], [0x29, 0], [0x2A, 0], [0x7E],
    ]
}

/// Where packets begin and end, by their lengths alone.
enum Packets {
    static func starts(_ stream: [UInt8]) -> [Int] { self.ranges(stream).map(\.lowerBound) }

    /// The last one may be short of its end.
    static func ranges(_ stream: [UInt8]) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        while start < stream.count {
            var length = 0
            var header = 1
            while header <= 4, start + header < stream.count {
                let byte = stream[start + header]
                length |= Int(byte & 0x7F) << (7 * (header - 1))
                header += 1
                if byte & 0x80 == 0 { break }
            }
            let end = min(start + header + length, stream.count)
            ranges.append(start..<end)
            start = end
        }
        return ranges
    }

    /// Bytes of the fixed header.
    static func header(_ stream: [UInt8], at start: Int) -> Int {
        var header = 1
        while header <= 4, start + header < stream.count {
            header += 1
            if stream[start + header - 1] & 0x80 == 0 { break }
        }
        return header
    }

    static func length(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = count
        repeat {
            let byte = UInt8(rest & 0x7F)
            rest >>= 7
            bytes.append(rest > 0 ? byte | 0x80 : byte)
        } while rest > 0
        return bytes
    }
}
