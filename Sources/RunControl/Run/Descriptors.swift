import Foundation
import Measurement
package import Scenario

package enum Descriptors {
    /// Descriptors of Swift's task threads: epoll and eventfd for events, one timerfd as watchdog and one for sleeping
    /// tasks.
    static let scheduler = 4
    /// An event loop of NIO's: epoll, eventfd and timerfd, and the two ends of the doorbell's pipe.
    static let perLoop = 3 + Self.perDoorbell
    static let perDoorbell = 2
    /// A loop of sockets: epoll and eventfd.
    static let perSocketLoop = 2
    /// The result directory: its lock, the timeline, the histogram log.
    static let results = 3
    /// A file that is open briefly while all clients are connected.
    ///
    /// The monitor reads /proc and rewrites run.json, one after the other.
    static let passing = 1
    /// The embedded broker as a child.
    ///
    /// Its socket, and Foundation's descriptors for its end: epolls, eventfds, timerfds and sockets of run loops.
    static let child = 13
    /// A name lookup uses a socket and a file or another socket; each loop makes its own.
    static let perLookup = 2

    /// Raises the soft limit to the hard one.
    package static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
    }

    /// Clients that the proxy refuses: as many as it accepts in one turn of its loop.
    static let turnedAway = 64
    /// The proxy's listener and a name lookup.
    static let proxy = 1 + Self.perLookup

    /// The number of clients that the soft limit allows the proxy: two descriptors each.
    package static var proxyClients: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        let beside = self.inherited + self.scheduler + self.perLoop + self.proxy + self.turnedAway
        return max(1, (Int(clamping: limit.rlim_cur) - beside) / 2)
    }

    /// The standard streams and other descriptors from the parent; counted before this process opens any.
    package static let inherited = ProcessFacts.read().openDescriptors ?? 3

    /// The number of descriptors of a run, apart from one per client and those of the protocol.
    package static func beside(_ groups: [LoadOptions], threads: Int) -> Int {
        // Each group has a doorbell of its own on each loop.
        let loop =
            LoadOptions.sockets(of: groups) == .socket
            ? self.perSocketLoop : self.perLoop + self.perDoorbell * (groups.count - 1)
        return self.inherited + self.scheduler + self.results + self.passing + loop * threads
            + groups.reduce(0) { $0 + self.own($1, threads: threads) }
    }

    private static func own(_ options: LoadOptions, threads: Int) -> Int {
        (options.isEmbedded ? self.child : 0) + self.perLookup * options.names * threads
    }
}
