import Measurement

/// Text of a server, made safe for a label.
package enum LabelText {
    /// Replaces characters that separate labels or lines by `_`.
    ///
    /// Some characters of other scripts join a separator beside them to one character; then they are replaced too.
    package static func safe(_ text: String) -> String {
        func replaced(_ isKept: (Unicode.Scalar) -> Bool) -> String {
            var safe = String.UnicodeScalarView()
            for scalar in text.unicodeScalars { safe.append(isKept(scalar) ? scalar : "_") }
            return String(safe)
        }
        let safe = replaced { $0 != ";" && $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
        let labels: Labels = ["a": safe, "b": "1"]
        if safe.utf8.allSatisfy({ $0 < 0x80 }) || Labels(parsing: labels.description) == labels { return safe }
        return replaced { $0 != ";" && (0x20..<0x7F).contains($0.value) }
    }

    /// The name, or the name with the first number from 2 on that is not taken: `worker`, `worker 2`.
    static func unique(_ name: String, unless isTaken: (String) -> Bool) -> String {
        var (label, number) = (name, 1)
        while isTaken(label) {
            number += 1
            label = "\(name) \(number)"
        }
        return label
    }
}
