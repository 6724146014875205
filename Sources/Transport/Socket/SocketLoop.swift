import CPosix
package import Dispatch
package import LoopContext
package import NIOCore
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// An event loop of its own thread for plain TCP sockets, without channels, pipelines and promises.
///
/// It waits in one `epoll_pwait2` until a socket has something, or the next timer is due: a timer costs no system call.
/// A turn reads every socket that has bytes once, runs the timers and then the tasks. SwiftNIO's bootstraps make no
/// channels on it. Linux 5.11 and later.
package final class SocketLoop: EventLoop, @unchecked Sendable {
    // Unchecked: what changes is used on the loop's thread alone, but for `shared` and the atomics.

    package static let isAvailable = clamor_poll_is_available() != 0

    private struct Work: @unchecked Sendable {
        // Unchecked: a task is made on one thread and handed over under a lock, and runs on the loop's alone.
        let run: () -> Void
    }

    private struct Shared {
        var tasks: [Work] = []
        var hasRung = false
        var isStopped = false
        /// Nothing runs any more.
        var hasEnded = false
        var onStop: [@Sendable () -> Void] = []
    }

    private struct Later {
        let id: UInt64
        let deadline: NIODeadline
        let run: () -> Void
        let drop: () -> Void
    }

    private let set: CInt
    private let bell: CInt
    private let shared = Mutex(Shared())
    private let lastID = Atomic<UInt64>(0)
    private let thread = Atomic<UInt>(0)

    private var tasks: [Work] = []
    /// In the order of their deadlines.
    private var later: [Later] = []
    private var slots: [(socket: LoopSocket?, generation: UInt32)] = []
    private var freeSlots: [UInt32] = []
    /// Sockets with more to read.
    private var unread: [LoopSocket] = []
    private var afterSockets: [() -> Void] = []
    private var contexts: [LoopContext] = []

    private static let mostEvents = 256

    /// Starts the thread; `nil` if the system has no more descriptors or threads.
    package init?() {
        var bell: CInt = -1
        self.set = clamor_poll_open(&bell)
        self.bell = bell
        guard self.set >= 0 else { return nil }
        let start = Start(loop: self)
        let context = Unmanaged.passRetained(start)
        let error = clamor_start_thread(
            "clamor-loop",
            { context in
                if let context { Unmanaged<Start>.fromOpaque(context).takeRetainedValue().run() }
            },
            context.toOpaque()
        )
        guard error == 0 else {
            context.release()
            return nil
        }
        start.started.wait()
    }

    /// The argument of the thread.
    private final class Start {
        let loop: SocketLoop
        let started = DispatchSemaphore(value: 0)

        init(loop: SocketLoop) { self.loop = loop }

        func run() {
            self.loop.thread.store(clamor_thread_id(), ordering: .releasing)
            self.started.signal()
            self.loop.run()
        }
    }

    deinit {
        guard self.set >= 0 else { return }
        clamor_poll_close(self.set, self.bell)
    }

    /// Has the loop look after the timers of a context, which is kept alive until the loop ends; on the loop.
    package func adopt(_ context: LoopContext) {
        context.timers.isPolled = true
        context.afterSockets = { [unowned self] call in self.afterSockets.append(call) }
        self.contexts.append(context)
    }

    // MARK: Sockets

    func add(_ make: (_ key: UInt64) -> LoopSocket) -> LoopSocket {
        let slot = self.freeSlots.popLast() ?? UInt32(self.slots.count)
        if Int(slot) == self.slots.count { self.slots.append((nil, 0)) }
        let socket = make(UInt64(self.slots[Int(slot)].generation) << 32 | UInt64(slot))
        self.slots[Int(slot)].socket = socket
        return socket
    }

    func watch(_ descriptor: CInt, key: UInt64, writes: Bool, changes: Bool = false) -> Bool {
        clamor_poll_watch(self.set, descriptor, key, writes ? 1 : 0, changes ? 1 : 0) == 0
    }

    func readLater(_ socket: LoopSocket) {
        guard !socket.isQueued else { return }
        socket.isQueued = true
        self.unread.append(socket)
    }

    /// Events for this key that are under way find no socket.
    func remove(_ key: UInt64) {
        let slot = UInt32(truncatingIfNeeded: key)
        self.slots[Int(slot)].socket = nil
        self.slots[Int(slot)].generation &+= 1
        self.freeSlots.append(slot)
    }

    // MARK: The turns

    private func run() {
        withUnsafeTemporaryAllocation(of: clamor_poll_event.self, capacity: Self.mostEvents) { events in
            while !self.shared.withLock({ $0.isStopped }) { self.turn(events) }
        }
        self.end()
    }

    private func turn(_ events: UnsafeMutableBufferPointer<clamor_poll_event>) {
        let calls = self.afterSockets
        if !calls.isEmpty { self.afterSockets = [] }
        let unread = self.unread
        if !unread.isEmpty { self.unread = [] }
        let isBusy = !calls.isEmpty || !unread.isEmpty || !self.tasks.isEmpty
        let count = clamor_poll_wait(self.set, events.baseAddress, CInt(events.count), isBusy ? 0 : self.idleTime)
        precondition(count >= 0 || errno == EINTR, "epoll_pwait2 failed")
        for event in events[..<max(0, Int(count))] { self.handle(event) }
        for socket in unread {
            socket.isQueued = false
            socket.read()
        }
        for call in calls { call() }
        self.fireTimers(hasSlept: count == 0 && !isBusy)
        self.runTasks()
    }

    private func handle(_ event: clamor_poll_event) {
        guard event.key != .max else { return self.takeTasks() }
        let slot = self.slots[Int(UInt32(truncatingIfNeeded: event.key))]
        guard slot.generation == UInt32(truncatingIfNeeded: event.key >> 32) else { return }
        slot.socket?.handle(event)
    }

    /// Nanoseconds to sleep for the next timer; -1 without one.
    ///
    /// The kernel may end a wait late by a thousandth of it, in a process with a nice value by a two-hundredth. So a
    /// long wait ends early, and a short one follows.
    private var idleTime: Int64 {
        var wake = self.later.first?.deadline ?? .distantFuture
        for context in self.contexts { if let time = context.timers.wakeTime { wake = min(wake, time) } }
        guard wake < .distantFuture else { return -1 }
        let time = max(0, (wake - .now()).nanoseconds)
        return time > 1_000_000 ? time - time / 128 : time
    }

    private func fireTimers(hasSlept: Bool) {
        guard !self.contexts.isEmpty || !self.later.isEmpty else { return }
        let now = NIODeadline.now()
        for context in self.contexts { context.timers.wakeIfDue(now: now, hasSlept: hasSlept) }
        while let first = self.later.first, first.deadline <= now {
            self.later.removeFirst()
            first.run()
        }
    }

    /// Runs the tasks, and those that they add; sockets have their turn after some rounds.
    private func runTasks() {
        var rounds = 64
        while !self.tasks.isEmpty, rounds > 0 {
            rounds -= 1
            let tasks = self.tasks
            self.tasks = []
            for task in tasks { task.run() }
        }
    }

    private func takeTasks() {
        self.shared.withLock { shared in
            shared.hasRung = false
            self.tasks += shared.tasks
            shared.tasks = []
        }
    }

    private func end() {
        self.takeTasks()
        self.runTasks()
        for slot in self.slots { slot.socket?.loopEnded() }
        for context in self.contexts { context.afterSockets = nil }
        self.contexts = []
        for later in self.later { later.drop() }
        self.later = []
        self.afterSockets = []
        let (tasks, done) = self.shared.withLock { shared in
            shared.hasEnded = true
            defer { shared.tasks = [] }
            return (shared.tasks, shared.onStop)
        }
        self.tasks += tasks
        self.runTasks()
        self.tasks = []
        // Another thread may have this one's number later.
        self.thread.store(0, ordering: .relaxed)
        for call in done { call() }
    }

    // MARK: EventLoop

    package var inEventLoop: Bool { self.thread.load(ordering: .relaxed) == clamor_thread_id() }
    package func execute(_ task: @escaping @Sendable () -> Void) { _ = self.add(task) }

    /// - Returns: `false` behind the loop's end, where nothing runs.
    private func add(_ task: @escaping () -> Void) -> Bool {
        let work = Work(run: task)
        if self.inEventLoop {
            self.tasks.append(work)
            return true
        }
        let (isAdded, rings) = self.shared.withLock { shared in
            if shared.hasEnded { return (false, false) }
            shared.tasks.append(work)
            defer { shared.hasRung = true }
            return (true, !shared.hasRung)
        }
        if rings { clamor_poll_ring(self.bell) }
        return isAdded
    }

    package func submit<T>(_ task: @escaping @Sendable () throws -> T) -> EventLoopFuture<T> {
        let promise = self.makePromise(of: T.self)
        if !self.add({ promise.assumeIsolatedUnsafeUnchecked().completeWith(Result { try task() }) }) {
            promise.fail(EventLoopError.shutdown)
        }
        return promise.futureResult
    }

    package func scheduleTask<T>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        let promise = self.makePromise(of: T.self)
        let id = self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
        let later = Later(
            id: id,
            deadline: deadline,
            run: { promise.assumeIsolatedUnsafeUnchecked().completeWith(Result { try task() }) },
            drop: { promise.fail(EventLoopError.shutdown) }
        )
        let isAdded = self.onLoop { loop in
            let place = loop.later.firstIndex { $0.deadline > deadline } ?? loop.later.count
            loop.later.insert(later, at: place)
        }
        if !isAdded { later.drop() }
        return Scheduled(promise: promise) { self.onLoop { loop in loop.later.removeAll { $0.id == id } } }
    }

    package func scheduleTask<T>(in time: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        self.scheduleTask(deadline: .now() + time, task)
    }

    @discardableResult
    private func onLoop(_ body: @escaping (SocketLoop) -> Void) -> Bool {
        guard self.inEventLoop else { return self.add { body(self) } }
        body(self)
        return true
    }

    /// Ends the thread; its sockets are closed.
    package func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        let hasEnded = self.shared.withLock { shared in
            shared.isStopped = true
            if !shared.hasEnded { shared.onStop.append { queue.async { callback(nil) } } }
            return shared.hasEnded
        }
        if hasEnded { queue.async { callback(nil) } } else { clamor_poll_ring(self.bell) }
    }
}
