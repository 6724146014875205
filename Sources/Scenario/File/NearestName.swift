/// The name that was probably meant.
package enum NearestName {
    /// `most`: letters that may differ; otherwise a third of the word.
    ///
    /// - Returns: the one with the fewest letters changed, if these are few; the first of several.
    package static func of(_ word: String, in known: [String], most: Int? = nil) -> String? {
        let lower = word.hasPrefix("-") ? word.lowercased() : word.lowercased().replacing("-", with: "_")
        let ranked = known.map { name in (name: name, distance: self.distance(Array(lower), Array(name))) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= most ?? max(1, min(3, word.count / 3)) ? best.name : nil
    }

    /// `did you mean NAME? `, or nothing.
    static func question(_ word: String, in known: [String]) -> String {
        self.of(word, in: known).map { "did you mean \($0)? " } ?? ""
    }

    /// The edit distance: letters inserted, removed, replaced, or swapped with the next (Damerau's, neighbours only).
    private static func distance(_ one: [Character], _ other: [Character]) -> Int {
        // A key of a file may be of any length; names are short.
        guard one.count <= 64 else { return .max }
        var before = [Int]()
        var last = Array(0...other.count)
        for row in one.indices {
            var current = [row + 1]
            for column in other.indices {
                let change = one[row] == other[column] ? 0 : 1
                var best = min(last[column + 1] + 1, current[column] + 1, last[column] + change)
                if row > 0, column > 0, one[row] == other[column - 1], one[row - 1] == other[column] {
                    best = min(best, before[column - 1] + 1)
                }
                current.append(best)
            }
            before = last
            last = current
        }
        return last[other.count]
    }
}
