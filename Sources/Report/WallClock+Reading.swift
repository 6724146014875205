import FoundationEssentials
import Measurement

extension WallClock {
    /// A moment some whole seconds after `text`, to the second; nothing but `text` itself if that is no moment.
    static func adding(seconds: Int, to text: String) -> String {
        let start = text.prefix(19) + "Z"
        guard let date = try? Date(String(start), strategy: .iso8601) else { return text }
        return self.rfc3339(Int64(date.timeIntervalSince1970 + Double(seconds)) * 1_000_000_000)
    }
}
