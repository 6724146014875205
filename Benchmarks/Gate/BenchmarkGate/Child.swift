import BenchmarkWork
import Foundation

/// The measured quantity of a piece of work.
enum Quantity: String {
    case instructions
    case bytes
    case time
}

/// The process that does the work; it prints a line for each piece.
enum Child {
    /// So often that what happens now and then is in the mean.
    static let rounds = 4
    /// Rounds before, in which buffers grow and caches fill.
    private static let warmup = 2
    /// The time is the median of this many rounds.
    private static let timedRounds = 51

    static func perform(_ works: [Work], _ quantity: Quantity) throws {
        for work in works {
            switch quantity {
            case .instructions: print(try self.count(work))
            case .bytes: print(try self.bytes(work))
            case .time: print(self.medianTime(work))
            }
        }
    }

    private static func prepared(_ work: Work) -> () -> Void {
        let body = work.make()
        for _ in 0..<self.warmup { body() }
        return body
    }

    /// Does the work in a copy of this process, for callgrind to count.
    ///
    /// A copy each, so that no piece of work meets the heap that another has left, and so that start-up, which takes
    /// longer than the work, is done once.
    ///
    /// - Returns: the copy's process id, under which callgrind leaves its counts.
    private static func count(_ work: Work) throws -> pid_t {
        // Swift hides fork(2) for the sake of programs with threads. This process has one.
        typealias Fork = @convention(c) () -> pid_t
        guard let symbol = dlsym(nil, "fork") else { throw GateError("no fork(2) in this process") }
        let id = unsafeBitCast(symbol, to: Fork.self)()
        if id == 0 {
            measuredRounds(self.rounds, self.prepared(work))
            // Without what is still buffered for stdout, which is the parent's.
            _exit(0)
        }
        var status: CInt = 0
        guard id > 0, waitpid(id, &status, 0) == id, status == 0 else {
            throw GateError("'\(work.name)' ended with status \(status)")
        }
        return id
    }

    private static func bytes(_ work: Work) throws -> UInt64 {
        guard let allocated = AllocatedBytes() else { throw GateError("no jemalloc in this process") }
        let body = self.prepared(work)
        var bytes: UInt64 = 0
        // The first reading has the runtime allocate something of its own.
        for _ in 0..<2 {
            let before = allocated.total
            measuredRounds(self.rounds, body)
            bytes = allocated.total - before
        }
        return bytes
    }

    /// Nanoseconds of a round.
    private static func medianTime(_ work: Work) -> Int64 {
        let body = self.prepared(work)
        let clock = ContinuousClock()
        let times = (0..<self.timedRounds).map { _ in clock.measure { measuredRounds(1, body) } }
        let median = times.sorted()[self.timedRounds / 2].components
        return median.seconds * 1_000_000_000 + median.attoseconds / 1_000_000_000
    }
}
