extension Canvas {
    /// The number of ticks that a length has room for.
    static func tickCount(_ length: Double, distance: Double) -> Int { max(Int(length / distance), 2) }

    /// Grid lines and labels of the y axis.
    mutating func yAxis(_ scale: ValueScale, ticks: [Double], labels: TickLabels) {
        var grid = PathText()
        // Half a pixel: a line of one pixel covers one.
        for tick in ticks {
            let y = scale.pixel(tick).rounded(.down) + 0.5
            grid.move(self.left, y)
            grid.line(self.left + self.plotWidth, y)
        }
        self.path(grid, class: "grid")
        self.add("<g class=\"yaxis\">")
        var lowest = Double.infinity
        for (tick, label) in zip(ticks, labels.texts) {
            let y = scale.pixel(tick)
            // From the bottom up; a label that would touch the one below is left out.
            guard y < lowest - 11 else { continue }
            self.text(label, x: self.left - 5, y: y + 4, class: "tick", anchor: "end")
            lowest = y
        }
        self.add("</g>")
    }

    /// The base line, and tick marks with labels that neither touch nor leave the chart.
    mutating func xAxis(_ ticks: [(x: Double, label: String)], isLabelled: Bool = true) {
        let base = self.bottom.rounded(.down) + 0.5
        self.segment(self.left, base, to: (self.left + self.plotWidth, base), class: "axis")
        var marks = PathText()
        var labels = Canvas(width: self.width, plotHeight: self.plotHeight)
        var end = -Double.infinity
        for (x, label) in ticks {
            marks.move(x, base)
            marks.line(x, base + 4)
            guard isLabelled else { continue }
            let length = TextWidth.of(label)
            let begin = min(max(x - length / 2, 0), self.width - length)
            guard begin >= end + 6, begin >= 0 else { continue }
            labels.text(label, x: begin + length / 2, y: base + 15, class: "tick", anchor: "middle")
            end = begin + length
        }
        self.add("<g class=\"xaxis\">")
        self.path(marks, class: "axis")
        self.parts(of: labels)
        self.add("</g>")
        if isLabelled { self.bottomMargin = 22 }
    }

    /// The name of the x axis, below its labels at the right end.
    mutating func xName(_ name: String) {
        guard !name.isEmpty else { return }
        self.fitted(
            name,
            x: self.left + self.plotWidth,
            y: self.bottom + 30,
            width: self.plotWidth + self.left,
            class: "axisname",
            anchor: "end"
        )
        self.bottomMargin = 36
    }

    /// A horizontal line at a value that must not be passed, with its label above or below.
    ///
    /// `isLeft`: the label stands at the left end, because data are at the right one.
    mutating func objective(_ objective: ChartObjective, scale: ValueScale, isLeft: Bool = false) {
        guard scale.shows(objective.value) else { return }
        let isBeyond = objective.value > scale.domain.high * (1 + 1e-9)
        let y = scale.pixel(objective.value)
        if !isBeyond { self.segment(self.left, y, to: (self.left + self.plotWidth, y), class: "objective") }
        let label = isBeyond ? "↑ \(objective.label)" : objective.label
        let isHigh = y - self.top < 14
        self.fitted(
            label,
            x: isLeft ? self.left + 3 : self.left + self.plotWidth - 3,
            y: isHigh ? y + 12 : y - 4,
            width: self.plotWidth * 0.6,
            class: "objective",
            anchor: isLeft ? "start" : "end"
        )
    }

    private mutating func parts(of other: Canvas) { other.added.forEach { self.add($0) } }
}
