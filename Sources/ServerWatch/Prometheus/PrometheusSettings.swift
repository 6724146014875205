package import Transport

/// An exporter to watch.
package struct PrometheusSettings: Sendable {
    package var address: ExporterAddress
    /// Empty keeps all series.
    package var patterns: [SeriesPattern]
    /// For `https`.
    package var tls: TLSSettings

    package init(address: ExporterAddress, patterns: [SeriesPattern] = [], tls: TLSSettings = TLSSettings()) {
        self.address = address
        self.patterns = patterns
        self.tls = tls
    }

    /// The pages of several settings, each address once, with the label `page` where there are several.
    ///
    /// An address that occurs twice has the patterns of both.
    package static func pages(_ all: [PrometheusSettings]) -> [(settings: PrometheusSettings, page: String?)] {
        var sources: [PrometheusSettings] = []
        for settings in all {
            guard let known = sources.firstIndex(where: { $0.address == settings.address }) else {
                sources.append(settings)
                continue
            }
            let keepsAll = sources[known].patterns.isEmpty || settings.patterns.isEmpty
            sources[known].patterns = keepsAll ? [] : sources[known].patterns + settings.patterns
        }
        guard sources.count > 1 else { return sources.map { ($0, nil) } }
        var labels: Set<String> = []
        return sources.map { settings in
            let address = settings.address
            let isAlone = sources.count { $0.address.authority == address.authority } == 1
            let name = LabelText.safe(isAlone ? address.authority : "\(address.authority)\(address.plainPath)")
            // The query may be a secret, so pages that differ by it alone get a number.
            var label = name
            var number = 1
            while !labels.insert(label).inserted {
                number += 1
                label = "\(name) \(number)"
            }
            return (settings, label)
        }
    }
}
