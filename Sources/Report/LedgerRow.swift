import Ledger

struct LedgerRow {
    enum Kind: String, CaseIterable {
        /// The times after it are of the segment's next process.
        case process
        case loadBegan = "load_began"
        case publishersEnded = "publishers_ended"
        case subscribersLeft = "subscribers_left"
        // How the deliveries of the segment ended.
        case lastArrival = "last_arrival"
        case lastPublish = "last_publish"
        case probed, ended, longest, unproved
        case receivers, began, granted
        case placePublishers = "place_publishers"
        case placeReceivers = "place_receivers"
        case placeStage = "place_stage"
        case audiences, members
        /// A detail of the members in the row before, where their No Local filters make a difference.
        case noLocal = "no_local"
        case publisher
        // These rows describe the publisher in the row before.
        case unsent, outstanding, resent, admitted
        case neverSent = "never_sent"
        /// Messages of a lane: their `count`, and when the last of them was due. The lane is in the column of audiences.
        case due
        case distinct, duplicated, reordered, overlapped, foreign, repeated, overflowed, late, absent
        case stream
        // These rows describe the stream in the row before.
        case streamDuplicated = "stream_duplicated"
        case streamPermitted = "stream_permitted"
        case streamOverlapped = "stream_overlapped"
        case streamReordered = "stream_reordered"
        case streamExcused = "stream_excused"
        /// The last row, with the number of rows before it.
        case end

        /// Whether it has names, which may be quoted.
        var isNamed: Bool { self == .placePublishers || self == .placeReceivers || self == .placeStage }

        var flags: [Flag] {
            switch self {
            case .members: [.shared]
            case .publisher: [.expires, .ordered, .alone]
            case .stream: [.overflowed]
            case .placeStage: [.measured]
            default: []
            }
        }

        var hasSequences: Bool {
            switch self {
            case .unproved, .receivers, .began, .granted, .members, .publisher, .unsent, .outstanding, .resent,
                .admitted, .late,
                .absent, .stream, .streamDuplicated, .streamReordered, .streamExcused:
                true
            default: false
            }
        }
    }

    enum Flag: String {
        case shared, expires, ordered, alone, overflowed, measured
    }

    static let columns = [
        "kind", "receiver", "publisher", "audience", "qos", "at", "count", "sequences", "flags", "group", "name",
    ]

    let kind: Kind
    var receiver: UInt32?
    var publisher: UInt32?
    var audience: UInt32?
    var qos: UInt8?
    var at: Int64?
    var count: UInt64?
    /// The runs may have any order; ``set`` has those that are a set.
    var sequences: [Range<UInt64>] = []
    var flags: [Flag] = []
    var group = ""
    var name = ""

    init(_ kind: Kind, qos: UInt8? = nil, at: Int64? = nil, count: UInt64? = nil, _ sequences: [Range<UInt64>] = []) {
        self.kind = kind
        self.qos = qos
        self.at = at
        self.count = count
        self.sequences = sequences
    }

    var text: String {
        func cell(_ value: (some BinaryInteger)?) -> String { value.map { String($0) } ?? "" }
        let numbers =
            "\(cell(self.receiver)),\(cell(self.publisher)),\(cell(self.audience)),\(cell(self.qos)),\(cell(self.at)),"
            + cell(self.count)
        let runs = self.sequences.map { run in
            run.count == 1 ? "\(run.lowerBound)" : "\(run.lowerBound)-\(run.upperBound - 1)"
        }.joined(separator: " ")
        let flags = self.flags.map(\.rawValue).joined(separator: " ")
        let names = self.kind.isNamed ? "\(CSV.quoted(self.group)),\(CSV.quoted(self.name))" : ","
        return "\(self.kind.rawValue),\(numbers),\(runs),\(flags),\(names)\n"
    }

    // MARK: - Back

