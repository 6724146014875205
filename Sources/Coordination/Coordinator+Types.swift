package import Measurement
package import NIOCore

extension Coordinator {
    package struct Terms: Sendable {
        package var version: String
        /// The name that segments have to give, if they give one; empty takes any.
        package var run: String
        package var plan: String
        package var segments: Int
        /// Server watches that the begin waits for.
        package var watches = 0
        package var welcome: SegmentWelcome
        /// All segments have to be ready by then.
        package var joinBy: NIODeadline
        /// The run goes on without a segment that is lost.
        package var continuesWithoutLost: Bool
        /// The load begins when so many clients are up; `nil`: when all segments have settled.
        package var leastClients: Int?
        /// From the begin of the load to the end of the last segment at most; `nil`: the run has no planned end.
        package var longest: TimeAmount?
        /// How the user names the time to join, and that a lost segment ends the run.
        package var names = (joinTimeout: "the time to join", abort: "as planned")

        package init(
            version: String,
            run: String,
            plan: String,
            segments: Int,
            welcome: SegmentWelcome,
            joinBy: NIODeadline,
            continuesWithoutLost: Bool
        ) {
            self.version = version
            self.run = run
            self.plan = plan
            self.segments = segments
            self.welcome = welcome
            self.joinBy = joinBy
            self.continuesWithoutLost = continuesWithoutLost
        }
    }

    /// A process of a segment.
    package struct Address: Hashable, Sendable {
        /// The run as the process names it.
        package var run: String
        /// The segment's number, counted from 0.
        package var index: Int
        /// Drawn at random: it distinguishes two processes with one index, and no other process can name it.
        package var instance: String

        /// Whether it is a server watch, which has no part of the load.
        package var isWatch: Bool { self.index >= Self.firstWatch }
        private static let firstWatch = 1 << 20

        /// Of a server watch: a number that no segment has, drawn at random.
        package static var watch: Int { .random(in: Self.firstWatch..<(Self.firstWatch << 10)) }
        var clientID: String { "\(self.index + 1)-\(self.instance)" }

        package init(run: String, index: Int, instance: String) {
            self.run = run
            self.index = index
            self.instance = instance
        }
    }

    package struct Now: Hashable, Sendable {
        package var uptime: NIODeadline
        /// CLOCK_REALTIME in nanoseconds.
        package var realtime: Int64

        package init(uptime: NIODeadline, realtime: Int64) {
            self.uptime = uptime
            self.realtime = realtime
        }
    }

    package enum Action: Hashable, Sendable {
        case tell(SegmentOrder, Address)
        /// A line of progress.
        case say(String)
        case warn(String)
        case show(TimelineInterval, of: Int)
        /// No more intervals come from the segment.
        case left(Int)
        /// The segment's files are to be fetched; ``collected(_:words:at:)`` ends it.
        case collect(SegmentEnding, Address)
        case over
    }
}
