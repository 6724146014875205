/// The `d` of a path, in relative commands and tenths of a pixel.
///
/// Deltas are taken between rounded points, so that rounding never adds up along a path.
struct PathText {
    private(set) var text = ""
    private var x = 0
    private var y = 0
    private var startX = 0
    private var startY = 0
    private var command: Character = " "

    var isEmpty: Bool { self.text.isEmpty }

    mutating func move(_ x: Double, _ y: Double) {
        let (toX, toY) = (NumberText.tenths(x), NumberText.tenths(y))
        if self.text.isEmpty {
            self.add("M", toX, toY)
        } else {
            self.add("m", toX - self.x, toY - self.y)
        }
        (self.x, self.y) = (toX, toY)
        (self.startX, self.startY) = (toX, toY)
    }

    mutating func line(_ x: Double, _ y: Double) {
        let (toX, toY) = (NumberText.tenths(x), NumberText.tenths(y))
        if toY == self.y {
            // A point on the last one draws nothing.
            if toX != self.x { self.add("h", toX - self.x) }
        } else if toX == self.x {
            self.add("v", toY - self.y)
        } else {
            self.add("l", toX - self.x, toY - self.y)
        }
        (self.x, self.y) = (toX, toY)
    }

    mutating func close() {
        self.text += "z"
        self.command = "z"
        (self.x, self.y) = (self.startX, self.startY)
    }

    mutating func rectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double) {
        self.move(x, y)
        self.line(x + width, y)
        self.line(x + width, y + height)
        self.line(x, y + height)
        self.close()
    }

    private mutating func add(_ command: Character, _ values: Int...) {
        // SVG repeats h, v and l by itself; after m it would draw.
        if command != self.command || command == "m" || command == "M" { self.text.append(command) }
        self.command = command
        for value in values {
            let number = NumberText.coordinate(tenths: value)
            if let last = self.text.utf8.last, last >= UInt8(ascii: "0"), last <= UInt8(ascii: "9"), value >= 0 {
                self.text += " "
            }
            self.text += number
        }
    }
}
