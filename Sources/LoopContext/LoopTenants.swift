package import NIOCore
import Synchronization

/// A client of an event loop that has timers there.
package protocol LoopTenant: AnyObject {
    /// One of its timers fired, by its number from 0.
    func timerFired(_ number: Int)
}

/// The clients of one kind on one event loop.
///
/// Confined to its loop.
package final class LoopTenants<Tenant: LoopTenant> {
    package let context: LoopContext
    private let timersEach: Int
    private var owner: TimerOwner?
    private var tenants: [Tenant?] = []
    private var free: [Int] = []

    package init(_ eventLoop: any EventLoop, timersEach: Int) {
        self.context = LoopContext(eventLoop: eventLoop)
        self.timersEach = timersEach
        self.owner = self.context.timers.addOwner { [weak self] _, tag in
            let (index, number) = Int(tag).quotientAndRemainder(dividingBy: timersEach)
            self?.tenants[index]?.timerFired(number)
        }
    }

    /// Adds a tenant, which is retained until it is removed.
    ///
    /// - Returns: its place, and its timers.
    package func add(_ tenant: Tenant) -> (index: Int, timers: [TimerID]) {
        guard let owner = self.owner else { preconditionFailure("set in init") }
        let index = self.free.popLast() ?? self.tenants.count
        if index == self.tenants.count { self.tenants.append(nil) }
        self.tenants[index] = tenant
        let timers = (0..<self.timersEach).map { number in
            self.context.timers.register(owner, tag: Int32(self.timersEach * index + number))
        }
        return (index, timers)
    }

    /// Removes a tenant, and with the last one the entry of the loop in `homes`.
    package func remove(_ index: Int, _ timers: TimerID..., of homes: LoopHomes<some AnyObject>) {
        self.tenants[index] = nil
        self.free.append(index)
        for timer in timers { self.context.timers.unregister(timer) }
        guard self.free.count == self.tenants.count else { return }
        self.context.timers.stop()
        homes.remove(self.context.eventLoop)
    }
}

/// The objects that tenants of one kind share, one for each event loop that has tenants.
package final class LoopHomes<Home: AnyObject>: Sendable {
    private let homes = Mutex<[ObjectIdentifier: NIOLoopBound<Home>]>([:])

    package init() {}

    /// The object of this loop; called on the loop.
    package func of(_ eventLoop: any EventLoop, make: () -> Home) -> Home {
        let key = ObjectIdentifier(eventLoop)
        if let known = self.homes.withLock({ $0[key] }) { return known.value }
        let made = NIOLoopBound(make(), eventLoop: eventLoop)
        self.homes.withLock { $0[key] = made }
        return made.value
    }

    /// Whether this loop has tenants.
    package func contains(_ eventLoop: any EventLoop) -> Bool {
        self.homes.withLock { $0[ObjectIdentifier(eventLoop)] != nil }
    }

    fileprivate func remove(_ eventLoop: any EventLoop) {
        self.homes.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(eventLoop)) }
    }
}
