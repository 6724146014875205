import BenchmarkWork
import Foundation

/// Two builds side by side.
enum Comparison {
    /// Times of each build; the median is shown.
    private static let turns = 5

    /// Prints base, new and ratio of each piece of work that both builds have.
    static func perform(base path: String) throws -> Int32 {
        let (base, new) = (Program(path: path), Program.this)
        let known = Set(try base.list())
        let works = Work.all.filter { known.contains($0.name) }
        let needs = (base: try base.needs(works), new: try new.needs(works))
        let times = try self.times(base, new, works)
        print(self.row("per operation", "instructions", "", "", "bytes", "", "median ns", "(to inform)", ""))
        print(self.row("", "base", "new", "ratio", "base", "new", "base", "new", "ratio"))
        for (index, work) in works.enumerated() {
            let (old, need) = (needs.base[index], needs.new[index])
            print(
                self.row(
                    work.name,
                    Check.text(old.instructions),
                    Check.text(need.instructions),
                    Check.ratio(need.instructions, old.instructions),
                    Check.text(old.bytes),
                    Check.text(need.bytes),
                    Check.text(times.base[index]),
                    Check.text(times.new[index]),
                    Check.ratio(times.new[index], times.base[index])
                )
            )
        }
        let names = Set(Work.all.map(\.name))
        for name in names.subtracting(known).sorted() { print("new only: \(name)") }
        for name in known.subtracting(names).sorted() { print("base only: \(name)") }
        return 0
    }

    /// In turn, so that what the machine does meanwhile meets both.
    private static func times(
        _ base: Program,
        _ new: Program,
        _ works: [Work]
    ) throws -> (base: [Double], new: [Double]) {
        var times: (base: [[Double]], new: [[Double]]) = ([], [])
        for _ in 0..<self.turns {
            times.base.append(try base.times(works))
            times.new.append(try new.times(works))
        }
        func medians(_ times: [[Double]]) -> [Double] {
            works.indices.map { index in times.map { $0[index] }.sorted()[self.turns / 2] }
        }
        return (medians(times.base), medians(times.new))
    }

    private static func row(_ cells: String...) -> String {
        zip(cells, [62, 12, 12, 9, 10, 10, 11, 11, 9]).enumerated().map { index, cell in
            let padding = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return index == 0 ? cell.0 + padding : padding + cell.0
        }.joined(separator: " ")
    }
}
