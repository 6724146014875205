/// A pattern of the series to watch: `emqx_messages_*`, `http_requests_total{code="200"}`.
///
/// In a name `*` stands for any characters, and `?` for one; values of labels are exact.
package struct SeriesPattern: Hashable, Sendable {
    private let name: [Unicode.Scalar]
    private let labels: [String: String]

    /// `nil` if the text is no pattern.
    package init?(_ text: String) {
        let name = text.prefix { $0 != "{" }
        guard !name.isEmpty, !name.contains(where: { $0 == " " || $0 == "\"" || $0 == "}" }) else { return nil }
        self.name = Array(name.unicodeScalars)
        let rest = text[name.endIndex...]
        guard !rest.isEmpty else {
            self.labels = [:]
            return
        }
        // A plain name of the same labels follows the exporter's own syntax.
        guard let labels = PrometheusText.labels(of: "x\(rest)") else { return nil }
        self.labels = labels
    }

    /// Whether a series matches by its name or that of its family, and by its labels.
    func matches(_ series: String, _ family: String, _ labels: [(key: String, value: String)]) -> Bool {
        guard self.matches(series) || series != family && self.matches(family) else { return false }
        return self.labels.allSatisfy { wanted in
            labels.contains { $0.key == wanted.key && $0.value == wanted.value }
        }
    }

    /// Matches a name, in a time of at most the product of both lengths.
    package func matches(_ text: String) -> Bool {
        let text = Array(text.unicodeScalars)
        var place = 0
        var part = 0
        /// The last `*`, and the end of its match so far.
        var star: (part: Int, place: Int)?
        while place < text.count {
            if part < self.name.count, self.name[part] == "*" {
                star = (part, place)
                part += 1
            } else if part < self.name.count, self.name[part] == "?" || self.name[part] == text[place] {
                part += 1
                place += 1
            } else if let last = star {
                star = (last.part, last.place + 1)
                part = last.part + 1
                place = last.place + 1
            } else {
                return false
            }
        }
        return self.name[part...].allSatisfy { $0 == "*" }
    }
}
