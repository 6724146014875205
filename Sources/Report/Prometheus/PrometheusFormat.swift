/// The two text formats that Prometheus reads.
package enum PrometheusFormat: Hashable, Sendable, CaseIterable {
    /// The text format 0.0.4.
    case text
    /// OpenMetrics 1.0.
    case openMetrics

    package var contentType: String {
        switch self {
        case .text: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The format that a client prefers by its Accept header; the text format if it wants neither.
    package init(accept: String?) {
        let ranges = (accept ?? "").split(separator: ",").compactMap { Range($0) }
        func quality(_ format: PrometheusFormat, _ names: [String]) -> Double? {
            let matches = ranges.filter { names.contains($0.type) && $0.isOf(format) }
            // The most specific range decides (RFC 9110 §12.5.1).
            return names.lazy.compactMap { name in matches.filter { $0.type == name }.map(\.quality).max() }.first
        }
        let openMetrics = quality(.openMetrics, ["application/openmetrics-text"]) ?? 0
        let text = quality(.text, ["text/plain", "text/*", "*/*"]) ?? 0
        self = openMetrics > 0 && openMetrics >= text ? .openMetrics : .text
    }

    /// One media range of an Accept header.
    private struct Range {
        var type: String
        var version: String?
        var quality = 1.0

        init?(_ text: Substring) {
            let parts = text.split(separator: ";").map { Self.trimmed($0).lowercased() }
            guard let type = parts.first else { return nil }
            self.type = type
            for part in parts.dropFirst() {
                if part.hasPrefix("q=") { self.quality = Double(part.dropFirst(2)) ?? 0 }
                if part.hasPrefix("version=") { self.version = String(part.dropFirst(8).filter { $0 != "\"" }) }
            }
        }

        /// Whether its version, if it names one, is the format's.
        func isOf(_ format: PrometheusFormat) -> Bool {
            self.version == nil || self.version == (format == .text ? "0.0.4" : "1.0.0")
        }

        private static func trimmed(_ text: Substring) -> Substring {
            let front = text.drop { $0 == " " || $0 == "\t" }
            return front.prefix(front.count - front.reversed().prefix { $0 == " " || $0 == "\t" }.count)
        }
    }
}
