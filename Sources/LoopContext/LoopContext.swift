package import NIOCore

/// State shared by all clients of one event loop: cached clock, timers, receive buffer and write scratch.
///
/// Confined to its event loop and therefore not `Sendable`: no locks, no atomics. Make one per loop, on that loop, and
/// share it between all users of the loop.
package final class LoopContext {
    package let eventLoop: any EventLoop
    /// The one timing wheel of the loop, and the pacing source beside it.
    package let timers: LoopTimers
    /// The one receive buffer of the loop.
    package let receive: ReceiveBuffer
    /// Where packets are put together before they are written.
    ///
    /// Take it out, leave an empty one, `clear()`, fill, write, put back: unless a channel still holds the bytes it
    /// is unique then, and no write allocates. A pointer, since exclusivity checks of a class's property would cost
    /// as much as a small packet.
    package let scratch: UnsafeMutablePointer<ByteBuffer>
    /// The owner of bytes left in ``scratch`` between calls; it releases ``scratch`` in its `deinit`.
    package unowned(unsafe) var scratchOwner: AnyObject?
    /// Calls back once, behind the loop's next look at its sockets; without one, work goes through the task queue.
    package var afterSockets: ((_ call: @escaping () -> Void) -> Void)?

    /// - Parameters:
    ///   - eventLoop: the one whose clients share it.
    ///   - readSize: bytes a read of a socket asks for at most, 1...65536.
    ///   - tick: how exactly timers wake the loop.
    package init(eventLoop: any EventLoop, readSize: Int = ReceiveBuffer.capacity, tick: TickPolicy = .adaptive) {
        self.eventLoop = eventLoop
        self.timers = LoopTimers(eventLoop: eventLoop, tick: tick)
        self.receive = ReceiveBuffer(readSize: readSize)
        self.scratch = .allocate(capacity: 1)
        self.scratch.initialize(to: ByteBuffer())
    }

    deinit {
        self.scratch.deinitialize(count: 1)
        self.scratch.deallocate()
    }

    /// The time of the last ``refresh()``: one clock read serves a whole burst of packets or timers.
    package var now: NIODeadline { self.timers.now }

    /// Reads the clock, once per burst.
    @discardableResult
    package func refresh() -> NIODeadline { self.timers.refresh() }
}
