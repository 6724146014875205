/// The x axis that the panels of a strip share: the intervals of a run, its stages and its marks.
///
/// All times are seconds from the begin of the load; what lies before it is negative.
package struct TimeFrame: Sendable {
    package struct Band: Sendable {
        package var name: String
        package var begin: Double
        package var end: Double
        /// Connect and drain, which are not measured.
        package var isHatched: Bool

        package init(_ name: String, begin: Double, end: Double, isHatched: Bool = false) {
            self.name = name
            self.begin = begin
            self.end = end
            self.isHatched = isHatched
        }
    }

    package struct Mark: Sendable {
        /// The number in the list of events.
        package var number: Int
        package var second: Double
        package var text: String

        package init(_ number: Int, second: Double, text: String) {
            self.number = number
            self.second = second
            self.text = text
        }
    }

    /// The begin of each interval, ascending.
    ///
    /// A panel has one value for each.
    package var begins: [Double]
    package var lengths: [Double]
    package var bands: [Band]
    package var marks: [Mark]
    /// The shown span; absent it is that of the intervals.
    package var shown: ClosedRange<Double>?
    /// Whether names of bands and numbers of marks stand above the plot; of panels in a column the first one has them.
    package var hasHeads = true

    package init(begins: [Double], lengths: [Double], bands: [Band] = [], marks: [Mark] = []) {
        self.begins = begins
        self.lengths = lengths
        self.bands = bands
        self.marks = marks
    }
}
