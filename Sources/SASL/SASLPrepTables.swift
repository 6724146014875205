/// The tables of RFC 3454 and of NFKC, both of Unicode 3.2, which RFC 4013 names; the standard library's are newer.
struct SASLPrepTables: Sendable {
    static let shared = SASLPrepTables()

    /// Mapped to nothing (RFC 3454 B.1).
    let nothing: CodePoints
    /// Spaces other than U+0020 (C.1.2).
    let spaces: CodePoints
    /// RFC 4013 §2.3.
    let prohibited: CodePoints
    /// The code points without a character in Unicode 3.2 (A.1).
    let unassigned: CodePoints
    /// RandALCat (D.1).
    let rightToLeft: CodePoints
    /// LCat (D.2).
    let leftToRight: CodePoints
    /// Full compatibility decompositions, without those of Hangul syllables.
    private let decompositions: [UInt32: [UInt32]]
    /// The composed character of each pair, whose first character is in the upper half.
    private let compositions: [UInt64: UInt32]
    private let classes: CodePoints
    private let classNumbers: [UInt8]

    private init() {
        // Made by Tests/SASLTests/Tables/generate.py: variable-length integers, seven bits a byte, the lowest first.
        var reader = Reader(bytes: PackageResources.unicode_3_2_bin)
        self.nothing = reader.codePoints()
        self.spaces = reader.codePoints()
        self.prohibited = reader.codePoints()
        self.unassigned = reader.codePoints()
        self.rightToLeft = reader.codePoints()
        self.leftToRight = reader.codePoints()
        var decompositions: [UInt32: [UInt32]] = [:]
        var last: UInt32 = 0
        for _ in 0..<reader.next() {
            last += reader.next()
            decompositions[last] = (0..<reader.next()).map { _ in reader.next() }
        }
        var compositions: [UInt64: UInt32] = [:]
        for _ in 0..<reader.next() {
            let first = UInt64(reader.next()) << 32
            compositions[first | UInt64(reader.next())] = reader.next()
        }
        self.decompositions = decompositions
        self.compositions = compositions
        (self.classes, self.classNumbers) = reader.classes()
    }

    /// Normalization form KC.
    func normalized(_ text: [UInt32]) -> [UInt32] {
        var parts: [UInt32] = []
        for point in text { self.decompose(point, into: &parts) }
        self.order(&parts)
        return self.composed(parts)
    }

    private func decompose(_ point: UInt32, into parts: inout [UInt32]) {
        if let syllable = Hangul.parts(of: point) {
            parts += syllable
        } else if let own = self.decompositions[point] {
            parts += own
        } else {
            parts.append(point)
        }
    }

    private func combiningClass(_ point: UInt32) -> UInt8 {
        self.classes.place(of: point).map { self.classNumbers[$0] } ?? 0
    }

    /// Sorts each run of combining marks by class; marks of one class keep their order.
    private func order(_ parts: inout [UInt32]) {
        var begin = 0
        while begin < parts.count {
            guard self.combiningClass(parts[begin]) > 0 else {
                begin += 1
                continue
            }
            let end = parts[begin...].firstIndex { self.combiningClass($0) == 0 } ?? parts.endIndex
            let marks = parts[begin..<end].enumerated().sorted {
                (self.combiningClass($0.element), $0.offset) < (self.combiningClass($1.element), $1.offset)
            }
            parts.replaceSubrange(begin..<end, with: marks.map(\.element))
            begin = end
        }
    }

    /// Joins each character with its starter, unless one of the same or a higher class lies between them.
    private func composed(_ parts: [UInt32]) -> [UInt32] {
        var whole: [UInt32] = []
        var starter: Int?
        var lastClass: UInt8 = 0
        for point in parts {
            let own = self.combiningClass(point)
            if let place = starter, whole.count == place + 1 || (lastClass < own && lastClass > 0),
                let joined = self.pair(whole[place], point)
            {
                whole[place] = joined
                continue
            }
            if own == 0 { starter = whole.count }
            lastClass = own
            whole.append(point)
        }
        return whole
    }

    private func pair(_ first: UInt32, _ second: UInt32) -> UInt32? {
        Hangul.pair(first, second) ?? self.compositions[UInt64(first) << 32 | UInt64(second)]
    }

    /// Reads the encoded tables; past their end every integer is 0.
    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        mutating func next() -> UInt32 {
            var (value, shift): (UInt32, UInt32) = (0, 0)
            while self.position < self.bytes.count {
                let byte = self.bytes[self.position]
                self.position += 1
                value |= UInt32(byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 { break }
            }
            return value
        }

        mutating func codePoints() -> CodePoints {
            var points = CodePoints()
            var end: UInt32 = 0
            for _ in 0..<self.next() { self.run(into: &points, &end) }
            return points
        }

        mutating func classes() -> (CodePoints, [UInt8]) {
            var points = CodePoints()
            var numbers: [UInt8] = []
            var end: UInt32 = 0
            for _ in 0..<self.next() {
                self.run(into: &points, &end)
                numbers.append(UInt8(truncatingIfNeeded: self.next()))
            }
            return (points, numbers)
        }

        private mutating func run(into points: inout CodePoints, _ end: inout UInt32) {
            let begin = end + self.next()
            end = begin + self.next()
            points.append(begin..<end)
        }
    }
}

/// Syllables that are composed by arithmetic (Unicode 3.2 §3.12).
private enum Hangul {
    static let (syllables, leads, vowels, trails): (UInt32, UInt32, UInt32, UInt32) = (0xAC00, 0x1100, 0x1161, 0x11A7)
    static let (leadCount, vowelCount, trailCount): (UInt32, UInt32, UInt32) = (19, 21, 28)

    static func parts(of point: UInt32) -> [UInt32]? {
        guard point >= self.syllables, point < self.syllables + self.leadCount * self.vowelCount * self.trailCount
        else { return nil }
        let (pair, trail) = (point - self.syllables).quotientAndRemainder(dividingBy: self.trailCount)
        let (lead, vowel) = pair.quotientAndRemainder(dividingBy: self.vowelCount)
        return [self.leads + lead, self.vowels + vowel] + (trail == 0 ? [] : [self.trails + trail])
    }

    static func pair(_ first: UInt32, _ second: UInt32) -> UInt32? {
        if first >= self.leads, first < self.leads + self.leadCount, second >= self.vowels,
            second < self.vowels + self.vowelCount
        {
            let pair = (first - self.leads) * self.vowelCount + second - self.vowels
            return self.syllables + pair * self.trailCount
        }
        guard second > self.trails, second < self.trails + self.trailCount, let parts = self.parts(of: first),
            parts.count == 2
        else { return nil }
        return first + second - self.trails
    }
}

/// A set of code points, as sorted runs.
struct CodePoints: Sendable {
    private var begins: [UInt32] = []
    private var ends: [UInt32] = []

    mutating func append(_ run: Range<UInt32>) {
        self.begins.append(run.lowerBound)
        self.ends.append(run.upperBound)
    }

    func contains(_ point: UInt32) -> Bool { self.place(of: point) != nil }

    /// The number of the run that has it.
    func place(of point: UInt32) -> Int? {
        var (low, high) = (0, self.begins.count)
        while low < high {
            let middle = (low + high) / 2
            if self.ends[middle] <= point { low = middle + 1 } else { high = middle }
        }
        return low < self.begins.count && self.begins[low] <= point ? low : nil
    }
}
