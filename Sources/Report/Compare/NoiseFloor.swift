import FoundationEssentials
package import Measurement

/// The differences between runs of the same build on a host: the file of schema `clamor.noise/1`.
package struct NoiseFloor: Codable, Hashable, Sendable {
    package static let currentSchema = "clamor.noise/1"

    package struct Figure: Codable, Hashable, Sendable {
        package var name: String
        package var labels: Labels
        package var field: String
        /// The standard deviation between runs, of the figure's logarithm: 0.05 is 5 %.
        package var deviation: Double

        package init(name: String, labels: Labels, field: String, deviation: Double) {
            self.name = name
            self.labels = labels
            self.field = field
            self.deviation = deviation
        }
    }

    package var schema: String
    package var host: HostFacts
    /// How many runs it was measured on.
    package var runs: Int
    package var figures: [Figure]
    /// The version of the program that measured it, if known.
    package var version: String?
    /// The file, where it is known.
    package var source: String?

    private enum CodingKeys: String, CodingKey {
        case schema, host, runs, figures
    }

    package init(host: HostFacts, runs: Int, figures: [Figure]) {
        self.schema = Self.currentSchema
        self.host = host
        self.runs = runs
        self.figures = figures
    }

    /// Reads a noise file, or what `calibrate` left.
    package static func read(_ path: String) throws(ResultError) -> NoiseFloor {
        let data = try TextFile.data(path)
        guard var floor = try self.floor(data, path) else {
            throw ResultError(
                path: path,
                reason: "is no noise file of schema \(Self.currentSchema), nor one that clamor calibrate wrote"
            )
        }
        floor.source = path
        guard floor.runs > 1, floor.figures.allSatisfy({ $0.deviation >= 0 && $0.deviation.isFinite }) else {
            throw ResultError(path: path, reason: "its figures are out of range; measure it again")
        }
        return floor
    }

    private static func floor(_ data: Data, _ path: String) throws(ResultError) -> NoiseFloor? {
        let decoder = JSONDecoder()
        if let floor = try? decoder.decode(NoiseFloor.self, from: data), floor.schema == Self.currentSchema {
            return floor
        }
        guard let calibration = try? decoder.decode(Calibration.self, from: data),
            calibration.schema == Calibration.currentSchema
        else { return nil }
        guard let floor = calibration.floor else {
            throw ResultError(path: path, reason: "holds no noise floor; run clamor calibrate to its end")
        }
        return floor
    }

    package var text: String { (try? PrettyJSON.text(self, path: "text")) ?? "\n" }

    /// The noise of a figure; if only other labels of the metric and field are known, the largest of theirs.
    func noise(_ name: String, _ labels: Labels, _ field: String) -> Resampling.Noise? {
        let named = self.figures.filter { $0.name == name && $0.field == field }
        guard let figure = named.first(where: { $0.labels == labels }) ?? named.max(by: { $0.deviation < $1.deviation })
        else { return nil }
        return Resampling.Noise(deviation: figure.deviation, degrees: Double(self.runs - 1))
    }

    /// The noise assumed for a single run per side on a host that was not measured.
    ///
    /// It is generous, because the true noise is unknown.
    static func assumed(field: Threshold.Field?, isDuration: Bool) -> Double {
        guard isDuration else { return 0.03 }
        return switch field {
        case .percentile(let percent) where percent <= 75: 0.05
        case .percentile(let percent) where percent <= 95: 0.1
        case .percentile(let percent) where percent <= 99: 0.15
        case .percentile, .max, .min: 0.3
        default: 0.1
        }
    }
}
