import Foundation
package import Report

extension GrafanaDashboard {
    /// The expressions that the panels ask Prometheus for.
    package static let queries: [String] = {
        struct Dashboard: Decodable {
            struct Panel: Decodable {
                struct Target: Decodable { var expr: String }
                var targets: [Target]
            }
            var panels: [Panel]
        }
        let dashboard = try? JSONDecoder().decode(Dashboard.self, from: Data(Self.text.utf8))
        return dashboard?.panels.flatMap { $0.targets.map(\.expr) } ?? []
    }()
}