    private static let kinds = Dictionary(uniqueKeysWithValues: Kind.allCases.map { (Substring($0.rawValue), $0) })

    /// `nil` for what is no row, or has a number out of bounds.
    init?(_ line: Substring) {
        // Cells of numbers are not quoted.
        var cells = line.parts(separator: 0x2C)
        guard let kind = Self.kinds[cells[0]] else { return nil }
        self.kind = kind
        if kind.isNamed { cells = CSV.cells(of: line)?.map { Substring($0) } ?? [] }
        guard cells.count == Self.columns.count else { return nil }
        let numbers = cells[1...6].map(Self.number)
        for (cell, number) in zip(cells[1...6], numbers) where cell.isEmpty != (number == nil) { return nil }
        guard numbers[0...2].allSatisfy({ $0 ?? 0 <= UInt64(UInt32.max) }), numbers[3] ?? 0 <= 2,
            numbers[4] ?? 0 <= UInt64(Int64.max), numbers[5] ?? 0 <= StreamLedger.sequenceLimit
        else { return nil }
        self.receiver = numbers[0].map { UInt32($0) }
        self.publisher = numbers[1].map { UInt32($0) }
        self.audience = numbers[2].map { UInt32($0) }
        self.qos = numbers[3].map { UInt8($0) }
        self.at = numbers[4].map { Int64($0) }
        self.count = numbers[5]
        for part in cells[7].isEmpty ? [] : cells[7].parts(separator: 0x20) {
            guard let run = Self.run(part) else { return nil }
            self.sequences.append(run)
        }
        for part in cells[8].isEmpty ? [] : cells[8].parts(separator: 0x20) {
            guard let flag = Flag(rawValue: String(part)), !self.flags.contains(flag) else { return nil }
            self.flags.append(flag)
        }
        guard kind.hasSequences || self.sequences.isEmpty, self.flags.allSatisfy(kind.flags.contains),
            kind.isNamed || cells[9].isEmpty && cells[10].isEmpty
        else { return nil }
        (self.group, self.name) = (String(cells[9]), String(cells[10]))
    }

    private static func run(_ text: Substring) -> Range<UInt64>? {
        let ends = text.parts(separator: 0x2D).map(self.number)
        guard let first = ends[0], ends.count <= 2, let last = ends[ends.count - 1], first <= last,
            last < StreamLedger.sequenceLimit
        else { return nil }
        return first..<last + 1
    }

    /// Digits only, unlike `UInt64.init`.
    private static func number(_ text: Substring) -> UInt64? {
        guard !text.isEmpty else { return nil }
        var number: UInt64 = 0
        for byte in text.utf8 {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (tens, isAbove) = number.multipliedReportingOverflow(by: 10)
            let (sum, isAboveToo) = tens.addingReportingOverflow(UInt64(byte - 0x30))
            guard !isAbove, !isAboveToo else { return nil }
            number = sum
        }
        return number
    }

    /// The runs as a set; `nil` unless they are as a set has them.
    var set: SequenceRanges? {
        for (run, next) in zip(self.sequences, self.sequences.dropFirst()) where run.upperBound >= next.lowerBound {
            return nil
        }
        return SequenceRanges(self.sequences)
    }

    /// The numbers of the runs, in their order; `nil` if there are more than `limit`, or one is none of a receiver.
    func numbers(atMost limit: Int) -> [UInt32]? {
        var left = UInt64(max(0, limit))
        for run in self.sequences {
            let length = run.upperBound - run.lowerBound
            guard run.upperBound <= UInt64(UInt32.max), length <= left else { return nil }
            left -= length
        }
        return self.sequences.flatMap { run in run.map { UInt32($0) } }
    }
}

extension Substring {
    /// The parts between bytes of ASCII; characters would take several times as long.
    fileprivate func parts(separator: UInt8) -> [Substring] {
        self.utf8.split(separator: separator, omittingEmptySubsequences: false).map { Substring($0) }
    }
}
