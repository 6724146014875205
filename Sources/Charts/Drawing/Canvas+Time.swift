extension TimeFrame {
    var span: (begin: Double, end: Double) {
        if let shown = self.shown { return LinearScale.domain(shown.lowerBound, shown.upperBound) }
        let begin = self.begins.first { $0.isFinite } ?? 0
        let last = self.begins.indices.last { self.begins[$0].isFinite }
        let end = last.map { self.begins[$0] + self.length($0) } ?? 1
        return begin < end && end.isFinite ? (begin, end) : (begin, begin + 1)
    }

    func length(_ interval: Int) -> Double {
        guard self.lengths.indices.contains(interval), self.lengths[interval].isFinite else { return 1 }
        return max(self.lengths[interval], 0)
    }

    var hasBandNames: Bool { self.hasHeads && self.bands.contains { !$0.name.isEmpty } }
    var hasMarkHeads: Bool { self.hasHeads && !self.marks.isEmpty }
}

extension Canvas {
    /// The lanes above the plot for heads, as high as they are needed.
    mutating func lanes(_ frame: TimeFrame) {
        if frame.hasBandNames { self.top += 14 }
        if frame.hasMarkHeads { self.top += 18 }
    }

    func timeScale(_ frame: TimeFrame) -> TimeScale {
        let span = frame.span
        return TimeScale(span.begin, span.end, begin: self.left, end: self.left + self.plotWidth)
    }

    mutating func timeAxis(_ scale: TimeScale, isLabelled: Bool) {
        let (ticks, step) = scale.ticks(Self.tickCount(self.plotWidth, distance: 60))
        self.xAxis(ticks.map { (scale.pixel($0), TickLabels.time($0, step: step)) }, isLabelled: isLabelled)
    }

    /// Stages, within the plot; `bandNames` writes the names above it.
    mutating func bands(_ frame: TimeFrame, scale: TimeScale) {
        for (place, band) in frame.bands.enumerated() {
            guard let (begin, end) = self.pixels(band, scale: scale) else { continue }
            if !band.isHatched {
                // Every other one is filled: a border is seen even where neighbours are equal.
                guard place % 2 == 1 else { continue }
                self.rectangle(begin, self.top, end - begin, self.plotHeight, class: "band")
                continue
            }
            self.path(self.hatch(from: begin, to: end), class: "hatch")
        }
    }

    /// Parallel lines rather than a pattern, which would need an identifier in the whole page.
    private func hatch(from begin: Double, to end: Double) -> PathText {
        var path = PathText()
        let height = self.plotHeight
        for foot in stride(from: begin - height, to: end, by: 8) {
            // From the foot of the plot upwards to the right, cut at both sides.
            let from = max(foot, begin)
            let to = min(foot + height, end)
            guard from < to else { continue }
            path.move(from, self.bottom - (from - foot))
            path.line(to, self.bottom - (to - foot))
        }
        return path
    }

    private func pixels(_ band: TimeFrame.Band, scale: TimeScale) -> (Double, Double)? {
        guard band.begin.isFinite, band.end.isFinite, band.end > scale.linear.low, band.begin < scale.linear.high
        else { return nil }
        let (begin, end) = (scale.pixel(band.begin), scale.pixel(band.end))
        return begin < end ? (begin, end) : nil
    }

    mutating func bandNames(_ frame: TimeFrame, scale: TimeScale) {
        guard frame.hasBandNames else { return }
        let y = self.top - (frame.hasMarkHeads ? 22 : 4)
        for band in frame.bands {
            guard let (begin, end) = self.pixels(band, scale: scale) else { continue }
            let text = TextWidth.fitted(band.name, width: end - begin - 4, size: 10)
            // Two letters of a name say nothing.
            guard text == band.name || text.count > 5 else { continue }
            self.fitted(band.name, x: begin + 2, y: y, width: end - begin - 4, class: "bandname", size: 10)
        }
    }

    /// The rules of marks, within the plot.
    mutating func markRules(_ frame: TimeFrame, scale: TimeScale) {
        var rules = PathText()
        for mark in frame.marks where self.isShown(mark, scale) {
            let x = scale.pixel(mark.second)
            rules.move(x, self.top)
            rules.line(x, self.bottom)
        }
        self.path(rules, class: "rule")
    }

    private func isShown(_ mark: TimeFrame.Mark, _ scale: TimeScale) -> Bool {
        mark.second.isFinite && mark.second >= scale.linear.low && mark.second <= scale.linear.high
    }

