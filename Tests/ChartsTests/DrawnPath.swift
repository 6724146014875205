/// The drawing of a chart's text, read back as an SVG renderer reads it.
enum DrawnPath {
    struct Point: Hashable {
        var x: Double
        var y: Double
    }

    /// The `d` of the first path in the plot whose class is `name`; what stands before is the legend.
    static func d(class name: String, in chart: String) -> String? {
        guard let plot = chart.firstRange(of: "<svg class=\"plot\"") else { return nil }
        let svg = chart[plot.upperBound...]
        guard let start = svg.firstRange(of: "<path class=\"\(name)\" d=\"") else { return nil }
        return String(svg[start.upperBound...].prefix { $0 != "\"" })
    }

    /// The value of an attribute of the root element.
    static func attribute(_ name: String, in svg: String) -> [Double] {
        guard let start = svg.firstRange(of: " \(name)=\"") else { return [] }
        return svg[start.upperBound...].prefix { $0 != "\"" }.split(separator: " ").compactMap { Double($0) }
    }

    /// The points of each piece of a path that has moves, lines and ends of pieces.
    static func pieces(_ d: String) -> [[Point]] {
        var pieces: [[Point]] = []
        var at = Point(x: 0, y: 0)
        var command: Character = " "
        var numbers: [Double] = []
        func apply() {
            switch (command, numbers.count) {
            case ("M", 2): at = Point(x: numbers[0], y: numbers[1])
            case ("m", 2), ("l", 2): at = Point(x: at.x + numbers[0], y: at.y + numbers[1])
            case ("h", 1): at.x += numbers[0]
            case ("v", 1): at.y += numbers[0]
            default: return
            }
            at = Point(x: (at.x * 10).rounded() / 10, y: (at.y * 10).rounded() / 10)
            if command == "M" || command == "m" { pieces.append([at]) } else { pieces[pieces.count - 1].append(at) }
            numbers = []
        }
        var number = ""
        func endNumber() {
            if let value = Double(number) { numbers.append(value) }
            number = ""
            apply()
        }
        for character in d {
            if character.isLetter {
                endNumber()
                command = character
                numbers = []
                if character == "z", let first = pieces.last?.first { at = first }
            } else if character == " " || character == "-" {
                endNumber()
                if character == "-" { number = "-" }
            } else {
                number.append(character)
            }
        }
        endNumber()
        return pieces
    }
}
