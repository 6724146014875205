import LoadEngine
import NIOCore
import Report

extension LiveCourse {
    /// The planned course of a run of groups on one timeline.
    ///
    /// Its rate is known only if every group that operates has one.
    init(_ options: LoadOptions, _ groups: [any RunGroup]) {
        let seconds = { (nanoseconds: Int64) in Double(nanoseconds) / 1e9 }
        var stages = options.stages.map { Stage($0.name, seconds: seconds($0.length), isMeasured: !$0.isWarmup) }
        if stages.isEmpty {
            if options.warmup > 0 {
                stages.append(Stage("warmup", seconds: seconds(options.warmup), isMeasured: false))
            }
            stages.append(Stage("measure", seconds: options.duration.map(seconds)))
        }
        let operating = groups.filter { $0.options.operates }
        let rates = operating.compactMap { group in
            group.messageRate.map { group.options.stretches($0) }
        }
        self.init(
            stages: stages,
            stretches: rates.count == operating.count ? Self.sum(rates) : [],
            drainSeconds: seconds(options.drain)
        )
    }

    /// The stretches of several groups as of one.
    private static func sum(_ rates: [[Stretch]]) -> [Stretch] {
        guard rates.count > 1 else { return rates.first ?? [] }
        let courses = rates.map { LiveCourse(stretches: $0) }
        var cuts: Set<Double> = [0]
        for stretches in rates {
            var time = 0.0
            for stretch in stretches {
                time += stretch.seconds
                cuts.insert(time)
            }
        }
        let times = cuts.sorted()
        return zip(times, times.dropFirst()).map { begin, end in
            Stretch(
                seconds: end - begin,
                from: courses.reduce(0) { $0 + ($1.rate(at: begin) ?? 0) },
                to: courses.reduce(0) { $0 + ($1.rate(at: end.nextDown) ?? 0) }
            )
        }
    }
}
