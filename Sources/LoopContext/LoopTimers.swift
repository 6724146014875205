package import NIOCore

/// How exactly timers wake the loop.
///
/// A wake-up costs 12 to 20 µs of CPU, so many a second are not free.
package enum TickPolicy: Hashable, Sendable {
    /// At the due time below about 2,000 wake-ups a second; above on a grid of 250 µs, or of 100 µs where the loop
    /// itself looks at the timers.
    case adaptive
    /// At the due time, always.
    case exact
}

/// The owner of a timer, see ``LoopTimers/addOwner(_:)``.
package struct TimerOwner: Hashable, Sendable {
    let index: Int32
}

/// Drives the loop's timing wheel and its pacing source with at most one callback scheduled on the event loop.
///
/// No timer has a closure of its own: each owner (the connector, the load shard) sets one handler, and tells its
/// timers apart by the tag it registered them with. Handlers are kept, and what they capture with them, until
/// ``removeOwner(_:)`` or ``stop()``.
package final class LoopTimers {
    package typealias Handler = (_ id: TimerID, _ tag: Int32) -> Void

    /// Wake-ups a second from which on the grid is used.
    private static let exactLimit = 2_000
    private static let window = TimeAmount.milliseconds(50)
    private static let wakesPerWindow = 100
    /// Timers fired in one wake-up before sockets get their turn again.
    private static let batch = 16_384

    private let eventLoop: any EventLoop
    private let tick: TickPolicy
    private var wheel = TimingWheel()
    private var handlers: [Handler] = []
    private var freeOwners: [Int32] = []
    private var pace: ((NIODeadline) -> NIODeadline?)?
    private var paceDue: NIODeadline?

    /// When the loop has to wake, and the earliest time that something is due, which lies before it on a grid.
    private var armed: (at: NIODeadline, due: NIODeadline, callback: NIOScheduledCallback?)?
    /// The loop itself asks for ``wakeTime`` before it sleeps, and calls ``wakeIfDue(now:hasSlept:)`` in each turn.
    ///
    /// Without it a callback of the event loop wakes the timers.
    package var isPolled = false
    private var isFiring = false
    /// The timer whose handler runs now, and the time of the sweep it belongs to.
    private var firing: (id: TimerID, at: NIODeadline)?
    private var isStopped = false
    private var windowStart: NIODeadline
    private var wakes = 0
    /// Whether the grid is in use just now.
    package private(set) var isCoarse = false

    /// The time of the last ``refresh()``.
    package private(set) var now: NIODeadline

    package init(eventLoop: any EventLoop, tick: TickPolicy = .adaptive) {
        self.eventLoop = eventLoop
        self.tick = tick
        self.now = eventLoop.now
        self.windowStart = self.now
    }

    @discardableResult
    package func refresh() -> NIODeadline {
        self.now = self.eventLoop.now
        return self.now
    }

    /// How late the loop is for its next wake-up; nil if that is still to come, or none is planned.
    ///
    /// Sockets have their turn before timers, so this is the lag of a turn that reads.
    package var overdue: TimeAmount? {
        guard let armed = self.armed, armed.at < self.now else { return nil }
        return self.now - armed.at
    }

    // MARK: Timers

    /// Adds an owner of timers.
    ///
    /// - Parameter handler: called on the loop for each timer that fires, with ``now`` freshly read.
    /// - Returns: the owner to register timers with.
    package func addOwner(_ handler: @escaping Handler) -> TimerOwner {
        if let free = self.freeOwners.popLast() {
            self.handlers[Int(free)] = handler
            return TimerOwner(index: free)
        }
        self.handlers.append(handler)
        return TimerOwner(index: Int32(self.handlers.count - 1))
    }

    /// Lets go of an owner's handler; it has given back all its timers.
    package func removeOwner(_ owner: TimerOwner) {
        guard !self.isStopped else { return }
        self.handlers[Int(owner.index)] = { _, _ in }
        self.freeOwners.append(owner.index)
    }

    /// Takes a timer, not yet scheduled.
    ///
    /// It costs 24 bytes.
    ///
    /// - Parameters:
    ///   - owner: whose handler is called.
    ///   - tag: the owner's own number for it, a client's index for instance.
    /// - Returns: its number.
    package func register(_ owner: TimerOwner, tag: Int32 = 0) -> TimerID {
        self.wheel.register(owner: owner.index, tag: tag)
    }

    /// Gives a timer back, cancelled if it was scheduled.
    package func unregister(_ id: TimerID) { self.wheel.unregister(id) }

    /// Sets when the timer fires, once; moves it if it was set already.
    ///
    /// A timer that its own handler sets to a past time fires in the next sweep. Firing in the same sweep could loop
    /// forever and starve later timers and the sockets.
    package func schedule(_ id: TimerID, at deadline: NIODeadline) {
        var deadline = deadline
        if let firing, firing.id == id { deadline = max(deadline, firing.at + .nanoseconds(1)) }
        self.wheel.schedule(id, at: deadline)
        self.arm(for: deadline)
    }

    package func cancel(_ id: TimerID) { self.wheel.cancel(id) }

    // MARK: Pacing

    /// Sets the loop's pacing source.
    ///
    /// - Parameter pace: called with the time when something is due; does all that is due by then and returns when
    ///   it wants to be called again, `nil` for not before the next ``setDue(_:)``.
    package func setPacing(_ pace: @escaping (_ now: NIODeadline) -> NIODeadline?) { self.pace = pace }

    /// Sets when the pacing source is due next, or that it is not.
    package func setDue(_ deadline: NIODeadline?) {
        self.paceDue = deadline
        if let deadline { self.arm(for: deadline) }
    }

    /// Fires nothing more, for good, and lets go of all handlers; timers may still be cancelled and given back.
    package func stop() {
        self.armed?.callback?.cancel()
        self.armed = nil
        self.paceDue = nil
        self.pace = nil
        self.handlers = []
        self.isStopped = true
    }

    // MARK: Waking up

    /// When the loop has to wake next; `nil`: not for these timers.
    package var wakeTime: NIODeadline? { self.armed?.at }

    /// Does what is due by now; a loop that is awake for its sockets is not late by the grid.
    ///
    /// `hasSlept`: whether the loop woke for its timers.
    package func wakeIfDue(now: NIODeadline, hasSlept: Bool) {
        guard let armed = self.armed, armed.due <= now else { return }
        self.wake(counts: hasSlept)
    }

    private func wake(counts: Bool = true) {
        // The loop still calls a task that it has dequeued, even if the task was cancelled since.
        guard !self.isStopped else { return }
        self.armed = nil
        self.refresh()
        self.isFiring = true
        let fired = self.fire()
        self.isFiring = false
        if fired, counts { self.countWake() }

        switch (self.wheel.nextDue, self.paceDue) {
        case (let timer?, let pace?): self.arm(for: min(timer, pace))
        case (let due?, nil), (nil, let due?): self.arm(for: due)
        case (nil, nil): break
        }
    }

    private func fire() -> Bool {
        let now = self.now
        var fired = false
        var left = Self.batch
        while left > 0, let id = self.wheel.popDue(now) {
            fired = true
            left -= 1
            let owner = Int(self.wheel.owner(of: id))
            self.firing = (id, now)
            self.handlers[owner](id, self.wheel.tag(of: id))
            self.firing = nil
            guard !self.isStopped else { return fired }
        }
        guard let due = self.paceDue, due <= now else { return fired }
        self.paceDue = nil
        if let next = self.pace?(now) {
            // The source may have set an earlier one itself while it ran.
            self.paceDue = min(next, self.paceDue ?? next)
        }
        fired = true
        return fired
    }

    /// Counts wake-ups that were of use, by the window, and chooses between exact times and the grid.
    private func countWake() {
        guard self.tick == .adaptive else { return }
        self.wakes += 1
        let elapsed = self.now - self.windowStart
        if elapsed >= Self.window {
            self.isCoarse = self.wakes > Int(elapsed.nanoseconds / 1_000 * Int64(Self.exactLimit) / 1_000_000)
            self.windowStart = self.now
            self.wakes = 0
        } else if self.wakes > Self.wakesPerWindow {
            self.isCoarse = true
        }
    }

    /// Sees to it that the loop wakes up in time.
    ///
    /// A callback that comes earlier stays: it re-arms when it has fired.
    private func arm(for due: NIODeadline) {
        guard !self.isFiring, !self.isStopped else { return }
        let at = self.onGrid(due)
        var due = due
        if let armed = self.armed {
            due = min(due, armed.due)
            self.armed?.due = due
            guard at < armed.at else { return }
            armed.callback?.cancel()
            self.armed = nil
        }
        guard !self.isPolled else {
            self.armed = (at, due, nil)
            return
        }
        // Fails only on a loop that is shut down, where nothing is due any more.
        let callback = try? self.eventLoop.assumeIsolated().scheduleCallback(at: at, handler: Waker(timers: self))
        guard let callback else { return }
        self.armed = (at, due, callback)
    }

    private func onGrid(_ due: NIODeadline) -> NIODeadline {
        guard self.isCoarse else { return due }
        let step: UInt64 = self.isPolled ? 100_000 : 250_000
        let (steps, rest) = due.uptimeNanoseconds.quotientAndRemainder(dividingBy: step)
        guard rest > 0, due < .distantFuture else { return due }
        return .uptimeNanoseconds((steps + 1) * step)
    }

    private struct Waker: NIOScheduledCallbackHandler {
        let timers: LoopTimers

        func handleScheduledCallback(eventLoop: some EventLoop) { self.timers.wake() }
    }
}
