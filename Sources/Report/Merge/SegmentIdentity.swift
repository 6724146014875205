package import Measurement

/// By what the segments of one run know each other.
package enum SegmentIdentity {
    /// A hash of the plan without the places of its servers and its stores.
    ///
    /// `schedule` adds the parts that the plan's entries leave out.
    package static func plan(_ plan: [String: JSONValue], schedule: String) -> String {
        self.hex("\(PlanIdentity(ofSegments: plan).hash) \(schedule)")
    }

    /// A run: what names it, if anything does, its seed, and the moment at which its segments begin, if that was given.
    package static func run(name: String, seed: UInt64, startAt: Int64?) -> String {
        self.hex("\(seed) \(startAt ?? 0) \(name)")
    }

    private static func hex(_ text: String) -> String {
        let digits = String(text.stableHash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
