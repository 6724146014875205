/// The form of an output: its words and labels, without figures, units, times and paths.
struct SampleForm {
    private struct Word {
        var text: Substring
        var opensLine = false
        var closesLine = false
    }

    private let words: [Word]
    /// The forms of whole lines, for messages.
    private let lines: [String]

    init(output: String) {
        self.lines = output.split(separator: "\n").map { Self.form(of: $0) }
        self.words = self.lines.flatMap { line in
            var words = line.split(separator: " ").map { Word(text: $0) }
            guard !words.isEmpty else { return words }
            words[0].opensLine = true
            words[words.count - 1].closesLine = true
            return words
        }
    }

    /// A figure with its unit, a time or a path is `#`; a number within a name stays.
    static func form(of line: some StringProtocol) -> String {
        let comment = line.split(separator: "←", maxSplits: 1, omittingEmptySubsequences: false)[0]
        return String(comment)
            .replacing(/(\S*\/)(\s|$)/, with: { "#\($0.2)" })
            .replacing(/clamor-[0-9a-f]{4}-/, with: "clamor-#-")
            .replacing(/(^|[^A-Za-z0-9.])[0-9]+([.,:\-][0-9]+)*/, with: { "\($0.1)#" })
            .replacing(/# ?(ns|µs|ms|s|%|B|kB|MB|GB|KiB|MiB|GiB)(\/s)?([^A-Za-z]|$)/, with: { "#\($0.3)" })
            .replacing("#/s", with: "#")
            .replacing("–", with: "#")
            .split(separator: " ").joined(separator: " ")
    }

    /// The first line of a sample whose form the output does not have after the lines before it.
    ///
    /// A sample may leave out lines. What the program breaks over several lines may be one line of the sample, and the
    /// other way round.
    ///
    /// - Parameters:
    ///   - sample: lines of a page.
    ///   - chance: beginnings of lines that the output may lack.
    /// - Returns: `nil` if there is none.
    func firstDifference(from sample: [some StringProtocol], chance: [String] = []) -> Difference? {
        let lines = sample.map { (text: $0, words: Self.form(of: $0).split(separator: " ")) }
            .filter { !$0.words.isEmpty }
        var place = 0
        var rest = lines[...]
        while let line = rest.first {
            if let match = self.match(rest.map(\.words), from: place) {
                place = match.end
                rest = rest.dropFirst(match.lines)
            } else if Self.mayBeAbsent(line.text, chance) {
                rest = rest.dropFirst()
            } else {
                let form = line.words.joined(separator: " ")
                return Difference(line: String(line.text), form: form, nearest: self.nearest(to: line.words))
            }
        }
        return nil
    }

    struct Difference: CustomStringConvertible {
        var line: String
        var form: String
        var nearest: String
        var description: String {
            "'\(self.line)' is not in the output; its form: \(self.form); nearest: \(self.nearest)"
        }
    }

    /// Whether a line of a sample begins with one of these.
    static func mayBeAbsent(_ line: some StringProtocol, _ chance: [String]) -> Bool {
        let text = line.drop { $0 == " " }
        return chance.contains { text.hasPrefix($0) }
    }

    /// The fewest lines of a sample that are whole lines of the output, and the place after them.
    private func match(_ sample: [[Substring]], from place: Int) -> (lines: Int, end: Int)? {
        (1...min(Self.longestBreak, sample.count)).lazy.compactMap { count in
            self.end(of: Array(sample[..<count].joined()), from: place).map { (count, $0) }
        }.first
    }

    /// The lines over which an output's line is broken at most.
    private static let longestBreak = 4

    private func end(of words: [Substring], from place: Int) -> Int? {
        let starts = self.words.indices.filter { $0 >= place && self.words[$0].opensLine }
        return starts.lazy.map { ($0, $0 + words.count) }.first { start, end in
            end <= self.words.count && self.words[end - 1].closesLine
                && zip(self.words[start..<end], words).allSatisfy { $0.text == $1 }
        }?.1
    }

    private func nearest(to words: [Substring]) -> String {
        let wanted = Set(words)
        let nearest = self.lines.max { first, second in
            let shared = { (line: String) in line.split(separator: " ").count { wanted.contains($0) } }
            return shared(first) < shared(second)
        }
        return nearest ?? "none"
    }
}
