/// Changes of bytes that know nothing of their format.
enum ByteChange {
    /// They have the numbers 0 to 4.
    static let kinds = 0..<5

    /// Puts in bytes of `marks`, or leaves out `most` at once.
    static func apply(
        _ kind: Int,
        to bytes: inout [UInt8],
        at place: Int,
        marks: [UInt8],
        most: Int,
        _ dice: inout Dice
    ) {
        switch kind {
        case 0: bytes[place] ^= 1 << UInt8(dice.below(8))
        case 1: bytes[place] = marks[dice.below(marks.count)]
        case 2: bytes.insert(marks[dice.below(marks.count)], at: place)
        case 3: bytes.removeSubrange(place..<min(place + 1 + dice.below(most), bytes.count))
        default: bytes.removeSubrange(place...)
        }
    }
}