    /// Numbered circles above the plot, side by side where their seconds are close, with a line to the second.
    mutating func markHeads(_ frame: TimeFrame, scale: TimeScale) {
        guard frame.hasMarkHeads else { return }
        let marks = frame.marks.filter { self.isShown($0, scale) }.sorted { $0.second < $1.second }
        let room = Int((self.plotWidth + 16) / 16)
        let headed = marks.prefix(room)
        var centres: [Double] = []
        for mark in headed { centres.append(max(scale.pixel(mark.second), (centres.last ?? -.infinity) + 16)) }
        var limit = self.left + self.plotWidth
        for place in centres.indices.reversed() {
            centres[place] = min(centres[place], limit)
            limit = centres[place] - 16
        }
        let y = self.top - 10
        for (mark, x) in zip(headed, centres) {
            self.add("<g class=\"mark\" data-event=\"\(mark.number)\"><title>\(escapedMarkup(mark.text))</title>")
            self.segment(x, y + 7, to: (scale.pixel(mark.second), self.top), class: "rule")
            self.add("<circle cx=\"\(NumberText.coordinate(x))\" cy=\"\(NumberText.coordinate(y))\" r=\"7\"/>")
            self.text(String(mark.number), x: x, y: y + 3.5, class: "marknumber", anchor: "middle", size: 10)
            self.add("</g>")
        }
    }

    /// A line over the intervals of a frame.
    func linePath(_ values: [Double], frame: TimeFrame, scale: TimeScale, yScale: ValueScale) -> PathText {
        let span = frame.span
        let pixelsPerSecond = self.plotWidth / (span.end - span.begin)
        var points: [LinePaths.Point] = []
        points.reserveCapacity(values.count)
        var end = -Double.infinity
        for (interval, begin) in frame.begins.enumerated() {
            let length = frame.length(interval)
            guard begin.isFinite, begin + length > span.begin, begin < span.end else { continue }
            // Intervals that are not there are a gap, just as values are.
            if begin > end + length / 2, end.isFinite { points.append(.init(x: scale.pixel(end), y: nil)) }
            let value = interval < values.count ? values[interval] : .nan
            let y = yScale.shows(value) ? yScale.pixel(value) : nil
            points.append(.init(x: scale.pixel(begin + length / 2), y: y))
            end = begin + length
        }
        let width = (frame.lengths.first { $0.isFinite } ?? 1) * pixelsPerSecond
        return LinePaths(points, left: self.left)
            .path(pointWidth: width, within: self.left...(self.left + self.plotWidth))
    }

    /// Bars from the base line: one for each interval, or the highest of each pixel column.
    func barPath(_ values: [Double], frame: TimeFrame, scale: TimeScale, yScale: ValueScale) -> PathText {
        var path = PathText()
        let span = frame.span
        var column = Int.min
        var bar = (x: 0.0, width: 0.0, y: self.bottom)
        func draw() {
            if bar.y < self.bottom { path.rectangle(bar.x, bar.y, bar.width, self.bottom - bar.y) }
        }
        for (interval, begin) in frame.begins.enumerated() where interval < values.count {
            let length = frame.length(interval)
            guard begin.isFinite, begin + length > span.begin, begin < span.end else { continue }
            guard yScale.shows(values[interval]), values[interval] != 0 else { continue }
            let (x, end) = (scale.pixel(begin), scale.pixel(begin + length))
            // A band has a pixel at least, so that it is seen.
            let y = min(yScale.pixel(values[interval]), self.bottom - 1)
            if end - x >= 3 {
                path.rectangle(x + 0.5, y, end - x - 1, self.bottom - y)
                continue
            }
            let next = Int(((x + end) / 2 - self.left).rounded(.down))
            if next != column {
                draw()
                column = next
                bar = (min(self.left + Double(next), self.left + self.plotWidth - 1), 1, y)
            } else {
                bar.y = min(bar.y, y)
            }
        }
        draw()
        return path
    }

    /// The attributes from which a script gets from pixels to values.
    static func domains(time frame: TimeFrame, y: ValueScale) -> String {
        let span = frame.span
        return self.domains(x: (span.begin, span.end), xScale: "linear", y: y)
    }

    static func domains(x: (Double, Double), xScale: String, y: ValueScale) -> String {
        " data-x=\"\(NumberText.exact(x.0)) \(NumberText.exact(x.1))\" data-x-scale=\"\(xScale)\""
            + " data-y=\"\(NumberText.exact(y.domain.low)) \(NumberText.exact(y.domain.high))\""
            + " data-y-scale=\"\(y.name)\""
    }
}
