import LoopContext
import NIOCore

// Bringing the clients up at the plan's pace.
extension Shard {
    func connectWhatIsDue(_ now: NIODeadline) -> NIODeadline? {
        guard let work = self.work, now >= self.connectOrigin else { return self.connectOrigin }
        switch self.plan.connect {
        case .rate(let perSecond):
            while self.nextConnect < self.connectCount {
                // Connect number k of the run, listeners first, so that they hear from the first message on.
                let number = self.connectNumber(self.nextConnect)
                let due = self.connectOrigin + .nanoseconds(Int64(min(9e18, Double(number) * (1e9 / perSecond))))
                guard due <= now else { return due }
                self.connectNext(work, due: due)
            }
        case .pending(let limit):
            let share = max(1, limit / self.clients.shards)
            while self.nextConnect < self.connectCount, self.pendingConnects < share {
                self.connectNext(work, due: now)
            }
        }
        return nil
    }

    func connectNext(_ work: Work, due: NIODeadline) {
        let place = self.connectPlace(self.nextConnect)
        self.nextConnect += 1
        self.pendingConnects += 1
        self.connectsBegun += 1
        self.lastConnectBegun = self.context.refresh()
        work.connect(place, due: due)
    }

    /// Those who connect before the load begins, or as it does.
    var connectCount: Int { self.firstConnects?.count ?? self.clients.count }

    func connectPlace(_ order: Int) -> Int {
        if let connects = self.firstConnects { return Int(connects[order].place) }
        return order < self.clients.listeners ? self.clients.operators + order : order - self.clients.listeners
    }

    func connectNumber(_ order: Int) -> Int {
        if let connects = self.firstConnects { return connects[order].number }
        let place = self.connectPlace(order)
        let number = self.clients.number(at: place)
        return place < self.clients.operators ? self.plan.listeners + number : number - self.plan.operators
    }
}
