/// Labels of domains that are not ASCII, in ASCII; without `xn--`.
///
/// Spec: RFC 3492.
package enum Punycode {
    /// A label has at most 63 bytes, of which `xn--` takes four.
    private static let most = 59
    private static let base: UInt32 = 36
    private static let smallest: UInt32 = 1
    private static let largest: UInt32 = 26

    /// Nothing for what would be too long for any label.
    package static func encode(_ label: [Unicode.Scalar]) -> String? {
        // Each character takes one byte at least.
        guard label.count <= self.most else { return nil }
        var output = label.filter(\.isASCII).map { UInt8($0.value) }
        let basic = UInt32(output.count)
        var handled = basic
        if basic > 0 { output.append(UInt8(ascii: "-")) }
        var next: UInt32 = 128
        var delta: UInt32 = 0
        var bias: UInt32 = 72
        while handled < label.count {
            guard let least = label.map(\.value).filter({ $0 >= next }).min() else { return nil }
            // 60 characters and 0x110000 values: no overflow.
            delta += (least - next) * (handled + 1)
            next = least
            for scalar in label {
                if scalar.value < next { delta += 1 }
                guard scalar.value == next else { continue }
                self.append(delta, bias: bias, to: &output)
                bias = self.adapt(delta, points: handled + 1, isFirst: handled == basic)
                delta = 0
                handled += 1
            }
            delta += 1
            next += 1
        }
        return output.count <= self.most ? String(decoding: output, as: UTF8.self) : nil
    }

    /// Nothing for what no label is written as: capital letters in place of digits are not taken.
    package static func decode(_ text: some Collection<UInt8>) -> [Unicode.Scalar]? {
        guard text.count <= self.most else { return nil }
        let digits = Array(text)
        let hyphen = digits.lastIndex(of: UInt8(ascii: "-"))
        let basic = digits[..<(hyphen ?? 0)]
        guard hyphen != 0, basic.allSatisfy({ $0 < 0x80 }) else { return nil }
        var label = basic.map { Unicode.Scalar($0) }
        var at = hyphen.map { $0 + 1 } ?? 0
        var next: UInt32 = 128
        var place: UInt32 = 0
        var bias: UInt32 = 72
        while at < digits.count {
            guard let delta = self.delta(digits, &at, bias: bias) else { return nil }
            let count = UInt32(label.count) + 1
            place += delta
            bias = self.adapt(delta, points: count, isFirst: label.count == basic.count)
            next += place / count
            guard let scalar = Unicode.Scalar(next) else { return nil }
            label.insert(scalar, at: Int(place % count))
            place = place % count + 1
        }
        return label
    }

    /// Appends a number in as few digits as it needs; `at` moves past them.
    private static func delta(_ digits: [UInt8], _ at: inout Int, bias: UInt32) -> UInt32? {
        // Places in a label times values: what is more leads to no character.
        let bound: UInt64 = 0x11_0000 * 64
        var delta: UInt64 = 0
        var weight: UInt64 = 1
        var position = self.base
        while at < digits.count, let digit = self.value(digits[at]) {
            at += 1
            let threshold = min(max(position, bias + self.smallest) - bias, self.largest)
            delta += UInt64(digit) * weight
            guard delta <= bound else { return nil }
            if digit < threshold { return UInt32(delta) }
            // A digit that is not the last is not 0: the weight is no more than what there is already.
            weight *= UInt64(self.base - threshold)
            position += self.base
        }
        return nil
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a"))
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 26
        default: nil
        }
    }

    private static func append(_ delta: UInt32, bias: UInt32, to output: inout [UInt8]) {
        var rest = delta
        var position = self.base
        while true {
            let threshold = min(max(position, bias + self.smallest) - bias, self.largest)
            if rest < threshold { break }
            output.append(self.digit(threshold + (rest - threshold) % (self.base - threshold)))
            rest = (rest - threshold) / (self.base - threshold)
            position += self.base
        }
        output.append(self.digit(rest))
    }

    private static func digit(_ value: UInt32) -> UInt8 {
        value < 26 ? UInt8(ascii: "a") + UInt8(value) : UInt8(ascii: "0") + UInt8(value - 26)
    }

    private static func adapt(_ delta: UInt32, points: UInt32, isFirst: Bool) -> UInt32 {
        var delta = delta / (isFirst ? 700 : 2)
        delta += delta / points
        var bias: UInt32 = 0
        while delta > (self.base - self.smallest) * self.largest / 2 {
            delta /= self.base - self.smallest
            bias += self.base
        }
        return bias + (self.base - self.smallest + 1) * delta / (delta + 38)
    }
}
