package import NIOCore

/// How many PUBLISH may be read now, so that over time there are `rate` a second.
///
/// A token bucket that holds 5 ms worth and one, so that a pause is not made up for by a burst.
package struct RateGate {
    private let perNanosecond: Double
    private let capacity: Double
    private var tokens: Double
    private var last: NIODeadline

    package init(rate: Double, now: NIODeadline) {
        self.perNanosecond = rate / 1e9
        self.capacity = 1 + rate * 0.005
        self.tokens = self.capacity
        self.last = now
    }

    /// Whole PUBLISH that may be read at `now`.
    package mutating func available(now: NIODeadline) -> Int {
        if now > self.last {
            self.tokens = min(self.capacity, self.tokens + Double((now - self.last).nanoseconds) * self.perNanosecond)
            self.last = now
        }
        return Int(self.tokens)
    }

    package mutating func take(_ count: Int) { self.tokens -= Double(count) }

    /// When the next whole one is there, but not before half a millisecond: a wake-up has its price.
    func nextDue(now: NIODeadline) -> NIODeadline {
        let missing = max(0, 1 - self.tokens) / self.perNanosecond
        return now + .nanoseconds(Int64(min(max(missing, 500_000), 3.6e12)))
    }
}

/// Follows the packets of a byte stream, to cut it in front of a PUBLISH that may not be read yet.
package struct PublishScanner {
    private enum Position {
        case firstByte
        case length(value: Int, shift: Int)
        case body(left: Int)
    }

    private var position = Position.firstByte

    package init() {}

    /// How many of `bytes` may be read with `budget` PUBLISH, which is taken down by those that begin in them.
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
                // A fifth byte is an error for the decoder to find.
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
