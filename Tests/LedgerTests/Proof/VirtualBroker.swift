import Ledger
import TestSupport

/// A server without a fault of its own, except that it may lose sessions, with its clients and their network.
struct VirtualBroker {
    typealias Target = ProofPlan.Target

    struct Copy {
        var message: Int
        var target: Target
        var qos: UInt8
        var isRedelivery = false
        var hasArrived = false
        /// A stored copy for a new subscription, with the RETAIN flag.
        var isStored = false
        var queuedAt = 0
    }

    struct Client {
        var visit = -1
        var isConnected = false
        var returnsAt = 0
        // The server's side.
        var hasSession = false
        var isSubscribed = false
        /// The step in which the subscription came into effect.
        var subscribedAt = 0
        var isResumed = false
        var awaySince = 0
        var wasLost = false
        /// Sent on this connection and not arrived; arrived and not acknowledged; to send later.
        var wire: [Copy] = []
        var unacknowledged: [Copy] = []
        var queue: [Copy] = []
        /// Messages of QoS 2 that this client's session has.
        var taken: Set<Int> = []
        // The publisher's side.
        var uplink: [Int] = []
        /// Handled by the server, acknowledgement under way.
        var answers: [(message: Int, isAdmitted: Bool)] = []
        var inFlight: [Int] = []
        var confirmable: [Int] = []
    }

    struct Share {
        /// Clients that are members as the harness knows it.
        var known: Set<Int> = []
        var visit: Int = -1
        /// When the route to the group began to spread.
        var subscribedAt = 0
    }

    var run: VirtualRun
    var dice: SeededDice
    var clients: [Client]
    var shares: [Share]
    var step = 0
    var retained: [Int: Int] = [:]
    private var pending: [[(due: Int, notice: VirtualRun.Notice)]]

    var plan: ProofPlan { self.run.plan }

    static func run(_ plan: ProofPlan) -> VirtualRun {
        var broker = VirtualBroker(plan)
        broker.simulate()
        return broker.run
    }

    private init(_ plan: ProofPlan) {
        self.run = VirtualRun(plan: plan)
        self.dice = SeededDice(seed: plan.seed &* 31 &+ 7)
        self.clients = plan.groupOf.map { _ in Client() }
        self.shares = plan.shares.map { _ in Share() }
        self.pending = Array(repeating: [], count: plan.loops)
        for client in self.clients.indices where self.dice.hits(0.3) {
            self.clients[client].returnsAt = .random(in: 0..<8, using: &self.dice)
        }
    }

    mutating func simulate() {
        while self.step < self.plan.steps {
            self.tellLoops()
            for client in self.clients.indices.shuffled(using: &self.dice) { self.act(client) }
            self.step += 1
        }
        self.end()
        self.run.noteFeatures()
    }

    mutating func act(_ client: Int) {
        guard self.clients[client].isConnected else {
            if self.step >= self.clients[client].returnsAt { self.connect(client) } else { self.isAway(client) }
            return
        }
        self.publish(client)
        self.handle(client, most: .random(in: 0...3, using: &self.dice))
        self.answer(client, most: .random(in: 0...3, using: &self.dice))
        self.deliver(client, most: .random(in: 0...4, using: &self.dice))
        self.acknowledge(client, most: .random(in: 0...4, using: &self.dice))
        if self.dice.hits(self.plan.group(of: client).leaves) { self.leave(client) }
    }

    // MARK: - What loops of publishers learn

    /// Tells each loop soon; with `isTogether` in one moment with the notice before.
    mutating func tell(
        _ target: Target,
        _ visit: UInt64,
        _ event: PresenceMark.Event,
        after delay: Int = 0,
        isTogether: Bool = false
    ) {
        let notice = VirtualRun.Notice(target: target, visit: visit, event: event)
        for loop in self.pending.indices {
            let due = isTogether ? 0 : self.step + delay + Int.random(in: 0...2, using: &self.dice)
            self.pending[loop].append((max(due, self.pending[loop].last?.due ?? 0), notice))
        }
    }

    mutating func tellLoops() {
        for loop in self.pending.indices {
            while let first = self.pending[loop].first, first.due <= self.step {
                self.pending[loop].removeFirst()
                self.run.log.append(.noticed(loop: loop, first.notice))
            }
        }
    }
}
