/// Tracks the packets of a byte stream, to cut it before a PUBLISH that may not be read yet.
package struct PublishScanner {
    private enum Position {
        case firstByte
        case length(value: Int, shift: Int)
        case body(left: Int)
    }

    private var position = Position.firstByte

    package init() {}

    /// How many of `bytes` may be read with a budget of PUBLISH packets.
    ///
    /// Each PUBLISH that begins in them reduces the budget.
    package mutating func prefix(of bytes: UnsafeRawBufferPointer, budget: inout Int) -> Int {
        var offset = 0
        while offset < bytes.count {
            switch self.position {
            case .firstByte:
                if bytes[offset] >> 4 == 3 {
                    guard budget > 0 else { return offset }
                    budget -= 1
                }
                offset += 1
                self.position = .length(value: 0, shift: 0)
            case .length(let value, let shift):
                let byte = bytes[offset]
                offset += 1
                let sum = value | Int(byte & 0x7F) << shift
                // The decoder reports a fifth byte as an error.
                if byte & 0x80 != 0, shift < 21 {
                    self.position = .length(value: sum, shift: shift + 7)
                } else {
                    self.position = sum == 0 ? .firstByte : .body(left: sum)
                }
            case .body(let left):
                let step = min(left, bytes.count - offset)
                offset += step
                self.position = step == left ? .firstByte : .body(left: left - step)
            }
        }
        return offset
    }
}
