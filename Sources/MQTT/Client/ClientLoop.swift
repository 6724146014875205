import LoopContext
import NIOCore
import SASL
import Synchronization
import Transport

/// Counts objects from their making to their end, on whatever thread that comes.
package final class LiveCount: Sendable {
    private let atomic = Atomic(0)

    package var value: Int { self.atomic.load(ordering: .acquiring) }
    func begin() { self.atomic.add(1, ordering: .relaxed) }
    func end() { self.atomic.subtract(1, ordering: .releasing) }
}

/// What the clients of one event loop share, for as long as there are any.
///
/// Confined to its loop. Each client has two timers: its connection's, and its own.
final class ClientLoop {
    private static let loops = Mutex<[ObjectIdentifier: NIOLoopBound<ClientLoop>]>([:])

    let context: LoopContext
    /// Clients that are in memory.
    let live = LiveCount()
    /// SCRAM's derived keys.
    let keys = SCRAMKeyCache()
    private var owner: TimerOwner?
    private var clients: [ClientCore?] = []
    private var free: [Int] = []
    private var layers: [ObjectIdentifier: (layers: [any ConnectLayer], users: Int)] = [:]

    private init(_ eventLoop: any EventLoop) {
        self.context = LoopContext(eventLoop: eventLoop)
        self.owner = self.context.timers.addOwner { [weak self] _, tag in self?.timerFired(Int(tag)) }
    }

    /// The one of this loop, on which it is called.
    static func of(_ eventLoop: any EventLoop) -> ClientLoop {
        let key = ObjectIdentifier(eventLoop)
        if let known = Self.loops.withLock({ $0[key] }) { return known.value }
        let made = NIOLoopBound(ClientLoop(eventLoop), eventLoop: eventLoop)
        Self.loops.withLock { $0[key] = made }
        return made.value
    }

    /// Loops that have clients, in the whole process.
    static var count: Int { Self.loops.withLock { $0.count } }

    /// Clients on this loop.
    var clientCount: Int { self.clients.count - self.free.count }

    func add(_ client: ClientCore) -> (index: Int, connectionTimer: TimerID, clientTimer: TimerID) {
        guard let owner = self.owner else { preconditionFailure("set in init") }
        let index = self.free.popLast() ?? self.clients.count
        if index == self.clients.count { self.clients.append(nil) }
        self.clients[index] = client
        let timers = self.context.timers
        return (
            index, timers.register(owner, tag: Int32(2 * index)), timers.register(owner, tag: Int32(2 * index + 1))
        )
    }

    func remove(_ index: Int, _ timers: TimerID...) {
        self.clients[index] = nil
        self.free.append(index)
        for timer in timers { self.context.timers.unregister(timer) }
        guard self.clientCount == 0 else { return }
        self.context.timers.stop()
        let key = ObjectIdentifier(self.context.eventLoop)
        Self.loops.withLock { _ = $0.removeValue(forKey: key) }
    }

    private func timerFired(_ tag: Int) {
        guard let client = self.clients[tag / 2] else { return }
        if tag % 2 == 0 { client.connectionTimerFired() } else { client.timerFired() }
    }

    // MARK: Layers

    /// The layers for a transport, the same ones for all clients that may share them.
    func borrowLayers(_ transport: MQTTTransport) -> [any ConnectLayer] {
        guard let key = transport.key else { return transport.layers(self.context) }
        if let known = self.layers[key] {
            self.layers[key]?.users += 1
            return known.layers
        }
        let made = transport.layers(self.context)
        self.layers[key] = (made, 1)
        return made
    }

    func returnLayers(_ transport: MQTTTransport) {
        guard let key = transport.key, let known = self.layers[key] else { return }
        if known.users == 1 { self.layers[key] = nil } else { self.layers[key]?.users -= 1 }
    }
}
