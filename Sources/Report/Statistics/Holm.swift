/// Holm's correction: of several tests at once, the chance that any of them is wrong stays below the level.
package enum Holm {
    /// The probabilities as they are after the correction, in the order given.
    package static func adjusted(_ probabilities: [Double]) -> [Double] {
        var adjusted = probabilities
        var highest = 0.0
        let order = probabilities.indices.sorted { probabilities[$0] < probabilities[$1] }
        for (rank, index) in order.enumerated() {
            let raised = probabilities[index] * Double(probabilities.count - rank)
            highest = Swift.min(1, Swift.max(highest, raised))
            adjusted[index] = highest
        }
        return adjusted
    }
}
