import Measurement

extension RunRecord {
    /// `2026-11-25 17:05 UTC`.
    var startWords: String { "\(self.startedAt.prefix(16).replacing("T", with: " ")) UTC" }
}
