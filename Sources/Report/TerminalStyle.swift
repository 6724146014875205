/// How the terminal may be written to.
package struct TerminalStyle: Hashable, Sendable {
    /// ANSI colours; the caller knows whether this is a terminal and what NO_COLOR says.
    package var isColoured: Bool
    /// Columns.
    package var width: Int

    package init(isColoured: Bool = false, width: Int = 100) {
        self.isColoured = isColoured
        self.width = width
    }

    package enum Ink: String {
        case bold = "1"
        case dim = "2"
        case red = "1;31"
        case green = "1;32"
        case yellow = "1;33"
        case cyan = "36"
    }

    package func paint(_ text: String, _ ink: Ink) -> String {
        self.isColoured ? "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m" : text
    }
}
