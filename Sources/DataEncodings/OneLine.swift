/// The one filter for texts of peers, files and other machines before they reach a terminal or a report.
package enum OneLine {
    /// Characters of a text that are shown where nothing else is said.
    package static let length = 500

    /// Writes control characters, line ends and bidirectional controls as `\u{…}`, and cuts what is too long.
    package static func of(_ text: String, most: Int = Self.length) -> String {
        var line = ""
        for scalar in text.unicodeScalars.prefix(most) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                line += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}
