import Foundation
import Measurement

/// File descriptors of this process.
enum Descriptors {
    /// Of the threads that run tasks: epoll and eventfd of the one that waits for all, a timerfd for watching over
    /// them and one for tasks that sleep.
    static let scheduler = 4
    /// An event loop: epoll, eventfd and timerfd of NIO's, and the two ends of the doorbell's pipe.
    static let perLoop = 3 + Self.perDoorbell
    static let perDoorbell = 2
    /// Of the result directory: the lock on it, the time line, the histogram log.
    static let results = 3
    /// A file that is open for a moment while all clients are connected.
    ///
    /// A look into /proc, or run.json as it is written anew: only the monitor does that, one after the other.
    static let passing = 1
    /// The embedded broker as a child.
    ///
    /// Its two pipes, and what Foundation opens to hear of its end: epolls, eventfds, timerfds and sockets of its run
    /// loops.
    static let child = 14
    /// A name server is asked through a socket, with a file or another socket beside it; each loop asks for itself.
    static let perLookup = 2

    /// The store's database and its log, and their directory for a moment.
    static let store = 3

    /// Raises the soft limit to the hard one.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
    }

    /// Clients of the proxy that are turned away: as many as are accepted in one turn of its loop.
    static let turnedAway = 64
    /// The proxy's listener, what it is told by, and a name server that it asks.
    static let proxy = 1 + Self.perLookup

    /// How many clients the proxy may have, by the soft limit: two descriptors each.
    static var proxyClients: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        let beside = self.inherited + self.scheduler + self.perLoop + self.proxy + self.turnedAway
        return max(1, (Int(clamping: limit.rlim_cur) - beside) / 2)
    }

    /// The standard streams, and what else the parent left open; first looked at before anything is opened here.
    static let inherited = ProcessFacts.read().openDescriptors ?? 3

    /// How many a run will have beside one for each client, and what the protocol keeps open.
    static func beside(_ options: LoadOptions, threads: Int) -> Int {
        self.inherited + self.scheduler + self.results + self.passing + self.perLoop * threads
            + self.own(options, threads: threads)
    }

    /// What a further group of the run adds: its doorbells, and what it needs beside its clients.
    static func added(_ options: LoadOptions, threads: Int) -> Int {
        self.perDoorbell * threads + self.own(options, threads: threads)
    }

    private static func own(_ options: LoadOptions, threads: Int) -> Int {
        (options.isEmbedded ? self.child : 0) + self.perLookup * options.names * threads
    }
}
