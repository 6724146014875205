import Foundation
package import Measurement
import Pages
import Report

/// Pages of results.
///
/// A page that cannot be written is a warning where results are safe, and never a failed run.
package enum PageFiles {
    package static let name = "report.html"

    static func exists(in directory: String) -> Bool { access("\(directory)/\(self.name)", F_OK) == 0 }

    /// The page in a result directory; `nil` if there is none.
    static func read(in directory: String) -> String? {
        try? String(contentsOfFile: "\(directory)/\(self.name)", encoding: .utf8)
    }

    /// Writes the page of one run.
    ///
    /// - Parameters:
    ///   - record: its record.
    ///   - directory: its result directory, for time line and histograms.
    ///   - path: the file; the directory's own page by default.
    /// - Returns: the reason why there is no page, in words.
    package static func write(_ record: RunRecord, in directory: String, to path: String? = nil) -> String? {
        self.write(to: path ?? "\(directory)/\(self.name)") { try self.page(record, directory).text() }
    }

    package static func write(to path: String, _ text: () throws -> String) -> String? {
        do {
            try ReportFile.write(text(), to: path)
            return nil
        } catch {
            return "no page in \(path): \(error)"
        }
    }

    /// Results of older versions and of other programs may lack the time line; their page has no charts over time.
    private static func page(_ record: RunRecord, _ directory: String) -> RunPage {
        RunPage(
            record,
            timeline: self.timeline(directory),
            latencies: try? LatencyMap(reading: directory, metrics: RunPage.latencyMetrics),
            segments: record.segment.merged == nil ? [] : self.segments(in: directory)
        )
    }

    private static func timeline(_ directory: String) -> Timeline {
        (try? Timeline(reading: directory)) ?? Timeline()
    }

    /// The segments that `--processes` leaves beside the merged result.
    private static func segments(in directory: String) -> [RunPage.Segment] {
        var segments: [RunPage.Segment] = []
        while true {
            let number = segments.count + 1
            let place = "\(directory)/segments/\(number)"
            guard let record = try? RunJSON.read(directory: place) else { break }
            segments.append(RunPage.Segment(name: "segment \(number)", record: record, timeline: self.timeline(place)))
        }
        return segments
    }
}
